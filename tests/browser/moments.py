"""Calls in all their moments, so that pages are seen with what they rarely hold: questions, a log,
a late reply, other arguments than asked, and each way to end."""

import time
from base64 import b64encode
from typing import Any
from uuid import UUID

import orjson

from accounts.models import Agent, User
from approvals import comments, editing, services
from approvals.editing import Edit
from approvals.models import Approval
from audit.services import SYSTEM
from calls.models import Call
from calls.record.states import Executed, State
from calls.record.transitions import Move, move_now
from calls.running.input_relay import ASK, answer, message
from calls.running.late_replies import LATE
from calls.running.log_book import KEEP
from calls.services import resolve
from core.abilities import InputAnswer
from registry.models import ShownTool, Tool, Toolset
from registry.publishing.override_service import show
from tests.browser.scene import ALLOWED, Office
from tests.console import scenery

FORM = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "September has two ledgers. Which of them is the last?",
        "requestedSchema": {
            "type": "object",
            "properties": {"ledger": {"type": "string", "enum": ["2026-09-28", "2026-09-30"]}},
            "required": ["ledger"],
        },
    },
}
MODEL = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "Sum this up in one sentence."}}
        ],
        "maxTokens": 200,
    },
}
LINES = (
    ("info", "ledger", "Opened 3 books: July, August, September."),
    ("warning", "ledger", "September: line 2041 has no amount, taken as 0.00."),
    ("debug", "", '{"pages": 12, "figures": 4, "fonts": ["Hyperlegible"]}'),
    ("error", "archive.mirror", "The copy at backup.internal does not answer; going on without."),
)
COMMENT = (
    "I asked Ana on the telephone. She wants the board to have it on the same day as she does, and "
    "not a day later as it was in October; whoever approves this need not ask her again. The other "
    "two letters of this week stay as they are."
)
# How a call that ran may end, and in which words.
ENDS = {
    State.FAILED: "The server closed the connection before it answered.",
    State.TIMED_OUT: "The server was silent for 60 seconds.",
    State.CANCELLED: "Cancelled by bob.",
}


def happen(office: Office, person: User) -> None:
    """`person` decides, where people do; the agents are bob's."""
    asked_and_logged(office.running)
    answered_late(office.lost)
    edited(office, person)
    ended(office)
    decided(office, person)
    shown(office, person)


def pages() -> list[str]:
    """The last call of each state that there is."""
    found = (Call.objects.filter(state=state).order_by("-pk").first() for state in State)
    return [f"/calls/{call.pk}/" for call in found if call]


def shown_pages() -> list[str]:
    said = ShownTool.objects.select_related("toolset", "tool")
    return [f"/toolsets/{one.toolset.slug}/tools/{one.tool.exposed_name}/" for one in said]


def asked_and_logged(call_id: UUID) -> None:
    inputs = [
        {"key": key, "request": orjson.dumps(asked).decode(), "message": message(asked)}
        for key, asked in (("ledger", FORM), ("summary", MODEL))
    ]
    fence = Call.objects.get(pk=call_id).fence
    line = {"id": call_id, "fence": fence, "round": 1, "inputs": inputs}
    assert scenery.write(ASK, line)
    answered(call_id, "ledger", {"action": "accept", "content": {"ledger": "2026-09-30"}})
    lines = [
        {"number": number, "level": level, "logger": logger, "text": text, "structured": False}
        for number, (level, logger, text) in enumerate(LINES)
    ]
    assert scenery.write(KEEP, {"id": call_id, "fence": fence, "lines": lines})


def answered(call_id: UUID, key: str, response: dict[str, Any]) -> None:
    call = Call.objects.get(pk=call_id)
    question = call.inputs.get(key=key)
    given = InputAnswer(response, is_error=False)
    assert answer(call_id, {question.pk: given}, by=call.agent.actor)


def answered_late(call_id: UUID) -> None:
    result = {"content": [{"type": "text", "text": "Sent to ana@example.org."}]}
    line = {
        "id": call_id,
        "target": State.SUCCEEDED,
        "fence": Call.objects.get(pk=call_id).fence,
        "outcome": "",
        "executed": Executed.YES,
        "result": b64encode(orjson.dumps(result)).decode(),
        "result_kind": "result",
        "result_digest": "",
        "received_at": time.time(),
    }
    assert scenery.write(LATE, line)


def edited(office: Office, person: User) -> None:
    asked = {**scenery.MAIL, "subject": "Minutes of Wednesday"}
    approval = held(office.scout, office.send, asked)
    other = {**asked, "to": ["ana@example.org", "board@example.org"], "options": {}}
    change = Edit(approval.call.call_digest, orjson.dumps(other), note="The board gets it too.")
    editing.edit(approval, change, by=person)
    comments.say(approval, by=office.alice, text=COMMENT, ask_agent=False)


def ended(office: Office) -> None:
    for state, said in ENDS.items():
        call_id = scenery.call(
            office.scout, office.search, {"pattern": state}, State.QUEUED, **ALLOWED
        )
        scenery.run(call_id)
        scenery.finish(call_id, None, state, said)
    lost = scenery.call(office.scout, office.send, scenery.MAIL, State.QUEUED, **ALLOWED)
    scenery.run(lost)
    scenery.finish(lost, None, State.UNKNOWN, "The server hung up while it worked.")
    resolve(lost, by=office.alice, executed=Executed.YES, note="It is in the outbox.")


def decided(office: Office, person: User) -> None:
    """Without anything sent: by a person, the clock, the agent, and by what changed meanwhile."""
    refused = held(office.scout, office.write, {"path": "budget.md", "content": "Spent."})
    services.vote(
        refused,
        by=person,
        approve=False,
        seen_digest=refused.call.call_digest,
        reason="The budget is not decided yet. Ask again on Thursday.",
    )
    late = held(office.scout, office.send, {**scenery.MAIL, "subject": "Too late"})
    Approval.objects.filter(pk=late.pk).update(decide_by="2026-01-01T00:00Z")
    services.expire()
    withdrawn = held(office.scout, office.send, {**scenery.MAIL, "subject": "Never mind"})
    services.cancel(withdrawn.pk, by=office.scout.actor)
    queued = scenery.call(office.scout, office.search, {"pattern": "x"}, State.QUEUED, **ALLOWED)
    why = "The tool's definition changed after the call was asked for."
    assert move_now(Move(queued, State.QUEUED, State.SUPERSEDED, SYSTEM, reason=why, outcome=why))


def held(agent: Agent, tool: Tool, arguments: Any) -> Approval:
    call_id = scenery.call(agent, tool, arguments, State.HELD)
    return Approval.objects.for_queue().get(pk=call_id)


def shown(office: Office, person: User) -> None:
    show(
        Toolset.objects.get(slug="office"),
        office.send,
        by=person,
        name="write_to_colleague",
        title="Write to a colleague",
        description="Sends one mail to somebody in the house.",
        pinned='{"options": {"priority": "normal"}}',
    )
