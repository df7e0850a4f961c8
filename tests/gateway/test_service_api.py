"""Service accounts read by REST what their scopes say, and decide nothing."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.utils import timezone

from accounts import service_accounts, services, tokens
from accounts.models import Agent, ServiceAccount, ServiceToken, User
from accounts.roles import Role
from accounts.service_accounts import SCOPES
from approvals import disabling
from approvals.models import Approval
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from registry.models import Tool
from tests.accounts import service_tokens
from tests.console import scenery

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(db: None) -> User:
    """May give every scope there is."""
    return scenery.person("ada", *Role)


@pytest.fixture
def robot(ada: User) -> ServiceAccount:
    return service_accounts.create("robot", purpose="Reports", scopes=SCOPES, by=ada)


@pytest.fixture
def token(robot: ServiceAccount, ada: User) -> str:
    return service_tokens.issue(robot, by=ada)


@pytest.fixture
def send(ada: User) -> Tool:
    return scenery.server("mailer", ada, scenery.SEND).tools.get()


def ask(path: str, token: str, method: str = "GET", **given: Any) -> Any:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Client().generic(method, f"/api/v1/{path}", headers=headers, **given)


PATHS = {
    "servers": "registry.view_server",
    "tools": "registry.view_tool",
    "toolsets": "registry.view_toolset",
    "agents": "accounts.view_agent",
    "calls": "calls.view_call",
    "approvals": "approvals.view_approval",
    "entries": "audit.view_entry",
}


def actions() -> list[str]:
    found = Entry.objects.filter(action__startswith="service_").order_by("id")
    return list(found.values_list("action", flat=True))


@pytest.mark.parametrize("path", PATHS)
def test_each_list_is_there(path: str, token: str, send: Tool, scout: Agent) -> None:
    scenery.call(scout, send, scenery.MAIL, State.HELD)

    answer = ask(path, token)

    assert answer.status_code == 200
    assert answer.json()["items"]


@pytest.mark.parametrize(("path", "scope"), PATHS.items())
def test_a_scope_that_is_missing_is_named(path: str, scope: str, ada: User) -> None:
    others = [one for one in SCOPES if one != scope]
    robot = service_accounts.create("robot", purpose="Reports", scopes=others, by=ada)
    answer = ask(path, service_tokens.issue(robot, by=ada))

    assert answer.status_code == 403
    assert answer["Content-Type"] == "application/problem+json"
    assert scope in answer.json()["detail"]


def test_an_empty_filter_is_no_missing_one(token: str, send: Tool, scout: Agent) -> None:
    scenery.call(scout, send, scenery.MAIL, State.HELD)

    assert ask("calls?agent=", token).json()["items"] == []
    assert len(ask("calls?agent=scout", token).json()["items"]) == 1


def test_entries_are_as_many_as_the_limit(token: str) -> None:
    first = ask("entries?limit=1", token).json()
    second = ask(f"entries?limit=1&cursor={first['next']}", token).json()

    assert [len(page["items"]) for page in (first, second)] == [1, 1]
    assert first["items"][0]["id"] > second["items"][0]["id"]


def test_lists_go_on_at_their_cursor(token: str, send: Tool, scout: Agent) -> None:
    made = {str(scenery.call(scout, send, scenery.MAIL, State.QUEUED)) for _n in range(3)}

    first = ask("calls?limit=2", token).json()
    second = ask(f"calls?limit=2&cursor={first['next']}", token).json()

    assert {one["id"] for one in first["items"] + second["items"]} == made
    assert second["next"] is None


@pytest.mark.parametrize(
    "query",
    [
        *(
            "calls?cursor=x",
            "entries?cursor=x",
            "calls?limit=0",
            "calls?limit=201",
            "calls?state=x",
            "entries?limit=0",
            "entries?rule=",
        ),
        # No row is there.
        *("standing-approvals?fields=x", "entries?fields=x&agent=nobody"),
        *("servers?cursor=%00", "tools?server=%00", "calls?agent=%00", "calls?tool=a%00"),
        f"servers?limit={'1' * 5000}",
    ],
)
def test_a_wrong_query_is_said_to_be_wrong(query: str, token: str) -> None:
    answer = ask(query, token)

    assert answer.status_code == 400
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.long
def test_no_list_shows_arguments(token: str, send: Tool, scout: Agent) -> None:
    call = scenery.call(scout, send, scenery.MAIL, State.HELD)

    for path in (*PATHS, f"calls/{call}"):
        assert "Minutes of Tuesday" not in ask(path, token).text


@pytest.mark.parametrize("verb", ["approve", "deny"])
def test_deciding_stays_a_persons_act(token: str, send: Tool, scout: Agent, verb: str) -> None:
    call = scenery.call(scout, send, scenery.MAIL, State.HELD)

    answer = ask(f"approvals/{call}/{verb}", token, "POST")

    assert answer.status_code == 403
    assert Approval.objects.get(pk=call).state == Approval.State.WAITING
    entry = Entry.objects.get(action="service_account.decision_refused")
    assert (entry.actor, entry.call_id) == ("service account robot", call)
    assert entry.reason == "A service account created by ada."


def test_cancelling_names_the_account_and_who_made_it(token: str, send: Tool, scout: Agent) -> None:
    call = scenery.call(scout, send, scenery.MAIL, State.QUEUED)

    answer = ask(f"calls/{call}/cancel", token, "POST")

    assert (answer.status_code, answer.json()["state"]) == (202, "cancelled")
    assert Entry.objects.of_call(call).filter(to_state="cancelled").get().actor == (
        "service account robot"
    )
    assert "ada" in Entry.objects.get(action="service_account.cancelled_call").reason


def test_what_people_decide_on_is_not_cancelled(token: str, send: Tool, scout: Agent) -> None:
    call = scenery.call(scout, send, scenery.MAIL, State.HELD)

    answer = ask(f"calls/{call}/cancel", token, "POST")

    assert answer.status_code == 409
    assert Call.objects.get(pk=call).state == State.HELD
    assert ask(f"calls/{uuid4()}/cancel", token, "POST").status_code == 404


def test_another_address_is_an_entry_and_the_same_one_is_none(token: str) -> None:
    ask("me", token)
    ask("me", token)
    ask("me", token, REMOTE_ADDR="192.0.2.7")

    seen = Entry.objects.filter(action="service_token.address_seen").order_by("id")
    assert [entry.details["address"] for entry in seen] == ["127.0.0.1", "192.0.2.7"]
    assert ServiceToken.objects.get().last_address == "192.0.2.7"


def refused(token: str) -> bool:
    return bool(ask("me", token).status_code == 401)


def test_a_token_ends_with_its_account_its_maker_and_its_time(
    robot: ServiceAccount, ada: User, token: str
) -> None:
    eve = scenery.person("eve", *Role)

    service_accounts.set_enabled(robot, False, by=ada)
    assert refused(token)
    service_accounts.set_enabled(robot, True, by=ada)
    assert not refused(token)

    # Whoever leaves has seen it.
    services.set_active(ada, False, by=eve)
    assert refused(token)
    services.set_active(ada, True, by=eve)

    ServiceToken.objects.update(expires_at=timezone.now())
    assert refused(token)


def test_a_leavers_token_does_not_come_back_with_the_account(ada: User, token: str) -> None:
    eve = scenery.person("eve", *Role)

    disabling.set_active(ada, False, by=eve)
    disabling.set_active(ada, True, by=eve)

    assert refused(token)
    assert actions().count("service_token.revoked") == 1


def test_a_rotated_token_works_on_for_an_hour(robot: ServiceAccount, ada: User, token: str) -> None:
    proof = service_tokens.proof_of(robot, ada)
    newer = service_accounts.rotate_token(ServiceToken.objects.get(), by=ada, proof=proof)

    assert not refused(token)
    assert not refused(newer)
    ended = ServiceToken.objects.order_by("expires_at").first()
    assert ended is not None
    assert ended.expires_at <= timezone.now() + timedelta(hours=1)

    service_accounts.revoke_token(ended, by=ada)
    assert refused(token)
    assert "service_token.rotated" in actions()


def test_it_opens_no_more_than_its_maker_has_now(token: str, ada: User) -> None:
    ada.groups.remove(Group.objects.get(name=Role.AUDITOR), Group.objects.get(name=Role.APPROVER))

    assert ask("approvals", token).status_code == 403
    assert ask("servers", token).status_code == 200
    assert "approvals.view_approval" not in ask("me", token).json()["permissions"]


def test_nobody_gives_what_they_do_not_have(db: None) -> None:
    eve = scenery.person("eve", Role.ADMINISTRATOR)

    with pytest.raises(services.AccountRefused, match="View approvals"):
        service_accounts.create("x", purpose="x", scopes=["approvals.view_approval"], by=eve)
    with pytest.raises(services.AccountRefused, match="REST asks for no permission"):
        service_accounts.create("x", purpose="x", scopes=["approvals.decide_approval"], by=ada_())
    with pytest.raises(services.AccountRefused, match="at least one"):
        service_accounts.create("x", purpose="x", scopes=[], by=eve)
    made = service_accounts.create("x", purpose="x", scopes=["calls.view_call"], by=eve)
    with pytest.raises(services.AccountRefused, match="1 to 90"):
        service_accounts.issue_token(made, by=eve, days=91)


def ada_() -> User:
    return scenery.person("zoe", *Role)


def test_no_token_is_taken_for_one_of_another_kind(token: str, scout_token: str, ada: User) -> None:
    assert refused(scout_token)
    assert refused("")
    assert refused(tokens.make(tokens.SERVICE))
    as_agent = Client().get("/api/tools", headers={"Authorization": f"Bearer {token}"})
    assert as_agent.status_code == 401
    # The same secret under the other prefix, with the right checksum.
    body = "csa" + token[3:].rpartition("_")[0]
    assert tokens.look_up(f"{body}_{tokens._checksum(body)}") is None


def test_a_session_opens_nothing_here_and_a_token_no_page(token: str, ada: User) -> None:
    browser = Client()
    browser.force_login(ada)

    assert browser.get("/api/v1/servers").status_code == 401
    page = Client().get("/calls/", headers={"Authorization": f"Bearer {token}"})
    assert page.status_code == 302
    assert page["Location"].startswith("/sign-in/")
