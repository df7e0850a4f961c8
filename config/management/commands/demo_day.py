import json
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accounts import services as accounts
from accounts.models import Agent
from accounts.tokens import Bearer
from calls.models import Call
from calls.record.states import State
from config.first_run import TOOLSET
from core.errors import CountersignError
from gateway.submit import sync
from gateway.submit.bearers import speaking_for
from gateway.submit.sync import SyncCallRequest
from registry import services
from registry.models import Toolset

AGENT = "scout"
ENDED_WITHIN_S = 20.0
SAILING = "Dear Ana,\n\nthe 09:30 sailing is at risk tomorrow: wind from the north-west.\n"
# What an agent of a ferry company may do in a day: it looks things up, reckons, wants to send and
# to delete, and is wrong twice. Each goes through the door of every call, at the time it says.
DAY: list[tuple[str, dict[str, Any]]] = [
    ("weather.forecast", {"city": "Bergen", "first_day": "{today}", "days": 2}),
    ("documents.search_documents", {"query": "When is a sailing cancelled?"}),
    ("documents.read_document", {"name": "bad-weather"}),
    ("calculator.evaluate", {"expression": "412 * 38.5"}),
    ("calculator.divide", {"dividend": 412, "divisor": 0}),
    ("calculator.evaluate", {"expression": 42}),
    ("ticketing.refund_everybody", {"sailing": "09:30"}),
    ("file-writer.write_file", {"path": "sailings/09-30.txt", "text": "At risk: wind.\n"}),
    (
        "mailer.send_mail",
        {"to": ["ana@example.org"], "subject": "The 09:30 sailing", "body": SAILING},
    ),
    ("file-writer.delete_file", {"path": "sailings/09-30.txt"}),
]


class Command(BaseCommand):
    help = "Let an agent named scout do a small day's work with the examples, while `up` runs."

    def handle(self, **options: Any) -> None:
        bearer = _scout()
        for tool, arguments in DAY:
            self.stdout.write(f"  {tool}: {_submit(bearer, tool, arguments)}")
        self.stdout.write(
            "Three wait for you under Queue; the rest is under Audit, Who ran what, agent scout."
        )


@transaction.atomic
def _make_agent() -> Agent:
    toolset = Toolset.objects.filter(slug=TOOLSET).first()
    if toolset is None:
        raise CommandError("There are no examples yet: start Countersign with `manage.py up`.")
    agent = Agent.objects.filter(name=AGENT).first()
    agent = agent or accounts.create_agent(AGENT, owner=accounts.first_administrator(), by=None)
    services.assign(toolset, agent, by=None)
    return agent


def _scout() -> Bearer:
    bearer = speaking_for(_make_agent())
    if bearer is None:
        raise CommandError("The agent scout, or its owner, is switched off.")
    return bearer


def _submit(bearer: Bearer, tool: str, arguments: dict[str, Any]) -> str:
    text = json.dumps(arguments).replace("{today}", date.today().isoformat())
    question = SyncCallRequest(
        bearer=bearer,
        toolset=TOOLSET,
        tool=tool,
        arguments=text.encode(),
        parsed=json.loads(text),
        origin=Call.Origin.COMMAND,
        background=True,
    )
    try:
        submitted = sync.ask(question, seconds=0)
    except CountersignError as error:
        raise CommandError(str(error)) from error
    if submitted.state not in (State.HELD, State.REFUSED):
        # What runs is seen to its end: the story says how it went.
        sync.await_end(submitted.call_id, seconds=ENDED_WITHIN_S)
    state: str = Call.objects.get(pk=submitted.call_id).get_state_display()
    return state
