"""Relays input requests of servers to agents in the middle of a call, and the answers back.

A question is a row: whichever process the answer comes to, whoever runs the call reads it there.

Sources: MCP 2026-07-28, basic/patterns/mrtr and client/elicitation; 2025-11-25, client;
io.modelcontextprotocol/tasks, specification/draft/tasks.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import orjson
from django.conf import settings
from django.db import connection, transaction

from audit.models import ClockTime
from audit.services import (
    SYSTEM_NUMBER,
    Actor,
    first_entry,
    name_number,
    reason_number,
    record,
)
from calls.models import Call, Input
from calls.record.states import State
from calls.record.transitions import NOTE_TASK
from calls.running.cleaning import ServerWords
from core import abilities
from core.abilities import InputAnswer
from core.english import gettext as _
from core.events_in_time import set_within
from core.journal import GroupCommit, Statement
from core.listen import ANSWERED
from core.live import Notifier, notify_on_commit

ASKED_MAX, KEY_MAX = 8, 200
# What a person is asked is short; what a model is asked may hold a conversation.
SIZE_MAX, SIZE_MAX_SAMPLING = 16_384, 262_144
MESSAGE_MAX = 500
# An answer's nudge may be lost.
LOOK_AGAIN_S = 1.0

ASK = Statement(
    "ask for input",
    """
WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%s::json) AS r(id uuid, fence int, round int, inputs json)
), made AS (
    INSERT INTO calls_input (call_id, round, key, request, message)
    SELECT a.id, a.round, i.key, i.request, i.message
    FROM asked a JOIN calls_call c ON c.id = a.id AND c.fence = a.fence AND c.state = 'running',
        json_to_recordset(a.inputs) AS i(key text, request text, message text)
    ON CONFLICT DO NOTHING
    RETURNING call_id, round, key, request, message
), entries AS (
    INSERT INTO audit_entryrow (
        action, actor, agent, person, tool, reason, call_id, arguments, details)
    SELECT """
    + name_number("'action'", "'call.input_asked'")
    + f", {SYSTEM_NUMBER}, e.agent, e.person, e.tool, "
    + reason_number("m.message")
    + """, m.call_id, e.arguments, jsonb_build_object(
            'key', m.key, 'round', m.round, 'method', m.request::json->>'method')
    FROM made m """
    + first_entry("m.call_id")
    + """
), told AS (
    SELECT DISTINCT call_id FROM made
)
SELECT call_id, pg_notify('countersign_call', call_id::text)::text FROM told
""",
    order=3,
)
LOOK = Statement(
    "look for answers",
    """
SELECT a.id, (
    SELECT jsonb_object_agg(i.key, jsonb_build_array(i.response, i.is_error))
    FROM calls_input i WHERE i.call_id = a.id AND i.round = a.round AND i.response <> ''
)
FROM json_to_recordset(%s::json) AS a(id uuid, round int)
""",
    order=4,
)
# Somebody else may be waiting for how it ended: the process that its agent came back to.
TELL = Statement(
    "tell that it ended",
    """
SELECT a.id, pg_notify('countersign_call', a.id::text)::text
FROM json_to_recordset(%s::json) AS a(id uuid)
""",
    order=5,
)


class InputRelay:
    """One attempt's way to its agent."""

    def __init__(
        self,
        call_id: UUID,
        fence: int,
        words: Collection[str],
        journal: GroupCommit,
        notifier: Notifier,
        *,
        nudge: asyncio.Event,
        on_ask: Callable[[], None] | None = None,
        on_pause: Callable[[bool], None],
        cleaner: ServerWords | None = None,
    ) -> None:
        self._call_id, self._fence, self.words = call_id, fence, tuple(words)
        self._journal, self._notifier = journal, notifier
        self._nudge, self._on_ask, self._on_pause = nudge, on_ask, on_pause
        self._cleaner = cleaner
        self._asked: set[tuple[int, str]] = set()

    @property
    def asked(self) -> bool:
        return bool(self._asked)

    async def look(self, requests: Mapping[str, Any], round_: int) -> dict[str, InputAnswer] | None:
        """The answers that there are by now; None where there will be none."""
        if not _can_be_asked(requests, frozenset(self.words)):
            return None
        if not await self._ask(requests, round_):
            return None
        line = {"id": self._call_id, "round": round_}
        (row,) = await self._journal.write((LOOK, line), within=None)
        given = (row[1] if row else None) or {}
        return {
            key: InputAnswer(orjson.loads(given[key][0]), is_error=given[key][1])
            for key in requests
            if key in given
        }

    async def wait(
        self, requests: Mapping[str, Any], round_: int, pause: Any = None
    ) -> dict[str, InputAnswer] | None:
        """All answers; None where there will be none, or none in time.

        With `pause` the server waits for nothing meanwhile: all that it takes to go on stands in
        the row, so that another process can, until this one takes it back to send it.
        """
        if pause is None or not _can_be_asked(requests, frozenset(self.words)):
            return await self._all(requests, round_)
        await self._note(orjson.dumps(pause).decode())
        self._on_pause(True)
        given = await self._all(requests, round_)
        self._on_pause(False)
        # Somebody else may have gone on with it while this process was stopped.
        return given if await self._note("") else None

    async def _all(self, requests: Mapping[str, Any], round_: int) -> dict[str, InputAnswer] | None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(settings.ANSWER_WITHIN_S):
                while (given := await self.look(requests, round_)) is not None:
                    if given.keys() >= requests.keys():
                        return given
                    await self._nudged()
        return None

    async def _note(self, upstream_task: str) -> bool:
        line = {"id": self._call_id, "fence": self._fence, "upstream_task": upstream_task}
        (row,) = await self._journal.write((NOTE_TASK, line), within=None)
        return row is not None

    async def _nudged(self) -> None:
        await set_within(self._nudge, LOOK_AGAIN_S)
        self._nudge.clear()

    async def _ask(self, requests: Mapping[str, Any], round_: int) -> bool:
        """Writes the questions down; False where one cannot be asked as it is to be passed on."""
        fresh = {key: one for key, one in requests.items() if (round_, key) not in self._asked}
        if not fresh:
            return True
        if self._cleaner is not None:
            # Of a model much may be asked: beside the loop.
            fresh = await asyncio.to_thread(_cleaned, fresh, self._cleaner)
            if not _can_be_asked(fresh, frozenset(self.words)):
                return False
        inputs = [
            {"key": key, "request": orjson.dumps(one).decode(), "message": message(one)}
            for key, one in fresh.items()
        ]
        line = {"id": self._call_id, "fence": self._fence, "round": round_, "inputs": inputs}
        await self._journal.write((ASK, line), within=None)
        self._asked |= {(round_, key) for key in requests}
        self._notifier.notify(f"call.{self._call_id}")
        if self._on_ask is not None:
            self._on_ask()
        return True


def _cleaned(requests: Mapping[str, Any], cleaner: ServerWords) -> dict[str, Any]:
    return {key: cleaner.question(key, one) for key, one in requests.items()}


def _can_be_asked(requests: Mapping[str, Any], words: Collection[str]) -> bool:
    return 0 < len(requests) <= ASKED_MAX and all(
        len(key) <= KEY_MAX and askable(request, words) for key, request in requests.items()
    )


def askable(request: Any, words: Collection[str]) -> bool:
    """Whether the agent's client declared this kind, we relay it, and it is fit to be shown."""
    needed = abilities.needed(request)
    if needed is None or not needed <= set(words):
        return False
    if abilities.URL in needed and not _is_safe(request["params"].get("url")):
        return False
    most = SIZE_MAX_SAMPLING if abilities.SAMPLING in needed else SIZE_MAX
    try:
        return len(orjson.dumps(request)) <= most
    except orjson.JSONEncodeError:
        return False


def _is_safe(url: Any) -> bool:
    """Opened by the agent's user, never by us: over TLS, and without a name before the host that
    makes another of it."""
    try:
        parts = urlsplit(url) if isinstance(url, str) and url.isprintable() else None
    except ValueError:
        return False
    return (
        parts is not None
        and parts.scheme == "https"
        and bool(parts.hostname)
        and (parts.username is None and parts.password is None)
    )


def message(request: Any) -> str:
    """The part of a request that everybody may read; the rest is the call's payload."""
    match request["method"]:
        case "sampling/createMessage":
            return _("The server asks for an answer of the agent's model.")
        case "roots/list":
            return _("The server asks for the folders that the agent works in.")
    said = request["params"].get("message")
    text = said if isinstance(said, str) else ""
    if url := request["params"].get("url"):
        text = f"{text} ({urlsplit(str(url)).hostname})".strip()
    return text[:MESSAGE_MAX].replace("\0", "�").encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class InputQuestion:
    id: int
    round: int
    key: str
    request: dict[str, Any]

    @property
    def name(self) -> str:
        """A name that is unique among the call's input requests."""
        return f"{self.key}#{self.round}" if self.round else self.key


def open_ones(call_id: UUID, words: Collection[str]) -> list[InputQuestion]:
    """Unanswered requests of the call; none unless this client can answer all of them."""
    rows = Input.objects.filter(call_id=call_id, call__state=State.RUNNING, response="")
    found = [InputQuestion(row.pk, row.round, row.key, orjson.loads(row.request)) for row in rows]
    return found if all(askable(one.request, words) for one in found) else []


def questions_of(call_id: UUID, ids: Collection[int]) -> list[tuple[InputQuestion, bool]]:
    """These, and whether each still waits for its answer."""
    rows = Input.objects.filter(call_id=call_id, pk__in=list(ids))
    return [
        (InputQuestion(row.pk, row.round, row.key, orjson.loads(row.request)), not row.response)
        for row in rows
    ]


class InvalidAnswer(Exception):
    """The answer does not fit its input request; says why."""


def check(question: InputQuestion, given: InputAnswer) -> None:
    """Raises InvalidAnswer."""
    problem = _problem(question.request["method"], given)
    if problem:
        raise InvalidAnswer(f"{question.key}: {problem}")


@transaction.atomic
def answer(call_id: UUID, answers: Mapping[int, InputAnswer], *, by: Actor) -> int:
    """How many of these questions, by their ids, were still open: the first answer counts."""
    rows = Input.objects.filter(call_id=call_id, pk__in=list(answers), response="")
    taken = sum(_take(row, answers[row.pk], by=by) for row in rows)
    if taken:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [ANSWERED, str(call_id)])
        notify_on_commit(f"call.{call_id}")
    return taken


def _take(row: Input, given: InputAnswer, *, by: Actor) -> int:
    # Compare and set: of two answers at once, one finds the question open.
    taken = Input.objects.filter(pk=row.pk, response="").update(
        response=orjson.dumps(given.value).decode(),
        is_error=given.is_error,
        answered_at=ClockTime(),
    )
    if taken:
        call = Call.objects.select_related("agent").get(pk=row.call_id)
        record(
            "call.input_given",
            actor=by,
            call_id=call.pk,
            agent=(call.agent_id, call.agent.name),
            tool=call.tool_name,
            key=row.key,
            said="error" if given.is_error else str(given.value.get("action", ""))[:20],
        )
    return taken


_ACTIONS = ("accept", "decline", "cancel")


def _problem(method: str, given: InputAnswer) -> str:
    value = given.value
    if not isinstance(value, dict):
        return "an answer is an object."
    if not given.is_error:
        if method == "elicitation/create" and value.get("action") not in _ACTIONS:
            return "action must be accept, decline or cancel."
        if method == "roots/list" and not isinstance(value.get("roots"), list):
            return "roots must be a list."
        if method == "sampling/createMessage" and not {"role", "content"} <= value.keys():
            return "a message has a role and content."
    try:
        return "" if len(orjson.dumps(value)) <= SIZE_MAX_SAMPLING else "it is too long."
    except orjson.JSONEncodeError:
        return "it is not JSON that everybody reads alike."
