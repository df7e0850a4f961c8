"""The kill switch: what is frozen takes nothing, starts nothing and lets no time run out."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import freezes, services
from approvals.freezes import NotFrozen
from approvals.models import Approval
from approvals.services import DecisionRefused
from audit.models import Entry
from calls.models import Call, Freeze
from calls.queue.claiming import claim
from calls.queue.scheduling import whose_turn
from calls.record.states import State
from calls.services import end_the_late
from policies.models import Rule
from registry.models import Tool
from tests.console import scenery

pytestmark = pytest.mark.django_db
OTHER = {**scenery.MAIL, "body": "Another."}


@pytest.fixture
def send_mail(olga: User, scout: Agent) -> Tool:
    return scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


def everything(scout: Agent, tool: Tool) -> dict[str, Any]:
    return {}


def its_agent(scout: Agent, tool: Tool) -> dict[str, Any]:
    return {"agent": scout}


def its_server(scout: Agent, tool: Tool) -> dict[str, Any]:
    return {"server": tool.server}


def test_a_card_says_that_its_clock_does_not_run(
    client: Client, scout: Agent, send_mail: Tool, olga: User, ada: User
) -> None:
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD)
    client.force_login(scenery.person("alice", Role.APPROVER))
    address = reverse("approvals:detail", args=[held])
    assert "expires" in client.get(address).text

    made = freezes.begin(by=olga, reason="Odd mails go out.")

    page = client.get(address).text
    assert "expires" not in page
    assert re.search(r"suspended: \d+ min( \d+ s)? to decide once the emergency stop", page)
    freezes.end(made, by=ada, why="They stopped.")
    assert "expires" in client.get(address).text


SCOPES = pytest.mark.parametrize("scope", [everything, its_agent, its_server])
Scope = Callable[[Agent, Tool], dict[str, Any]]


def freeze(by: User, **what: Any) -> Freeze:
    return freezes.begin(by=by, reason="Odd mails go out.", **what)


def vote(held: UUID, by: User, *, approve: bool = True) -> None:
    approval = Approval.objects.for_queue().get(pk=held)
    digest = approval.call.call_digest
    services.vote(approval, by=by, approve=approve, seen_digest=digest)


@SCOPES
def test_what_waits_in_the_queue_does_not_start(
    scout: Agent, send_mail: Tool, olga: User, ada: User, scope: Scope
) -> None:
    queued = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    rule_allows()
    frozen = freeze(olga, **scope(scout, send_mail))

    assert whose_turn(most=10) == []
    assert claim(queued, owner="here") is None
    assert Call.objects.get(pk=queued).state == State.QUEUED

    freezes.end(frozen, by=ada, why="It was a test.")

    assert whose_turn(most=10) == [queued]
    assert claim(queued, owner="here") is not None


def rule_allows() -> None:
    Rule.objects.create(name="All", effect="allow")


def test_others_are_not_concerned(scout: Agent, send_mail: Tool, olga: User, bob: User) -> None:
    rule_allows()
    other = Agent.objects.create(name="other", owner=bob)
    freeze(olga, agent=other)
    queued = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)

    assert claim(queued, owner="here") is not None


@SCOPES
def test_no_time_runs_out_and_what_was_left_is_given_back(
    scout: Agent, send_mail: Tool, olga: User, ada: User, scope: Scope
) -> None:
    soon = {"decide_within_s": 60, "start_within_s": 60}
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, **soon)
    queued = scenery.call(scout, send_mail, OTHER, State.QUEUED, **soon)
    frozen = freeze(olga, **scope(scout, send_mail))
    # Two hours later.
    past = timezone.now() - timedelta(hours=2)
    Call.objects.update(
        decide_by=past + timedelta(seconds=60),
        start_by=past + timedelta(seconds=60),
        clock_stopped_at=past,
    )
    Approval.objects.update(decide_by=past + timedelta(seconds=60))

    services.expire()
    end_the_late()

    assert Call.objects.get(pk=held).state == State.HELD
    assert Call.objects.get(pk=queued).state == State.QUEUED

    freezes.end(frozen, by=ada, why="Found.")
    services.expire()
    end_the_late()

    for call in Call.objects.all():
        assert call.clock_stopped_at is None
        left = (call.decide_by if call.pk == held else call.start_by) - timezone.now()  # type: ignore[operator]
        assert timedelta(seconds=50) < left <= timedelta(seconds=60)
    approval = Approval.objects.get()
    assert approval.decide_by == Call.objects.get(pk=held).decide_by
    assert approval.state == Approval.State.WAITING


def test_of_two_freezes_the_last_to_end_lets_the_clock_run(
    scout: Agent, send_mail: Tool, olga: User, ada: User
) -> None:
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD)
    first, second = freeze(olga, agent=scout), freeze(olga)

    freezes.end(first, by=ada, why="Found.")
    assert Call.objects.get(pk=held).clock_stopped_at is not None
    freezes.end(second, by=ada, why="Found.")
    assert Call.objects.get(pk=held).clock_stopped_at is None


def test_nothing_is_approved_meanwhile_and_anything_may_be_refused(
    scout: Agent, send_mail: Tool, olga: User, alice: User
) -> None:
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD)
    freeze(olga)

    with pytest.raises(DecisionRefused, match="All calls have been suspended since"):
        vote(held, alice)
    vote(held, alice, approve=False)

    assert Call.objects.get(pk=held).state == State.DENIED


def test_who_froze_cannot_end_it(olga: User, ada: User) -> None:
    frozen = freeze(olga)

    with pytest.raises(NotFrozen, match="another user must check"):
        freezes.end(frozen, by=olga, why="Never mind.")
    with (
        pytest.raises(DatabaseError, match="calls_freeze_ended_by_another"),
        transaction.atomic(),
    ):
        Freeze.objects.update(ended_by=olga, ended_at=timezone.now())

    freezes.end(frozen, by=ada, why="Looked at it.")
    with pytest.raises(NotFrozen, match="Another user has already ended it"):
        freezes.end(frozen, by=ada, why="Again.")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM calls_freeze",
        "TRUNCATE calls_freeze",
        "UPDATE calls_freeze SET reason = 'x'",
        "UPDATE calls_freeze SET ended_at = now()",
        "UPDATE calls_freeze SET by_id = ended_by_id",
    ],
)
def test_the_record_of_it_is_not_rewritten(olga: User, statement: str) -> None:
    freeze(olga)

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_it_needs_a_reason_and_happens_once(olga: User, alice: User, ada: User) -> None:
    with pytest.raises(NotFrozen, match="Say why"):
        freezes.begin(by=olga, reason="")
    frozen = freeze(olga)
    with pytest.raises(NotFrozen, match="suspended already"):
        freeze(ada)
    with pytest.raises(NotFrozen, match="Say why it can resume"):
        freezes.end(frozen, by=ada, why="")
    with pytest.raises(NotFrozen, match="may not end"):
        freezes.end(frozen, by=alice, why="I may not.")


def test_both_are_entries(scout: Agent, send_mail: Tool, olga: User, ada: User) -> None:
    scenery.call(scout, send_mail, scenery.MAIL, State.HELD)
    frozen = freeze(olga, agent=scout)
    freezes.end(frozen, by=ada, why="Found it.")

    began, ended = Entry.objects.filter(action__startswith="freeze.").order_by("at")
    assert (began.actor, began.reason, began.agent) == ("olga", "Odd mails go out.", "scout")
    assert began.details["calls"] == 1
    assert (ended.actor, ended.reason) == ("ada", "Found it.")


# -- Pages ----------------------------------------------------------------------------------------


def test_every_page_says_so_and_it_is_ended_there(
    client: Client, scout: Agent, olga: User, ada: User
) -> None:
    client.force_login(olga)
    form = {"what": "agent:scout", "reason": "Odd mails go out."}

    page = client.post(reverse("approvals:freeze"), form, follow=True).text

    assert "You started it: another user must check" in page
    for address in ("/catalogue/", "/calls/", "/policies/"):
        assert "scout</span> is suspended." in client.get(address).text
    assert "Odd mails go out." in client.get("/emergency-stops/banner/").text

    client.force_login(ada)
    frozen = Freeze.objects.get()
    page = client.post(
        reverse("approvals:end_freeze", args=[frozen.pk]), {"why": "Found."}, follow=True
    ).text

    assert "It is resumed." in page
    assert "olga: Odd mails go out." in page
    assert "ada: Found." in page
    assert "is suspended." not in client.get("/calls/").text


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("mallory", 403), ("alice", 302)])
def test_who_may_freeze(
    client: Client, alice: User, bob: User, mallory: User, who: str, status: int
) -> None:
    client.force_login(User.objects.get(username=who))
    form = {"what": "everything", "reason": "Stop."}

    assert client.post(reverse("approvals:freeze"), form).status_code == status
    assert Freeze.objects.exists() == (status == 302)
    assert client.get(reverse("approvals:freeze")).status_code == 405


@pytest.mark.parametrize("what", ["agent:nobody", "server:none", "world", ""])
def test_what_is_not_there_is_not_frozen(client: Client, olga: User, what: str) -> None:
    client.force_login(olga)

    client.post(reverse("approvals:freeze"), {"what": what, "reason": "Stop."})

    assert not Freeze.objects.exists()
