"""What changes while a call is pending: who counts, and what would be sent. No vote is needed for
the call to learn of it, and none is taken that could come to nothing."""

from collections.abc import Callable
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import freezes
from approvals.models import Approval, Vote
from approvals.reevaluation import Reevaluation
from approvals.services import AlreadyDecided
from audit.models import Entry
from audit.services import SYSTEM
from calls.freezes import frozen
from calls.models import Call
from calls.queue.claiming import claim
from calls.record.states import State
from gateway.submit.description import described
from policies.models import Effect, Rule
from policies.services import save_rule
from policies.thresholds import Distinct, Threshold
from registry import services as registry
from registry.models import Server, Tool, Toolset
from tests.approvals.test_editing import edit
from tests.approvals.test_freezes import freeze
from tests.approvals.test_quorum import approver, back, hold, say
from tests.console import scenery

pytestmark = pytest.mark.django_db
PAYMENTS = Threshold(approve=2, source="group:payments")


@pytest.fixture
def send_mail(olga: User, scout: Agent) -> Tool:
    return scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())


@pytest.fixture
def held(scout: Agent, send_mail: Tool) -> UUID:
    return hold(scout, send_mail)


def look() -> None:
    """What each worker does every second."""
    Reevaluation().look()


def state_of(call_id: UUID) -> str:
    return Call.objects.get(pk=call_id).state


def disable(voter: User) -> None:
    User.objects.filter(pk=voter.pk).update(is_active=False)


def enable(voter: User) -> None:
    User.objects.filter(pk=voter.pk).update(is_active=True)


def lose(name: str) -> Callable[[User], None]:
    return lambda voter: voter.groups.remove(Group.objects.get(name=name))


def join(name: str) -> Callable[[User], None]:
    return lambda voter: voter.groups.add(Group.objects.get(name=name))


RETURNS = [
    pytest.param(disable, enable, id="account"),
    pytest.param(lose(Role.APPROVER), join(Role.APPROVER), id="role"),
    pytest.param(lose("payments"), join("payments"), id="group"),
]


@pytest.mark.long
@pytest.mark.parametrize(("go", "come_back"), RETURNS)
def test_a_quorum_that_a_return_meets_decides_without_another_vote(
    scout: Agent, send_mail: Tool, go: Callable[[User], None], come_back: Callable[[User], None]
) -> None:
    held = hold(scout, send_mail, PAYMENTS)
    carol, dora = approver("carol", "payments"), approver("dora", "payments")
    say(held, carol)
    go(carol)
    assert say(held, dora) == State.HELD
    look()
    assert state_of(held) == State.HELD

    come_back(carol)
    look()

    assert state_of(held) == State.QUEUED
    moved = Entry.objects.get(action="call.approved")
    assert (moved.actor_kind, moved.actor_id) == (SYSTEM.kind, SYSTEM.id)
    assert moved.reason == (
        "Approved by carol and dora. Counted again, since others may decide by now."
    )
    assert claim(held, owner="here") is not None


def test_a_no_that_counts_again_refuses(scout: Agent, send_mail: Tool) -> None:
    held = hold(scout, send_mail, Threshold(approve=2, deny=2))
    carol, dora = approver("carol"), approver("dora")
    say(held, carol, approve=False)
    disable(carol)
    assert say(held, dora, approve=False) == State.HELD

    enable(carol)
    look()

    call = Call.objects.get(pk=held)
    assert call.state == State.DENIED
    assert call.outcome.startswith("Denied by carol and dora.")


@pytest.mark.long
def test_nothing_that_others_do_approves_during_an_emergency_stop(
    scout: Agent, send_mail: Tool, olga: User
) -> None:
    """Of one team the first counts: once its vote is taken back, two others do."""
    held = hold(scout, send_mail, Threshold(approve=2, deny=2, distinct=Distinct.TEAM))
    carol = approver("carol", "north", "south")
    say(held, carol)
    say(held, approver("dora", "north"))
    assert say(held, approver("erik", "south")) == State.HELD
    stop = freeze(olga)

    back(held, carol)
    assert say(held, carol, approve=False) == State.HELD
    look()
    assert state_of(held) == State.HELD

    freezes.end(stop, by=scenery.person("ada", Role.ADMINISTRATOR), why="Found.")
    look()

    assert state_of(held) == State.QUEUED
    assert Entry.objects.get(action="call.approved").reason.startswith("Approved by dora and erik.")


def test_whose_vote_does_not_count_is_not_named(scout: Agent, send_mail: Tool) -> None:
    held = hold(scout, send_mail, PAYMENTS)
    carol = approver("carol", "payments")
    say(held, carol)
    disable(carol)
    say(held, approver("dora", "payments"))
    say(held, approver("erik", "payments"))

    moved = Entry.objects.get(action="call.approved")
    assert moved.reason == "Approved by dora and erik."


def test_a_no_that_comes_first_after_a_return_does_not_fail(scout: Agent, send_mail: Tool) -> None:
    """What the earlier votes come to by then is not the voter's doing."""
    held = hold(scout, send_mail, Threshold(approve=2, deny=2))
    carol = approver("carol")
    say(held, carol)
    disable(carol)
    say(held, approver("dora"))
    enable(carol)

    assert say(held, approver("erik"), approve=False) == State.QUEUED

    assert Approval.objects.get(pk=held).decided_by.username == "dora"  # type: ignore[union-attr]


def test_a_vote_of_the_same_team_counts_once_the_first_is_taken_back(
    scout: Agent, send_mail: Tool
) -> None:
    held = hold(scout, send_mail, Threshold(approve=2, distinct=Distinct.TEAM))
    both = approver("carol", "north", "south")
    say(held, both)
    say(held, approver("dora", "north"))
    assert say(held, approver("erik", "south")) == State.HELD

    back(held, both)

    assert state_of(held) == State.QUEUED


def test_nothing_is_decided_while_it_is_stopped(scout: Agent, send_mail: Tool, olga: User) -> None:
    held = hold(scout, send_mail, Threshold(approve=2))
    carol = approver("carol")
    say(held, carol)
    disable(carol)
    say(held, approver("dora"))
    enable(carol)
    freeze(olga)

    look()

    assert Call.objects.filter(frozen(), pk=held, state=State.HELD).exists()


def publish_another(tool: Tool) -> None:
    scenery.see(tool.server, {**scenery.SEND, "description": "Otherwise."})
    registry.publish_all(tool.server, by=tool.server.owner)


def change_at_its_server(tool: Tool) -> None:
    scenery.see(tool.server, {**scenery.SEND, "description": "Otherwise."})


def vanish(tool: Tool) -> None:
    Tool.objects.filter(pk=tool.pk).update(state=Tool.State.RETIRED)


def move_server(tool: Tool) -> None:
    Server.objects.filter(pk=tool.server_id).update(url="http://127.0.0.1:10/mcp")


def change_credential(tool: Tool) -> None:
    server = Server.objects.get(pk=tool.server_id)
    Server.objects.filter(pk=server.pk).update(connection_version=server.connection_version + 1)


def disable_server(tool: Tool) -> None:
    Server.objects.filter(pk=tool.server_id).update(enabled=False)


def lose_command(tool: Tool) -> None:
    """The program is in no catalogue of this host's."""
    Server.objects.filter(pk=tool.server_id).update(
        transport="stdio", url="", command="mailer", argv=["/bin/mailer"]
    )


def leave_toolset(tool: Tool) -> None:
    registry.remove_tool(Toolset.objects.get(), tool, by=None)


def deny(tool: Tool) -> None:
    save_rule(Rule(name="no", effect=Effect.DENY, reason="Not today."), by=SYSTEM)


def deny_large(tool: Tool) -> None:
    save_rule(Rule(name="no", effect=Effect.DENY, when='args.subject != ""'), by=SYSTEM)


def ask_two(tool: Tool) -> None:
    approver("carol")
    save_rule(Rule(name="two", effect=Effect.ASK, thresholds=[{"approve": 2}]), by=SYSTEM)


CHANGES = [
    (publish_another, "The tool's definition changed after the call was asked for.", "now"),
    (change_at_its_server, "no longer published. It changed and must be published", "later"),
    (vanish, "no longer published. It is gone from its server, or was taken back.", "no"),
    (disable_server, "The tool is no longer published. Its server is disabled.", "later"),
    (lose_command, "host's catalogue of commands no longer has “mailer”.", "later"),
    (move_server, "other now: the server's address", "now"),
    (change_credential, "other now: the server's credential or settings.", "now"),
    (leave_toolset, "The toolset no longer offers the tool to the agent.", "no"),
    (deny, "Policy now forbids the call: Not today.", "no"),
    (deny_large, "Policy now forbids the call: Rule “no” says so.", "changed"),
    (ask_two, "Policy now asks for more than this call waits for: 2 approvals", "now"),
]


@pytest.mark.parametrize(("change", "said", "again"), CHANGES)
def test_what_changed_makes_it_superseded_at_once(
    held: UUID, send_mail: Tool, change: Callable[[Tool], None], said: str, again: str, alice: User
) -> None:
    look()
    assert state_of(held) == State.HELD
    change(send_mail)

    look()

    call = Call.objects.get(pk=held)
    assert (call.state, call.executed) == (State.SUPERSEDED, "no")
    assert said in call.outcome
    assert Approval.objects.get(pk=held).state == Approval.State.SUPERSEDED
    assert Entry.objects.get(action="call.superseded").details["try_again"] == again
    told = described(call)["refusal"]
    assert (told["kind"], told["reason"], told["try_again"]) == ("superseded", call.outcome, again)


@pytest.mark.parametrize(("change", "said", "again"), CHANGES[:2] + CHANGES[-1:])
def test_no_vote_is_taken_that_could_come_to_nothing(
    client: Client,
    held: UUID,
    send_mail: Tool,
    change: Callable[[Tool], None],
    said: str,
    again: str,
    alice: User,
) -> None:
    client.force_login(alice)
    seen = {"seen": Call.objects.get(pk=held).call_digest}
    change(send_mail)

    page = client.post(
        reverse("approvals:approve", args=[held]), seen, headers={"HX-Request": "true"}
    ).text

    assert state_of(held) == State.SUPERSEDED
    assert not Vote.objects.exists()
    assert page.count("The call can no longer be sent, and was superseded:") == 1
    assert said.replace("'", "&#x27;") in page or said in page
    assert "data-approve" not in page


@pytest.mark.long
def test_a_card_does_not_say_never_changed_of_what_changed(
    client: Client, held: UUID, send_mail: Tool, alice: User
) -> None:
    client.force_login(alice)
    page = reverse("approvals:detail", args=[held])
    assert "never changed since it was first seen" in client.get(page).text
    publish_another(send_mail)

    before_the_sweep = client.get(page).text
    look()
    after = client.get(page).text

    for text in (before_the_sweep, after):
        assert "never changed" not in text
        assert "no longer the published one" in text
    assert "Superseded" in after
    assert "definition changed after the call was asked for" in after


def test_nor_is_it_edited(client: Client, held: UUID, send_mail: Tool, alice: User) -> None:
    approver("carol")
    move_server(send_mail)

    with pytest.raises(AlreadyDecided, match=r"superseded: .* the server's address"):
        edit(held, alice)

    assert state_of(held) == State.SUPERSEDED


def test_that_time_goes_on_is_no_change(scout: Agent, send_mail: Tool) -> None:
    held = hold(scout, send_mail)
    asked_at = Call.objects.get(pk=held).asked_at
    when = f"now > timestamp('{asked_at.isoformat()}')"
    save_rule(Rule(name="evening", effect=Effect.DENY, when=when), by=SYSTEM)
    assert timezone.now() > asked_at

    look()

    assert state_of(held) == State.HELD


def test_a_rule_that_asks_the_same_or_less_changes_nothing(
    scout: Agent, send_mail: Tool, alice: User
) -> None:
    held = hold(scout, send_mail, Threshold(approve=2, deny=2))
    approver("carol")
    for rule in (
        Rule(name="one", effect=Effect.ASK),
        Rule(name="two", effect=Effect.ASK, thresholds=[{"approve": 2}]),
        Rule(name="all", effect=Effect.ALLOW),
    ):
        save_rule(rule, by=SYSTEM)

    look()

    assert state_of(held) == State.HELD


def test_one_look_goes_on_where_the_last_one_had_no_time_left(
    scout: Agent, send_mail: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        scenery.call(scout, send_mail, {**scenery.MAIL, "subject": f"{n}"}, State.HELD)
    vanish(send_mail)
    monkeypatch.setattr("approvals.reevaluation.AT_MOST_S", 0.0)
    reevaluation = Reevaluation()

    left = []
    for _round in range(3):
        reevaluation.look()
        left.append(Approval.objects.waiting().count())

    assert left == [2, 1, 0]


def test_a_look_goes_on_behind_the_last_one_however_often_something_changes(
    scout: Agent, send_mail: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        scenery.call(scout, send_mail, {**scenery.MAIL, "subject": f"{n}"}, State.HELD)
    monkeypatch.setattr("approvals.reevaluation.AT_MOST_S", 0.0)
    seen: list[UUID] = []
    monkeypatch.setattr(
        "approvals.reevaluation._reevaluate", lambda approval, _book: seen.append(approval.pk)
    )
    reevaluation = Reevaluation()

    for name in ("one", "two", "three", "four"):
        save_rule(Rule(name=name, effect=Effect.ALLOW), by=SYSTEM)
        reevaluation.look()

    assert len(set(seen[:3])) == 3
    assert seen[3] == seen[0]


def test_an_approval_that_cannot_be_looked_at_is_named_and_holds_up_no_other(
    scout: Agent,
    send_mail: Tool,
    alice: User,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All at one look, however busy the machine is.
    monkeypatch.setattr("approvals.reevaluation.AT_MOST_S", 60.0)
    approver("carol")
    held = [
        scenery.call(scout, send_mail, {**scenery.MAIL, "subject": f"{n}"}, State.HELD)
        for n in range(3)
    ]
    Approval.objects.filter(pk=min(held)).update(thresholds=[{"approve": "many"}])
    save_rule(Rule(name="more", effect=Effect.ASK, thresholds=[{"approve": 2}]), by=SYSTEM)

    Reevaluation().look()

    assert {pk for pk in held if state_of(pk) == State.HELD} == {min(held)}
    (said,) = [record for record in caplog.records if record.name == "approvals.reevaluation"]
    assert (
        said.getMessage() == f"Approval {min(held)} could not be looked at again; the others are."
    )
    assert said.exc_info


def test_a_look_that_finds_nothing_changed_asks_one_question(
    held: UUID, django_assert_num_queries: Callable[[int], object]
) -> None:
    reevaluation = Reevaluation()
    reevaluation.look()

    with django_assert_num_queries(1):  # type: ignore[attr-defined]
        reevaluation.look()
