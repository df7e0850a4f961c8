"""What was decided on is what is sent: anything else is superseded, and says what differs."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from accounts.models import Agent, User
from approvals import services
from approvals.models import Approval, Vote
from approvals.services import DecisionRefused
from audit.models import Entry
from calls.models import Call
from calls.queue.claiming import claim
from calls.record.statements import call_digest, differences, statement
from calls.record.states import State
from calls.services import end_the_late
from registry import services as registry
from registry.models import Server, Tool, Toolset
from registry.publishing import published_catalogue
from tests.console import scenery

pytestmark = pytest.mark.django_db


@pytest.fixture
def send_mail(olga: User, scout: Agent) -> Tool:
    return scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())


@pytest.fixture
def held(scout: Agent, send_mail: Tool) -> UUID:
    return scenery.call(scout, send_mail, scenery.MAIL, State.HELD)


@pytest.fixture
def approved(held: UUID, alice: User) -> UUID:
    approval = Approval.objects.for_queue().get(pk=held)
    services.vote(approval, by=alice, approve=True, seen_digest=approval.call.call_digest)
    return held


def of(tool: Tool, **changes: Any) -> str:
    offered = published_catalogue.one(tool.pk)
    assert offered is not None
    values: dict[str, Any] = {"agent": (1, "scout"), "person": (2, "bob"), "arguments": b"{}"}
    return statement(tool=offered, **{**values, **changes})


def test_an_approved_call_is_sent_as_it_was_seen(approved: UUID) -> None:
    sending = claim(approved, owner="here")

    assert sending is not None
    assert sending.arguments == bytes(Call.objects.get(pk=approved).arguments)
    assert claim(approved, owner="there") is None


def test_the_vote_and_the_entries_carry_the_digest(approved: UUID) -> None:
    call = Call.objects.get(pk=approved)

    assert call.call_digest == call_digest(call.statement)
    assert Vote.objects.get().seen_digest == call.call_digest
    assert Entry.objects.get(action="call.held").details["call_digest"] == call.call_digest
    assert Entry.objects.get(action="approval.voted").details["seen_digest"] == call.call_digest
    assert call.fingerprint == call.call_digest[:8]


def move_server(tool: Tool) -> None:
    Server.objects.filter(pk=tool.server_id).update(url="http://127.0.0.1:10/mcp")


def change_credential(tool: Tool) -> None:
    server = Server.objects.get(pk=tool.server_id)
    Server.objects.filter(pk=server.pk).update(connection_version=server.connection_version + 1)


def rename_tool(tool: Tool) -> None:
    Tool.objects.filter(pk=tool.pk).update(name="send_it")


def rename_agent(tool: Tool) -> None:
    Agent.objects.update(name="other")


def change_owner(tool: Tool) -> None:
    Agent.objects.update(owner=scenery.person("carol"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (move_server, "the server's address"),
        (change_credential, "the server's credential or settings"),
        (rename_tool, "the tool"),
        (rename_agent, "the agent"),
        (change_owner, "the person on whose behalf"),
    ],
)
def test_anything_else_is_superseded_and_says_what(
    approved: UUID, send_mail: Tool, change: Callable[[Tool], None], said: str
) -> None:
    change(send_mail)

    assert claim(approved, owner="here") is None

    call = Call.objects.get(pk=approved)
    assert call.state == State.SUPERSEDED
    assert said in call.outcome
    assert call.executed == "no"


def leave_toolset(tool: Tool) -> None:
    registry.unassign(Toolset.objects.get(), Agent.objects.get(), by=None)


def leave_tool_out(tool: Tool) -> None:
    registry.remove_tool(Toolset.objects.get(), tool, by=None)


@pytest.mark.parametrize("change", [leave_toolset, leave_tool_out])
def test_a_tool_that_the_agent_no_longer_gets_is_not_called(
    approved: UUID, send_mail: Tool, change: Callable[[Tool], None]
) -> None:
    change(send_mail)

    assert claim(approved, owner="here") is None

    call = Call.objects.get(pk=approved)
    assert call.outcome == "The toolset no longer offers the tool to the agent."
    assert call.state == State.SUPERSEDED


def test_a_call_whose_time_to_start_is_over_is_not_claimed(approved: UUID) -> None:
    """Whoever looked for what is next may have looked a moment before."""
    Call.objects.filter(pk=approved).update(start_by=timezone.now())

    assert claim(approved, owner="here") is None

    assert Call.objects.get(pk=approved).state == State.QUEUED
    end_the_late()
    assert Call.objects.get(pk=approved).state == State.EXPIRED


def test_a_statement_that_is_none_is_told_apart_like_any_other(send_mail: Tool) -> None:
    """What nobody could have written holds up no worker."""
    assert differences("{", of(send_mail)) == ["the statement itself"]
    assert differences("[1]", of(send_mail)) == ["the statement itself"]


def test_other_arguments_are_another_statement(send_mail: Tool) -> None:
    one, other = of(send_mail, arguments=b'{"a":1}'), of(send_mail, arguments=b'{"a": 1}')

    assert call_digest(one) != call_digest(other)
    assert differences(one, other) == ["the arguments"]


def test_the_digest_is_that_of_the_written_form(send_mail: Tool) -> None:
    """A change of these bytes makes every waiting call superseded: then change DOMAIN too."""
    assert call_digest('{"a":1}') == (
        "f0351a1bb2786fc35acfd883ba741c8004384af11a79f2bff50dd141c3b5fa95"
    )


@pytest.mark.parametrize("seen", ["", "0" * 64])
def test_who_saw_something_else_decides_nothing(held: UUID, alice: User, seen: str) -> None:
    approval = Approval.objects.for_queue().get(pk=held)

    with pytest.raises(DecisionRefused, match="Look again"):
        services.vote(approval, by=alice, approve=True, seen_digest=seen)

    assert Call.objects.get(pk=held).state == State.HELD
    assert not Vote.objects.exists()


def test_a_call_that_is_bound_to_nothing_can_be_neither_approved_nor_sent(
    scout: Agent, send_mail: Tool, alice: User
) -> None:
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, statement="")
    queued = scenery.call(
        scout, send_mail, {**scenery.MAIL, "body": "x"}, State.QUEUED, statement=""
    )

    with pytest.raises(DecisionRefused):
        services.vote(
            Approval.objects.for_queue().get(pk=held), by=alice, approve=True, seen_digest=""
        )
    assert claim(queued, owner="here") is None
    assert "not bound" in Call.objects.get(pk=queued).outcome


@pytest.mark.parametrize("column", ["statement", "call_digest"])
def test_nobody_changes_what_was_decided_on(held: UUID, column: str) -> None:
    refused = pytest.raises(DatabaseError, match="only by an amendment while the call is held")
    with refused, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE calls_call SET {column} = 'x' WHERE id = %s", [held])


def test_the_card_shows_the_fingerprint_and_posts_the_digest(
    client: Client, held: UUID, alice: User
) -> None:
    client.force_login(alice)
    digest = Call.objects.get(pk=held).call_digest

    page = client.get(f"/queue/{held}/").text

    assert f">{digest[:8]}</li>" in page
    assert f'name="seen" value="{digest}"' in page


def test_the_database_takes_no_vote_of_the_agents_owner(held: UUID, scout: Agent) -> None:
    own = {"approval_id": held, "person": scout.owner, "approve": True, "seen_digest": "x" * 64}

    with pytest.raises(DatabaseError, match="that they have a part in"), transaction.atomic():
        Vote.objects.create(**own)

    assert not Vote.objects.exists()
