"""The access review: what it says of whom, and what a sign-off is good for."""

import csv
import hashlib
import io
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts import access_review, custom_roles, service_accounts, services
from accounts.access_review import COLUMNS
from accounts.custom_roles import RoleTerms
from accounts.models import Agent, ServiceToken, User
from accounts.roles import Role
from audit.models import Entry
from tests.console import scenery

pytestmark = pytest.mark.django_db
PAGE, SIGN = "/access-review/", "/access-review/sign-off/"


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def as_ines(ines: User) -> Client:
    return signed_in(ines)


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def rows(client: Client) -> list[dict[str, str]]:
    text = client.get(reverse("accounts:export_access_review")).content.decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def of(client: Client, name: str) -> list[dict[str, str]]:
    return [row for row in rows(client) if row["name"] == name]


def sign(client: Client, digest: str | None = None, reason: str = "Quarterly review.") -> str:
    seen = client.get(PAGE).context["digest"] if digest is None else digest
    return client.post(SIGN, {"digest": seen, "reason": reason}, follow=True).text


def signed() -> list[Entry]:
    return list(Entry.objects.filter(action="access_review.signed"))


def test_a_role_is_listed_with_who_gave_it_and_when(ada: User, vera: User, as_ines: Client) -> None:
    services.set_groups(vera, Group.objects.filter(name__in=["Viewer", "Operator"]), by=ada)

    entry = Entry.objects.get(action="person.groups_set")
    given, unknown = of(as_ines, "vera")
    assert (given["access"], given["given_by"]) == ("Operator", "ada")
    assert given["since"] == entry.at.isoformat(timespec="seconds")
    assert "registry.change_server" in given["permissions"]
    # Without an entry nobody is named.
    assert (unknown["access"], unknown["given_by"], unknown["since"]) == ("Viewer", "", "")
    page = as_ines.get(PAGE).text
    assert "by ada" in page
    assert "Access without a date" in page


def test_the_origin_of_a_role_follows_a_renamed_user(
    ada: User, vera: User, as_ines: Client
) -> None:
    services.set_groups(vera, Group.objects.filter(name="Operator"), by=ada)
    services.rename(vera, "vera2", by=ada)

    assert [row["given_by"] for row in of(as_ines, "vera2")] == ["ada"]


def test_a_role_that_two_administrators_gave_names_both(
    ada: User, vera: User, as_ines: Client
) -> None:
    eve = scenery.person("eve", Role.ADMINISTRATOR)
    services.set_groups(vera, Group.objects.filter(name="Approver"), by=ada)
    signed_in(eve).post(
        reverse("accounts:answer_request", args=[vera.role_changes.get().pk]), {"answer": "confirm"}
    )

    assert [row["given_by"] for row in of(as_ines, "vera")] == ["ada, eve"]


def test_a_custom_role_is_listed_with_its_tags_and_permissions(
    ada: User, vera: User, as_ines: Client
) -> None:
    terms = RoleTerms(frozenset({"registry.operate_server"}), server_tags=("payments",))
    role = custom_roles.create("Payments", description="Operates", terms=terms, by=ada)
    services.set_groups(vera, [role.group], by=ada)

    (row,) = of(as_ines, "vera")
    assert (row["access"], row["limited_to"]) == ("Payments", "server:payments")
    assert row["permissions"] == "registry.operate_server"
    assert f"/roles/{role.pk}/" in as_ines.get(PAGE).text


def test_service_accounts_and_agents_are_listed_with_their_last_use(
    ada: User, scout: Agent, as_ines: Client
) -> None:
    robot = service_accounts.create(
        "robot", purpose="Reports", scopes=["registry.view_server"], by=ada
    )
    service_accounts.set_scopes(robot, ["registry.view_server", "calls.view_call"], by=ada)
    service_accounts.issue_token(robot, by=ada)
    service_accounts.create("keys", purpose="Keys", scopes=["accounts.view_agenttoken"], by=ada)
    ServiceToken.objects.update(last_used_at=datetime(2026, 1, 2, tzinfo=UTC))

    calls, servers = of(as_ines, "robot")
    assert (calls["access"], servers["access"]) == ("calls.view_call", "registry.view_server")
    assert {calls["given_by"], servers["given_by"]} == {"ada"}
    assert calls["last_used"] == "2026-01-02T00:00:00+00:00"
    (row,) = of(as_ines, "scout")
    assert (row["kind"], row["access"], row["given_by"]) == ("agent", "bob", "command line")
    page = as_ines.get(f"{PAGE}?kind=service_account").text
    # Listed by what they are for and by who gave them when: robot twice, keys once.
    assert page.index("<strong>Read<") < page.index("View calls") < page.index("View servers")
    assert page.count("<strong>Read<") == page.count("by ada") == 3
    assert "scout" in as_ines.get(f"{PAGE}?kind=agent").text
    as_ines.cookies["django_language"] = "zh-hans"
    assert "操作者：命令行" in as_ines.get(f"{PAGE}?kind=agent").text
    # Its name in English has an apostrophe.
    assert "查看智能体的令牌" in as_ines.get(f"{PAGE}?kind=service_account").text


def test_a_sign_off_is_an_entry_with_the_digest_of_the_file(
    ada: User, ines: User, as_ines: Client
) -> None:
    assert "Nobody has signed it off yet." in as_ines.get(PAGE).text
    page = sign(as_ines)

    (entry,) = signed()
    assert (entry.actor, entry.reason) == ("ines", "Quarterly review.")
    assert entry.details["holders"] == {"person": 2}
    out = io.StringIO()
    lines = [list(COLUMNS), *([row[name] for name in COLUMNS] for row in rows(as_ines))]
    csv.writer(out, lineterminator="\r\n").writerows(line[:-1] for line in lines)
    assert entry.details["sha256"] == hashlib.sha256(out.getvalue().encode()).hexdigest()
    assert "The access review is signed off." in page
    assert "Access is the same now." in page


@pytest.mark.long
def test_use_changes_no_digest_and_a_given_role_does(
    ada: User, vera: User, as_ines: Client
) -> None:
    sign(as_ines)
    signed_in(vera).get("/")
    assert "Access is the same now." in as_ines.get(PAGE).text

    services.set_groups(vera, Group.objects.filter(name="Operator"), by=ada)
    assert "Access changed since." in as_ines.get(PAGE).text


def test_what_changed_since_it_was_seen_is_not_signed_off(
    ada: User, vera: User, as_ines: Client
) -> None:
    seen = as_ines.get(PAGE).context["digest"]
    services.set_groups(vera, Group.objects.filter(name="Operator"), by=ada)

    assert "Access changed since you opened this page." in sign(as_ines, seen)
    assert not signed()


@pytest.mark.parametrize("reason", ["", "   "])
def test_no_sign_off_is_without_a_reason(as_ines: Client, reason: str) -> None:
    assert "Give a reason." in sign(as_ines, reason=reason)
    assert not signed()


def test_administrators_read_it_and_sign_nothing(ada: User) -> None:
    client = signed_in(ada)
    page = client.get(PAGE)

    assert "Your sign-off covers" not in page.text
    asked = {"digest": page.context["digest"], "reason": "Mine."}
    assert client.post(SIGN, asked).status_code == 403
    assert not signed()


@pytest.mark.parametrize("role", [Role.APPROVER, Role.OPERATOR, Role.VIEWER])
def test_others_read_nothing_of_it(role: Role) -> None:
    client = signed_in(scenery.person("otto", role))

    assert [client.get(at).status_code for at in (PAGE, f"{PAGE}export/")] == [403, 403]
    assert client.post(SIGN, {"reason": "Mine."}).status_code == 403


def test_nothing_is_signed_off_by_reading(as_ines: Client) -> None:
    assert as_ines.get(SIGN).status_code == 405


def test_a_name_is_no_formula_in_a_spreadsheet(as_ines: Client) -> None:
    User.objects.create(username="@sum")

    assert "'@sum" in [row["name"] for row in rows(as_ines)]


@pytest.mark.long
def test_more_users_take_no_more_queries_and_come_by_pages(as_ines: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            as_ines.get(PAGE)
        return len(asked)

    queries()  # What a process keeps is read by its first page.
    before = queries()
    for number in range(60):
        scenery.person(f"user-{number:02}", Role.VIEWER)

    assert queries() == before
    assert "user-59" not in as_ines.get(PAGE).text
    later = as_ines.get(f"{PAGE}?beyond=50").text
    assert "user-59" in later
    assert "back=0" in later
    assert as_ines.get(f"{PAGE}?beyond=x").status_code == 200


def test_without_agents_and_accounts_the_page_says_so(as_ines: Client) -> None:
    assert "No agents yet" in as_ines.get(f"{PAGE}?kind=agent").text
    assert "No service accounts yet" in as_ines.get(f"{PAGE}?kind=service_account").text


def test_a_report_is_of_everything_at_once(ada: User, scout: Agent) -> None:
    found: Any = access_review.report().counts

    assert found == {"person": 2, "agent": 1}
