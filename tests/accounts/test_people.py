"""Roles, the first person, and the links that sign people in."""

import threading
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import CommandError, call_command
from django.db import connections
from django.utils import timezone

from accounts import services
from accounts.models import Agent, AgentToken, SignInLink, User
from accounts.roles import PERMISSIONS, Role, ensure_roles
from accounts.tokens import look_up
from audit.models import Entry
from tests.conftest import person

MAY = {
    "approvals.decide_approval": {Role.APPROVER},
    "calls.view_payload": {Role.APPROVER, Role.AUDITOR},
    "calls.view_received": {Role.AUDITOR},
    "calls.cancel_call": {Role.ADMINISTRATOR, Role.OPERATOR},
    "registry.operate_server": {Role.OPERATOR},
    "audit.export_entry": {Role.AUDITOR},
    "audit.view_entry": {Role.ADMINISTRATOR, Role.AUDITOR},
    "accounts.change_user": {Role.ADMINISTRATOR},
    "policies.change_rule": {Role.ADMINISTRATOR},
    "registry.view_tool": set(Role),
    "calls.view_call": set(Role),
}


@pytest.mark.parametrize("permission", MAY)
@pytest.mark.parametrize("role", Role)
def test_a_role_may_what_its_name_says(db: None, role: Role, permission: str) -> None:
    assert person("somebody", role).has_perm(permission) == (role in MAY[permission])


def test_mallory_may_nothing(mallory: User) -> None:
    assert mallory.get_all_permissions() == set()


def test_no_role_may_change_entries_or_calls() -> None:
    granted = set().union(*PERMISSIONS.values())

    assert {p for p in granted if p.startswith(("audit.", "calls.", "approvals."))} == {
        "audit.view_entry",
        "audit.export_entry",
        "calls.view_call",
        "calls.view_payload",
        "calls.view_received",
        "calls.cancel_call",
        # What a call asked and got, with an entry; never its entries.
        "calls.erase_payload",
        "calls.begin_freeze",
        "calls.end_freeze",
        "approvals.view_approval",
        "approvals.decide_approval",
        "approvals.view_grant",
        "approvals.revoke_grant",
    }


def test_roles_are_put_right_again_and_it_is_recorded(db: None) -> None:
    ensure_roles()
    assert ensure_roles() == []
    viewer = Group.objects.get(name=Role.VIEWER)
    viewer.permissions.add(Permission.objects.get(codename="decide_approval"))

    output = StringIO()
    call_command("ensure_roles", stdout=output)

    assert output.getvalue() == "Set: Viewer.\n"
    assert not viewer.permissions.filter(codename="decide_approval").exists()
    assert Entry.objects.newest_first()[0].details == {"role": "Viewer"}


def test_the_first_person_may_do_all_that_needs_a_person(db: None) -> None:
    admin = services.first_administrator()

    assert admin.username == "admin"
    assert not admin.has_usable_password()
    assert not admin.is_superuser
    for permission in MAY:
        assert admin.has_perm(permission), permission
    assert Entry.objects.filter(action="person.created").count() == 1


def test_there_is_only_one_first_person(db: None) -> None:
    assert services.first_administrator() == services.first_administrator()
    assert Entry.objects.filter(action="person.created").count() == 1


def test_whoever_administers_already_is_the_first_person(db: None) -> None:
    carol = person("carol", Role.ADMINISTRATOR)

    assert services.first_administrator() == carol
    assert not User.objects.filter(username="admin").exists()


def _text(link: str) -> str:
    return link.rstrip("/").rsplit("/", 1)[1]


def test_a_link_signs_in_once(mallory: User) -> None:
    link = services.sign_in_link(mallory)

    assert link.startswith("http://127.0.0.1:8000/sign-in/")
    assert services.redeem_sign_in_link(_text(link)) == mallory
    with pytest.raises(services.LinkRefused):
        services.redeem_sign_in_link(_text(link))
    assert Entry.objects.filter(action="person.signed_in", actor="mallory").count() == 1


@pytest.mark.parametrize("text", ["", "x", "é", "\0", "A" * 43])
def test_an_invented_link_signs_nobody_in(mallory: User, text: str) -> None:
    services.sign_in_link(mallory)

    with pytest.raises(services.LinkRefused):
        services.redeem_sign_in_link(text)


def test_a_link_is_good_for_a_day(mallory: User) -> None:
    text = _text(services.sign_in_link(mallory))
    soon = SignInLink.objects.get().expires_at - timezone.now()
    assert timedelta(hours=23) < soon <= timedelta(hours=24)

    SignInLink.objects.update(expires_at=timezone.now())

    with pytest.raises(services.LinkRefused):
        services.redeem_sign_in_link(text)


def test_a_link_does_not_sign_in_whoever_left(mallory: User) -> None:
    text = _text(services.sign_in_link(mallory))
    User.objects.update(is_active=False)

    with pytest.raises(services.LinkRefused):
        services.redeem_sign_in_link(text)


def test_a_link_is_kept_only_as_a_digest(mallory: User) -> None:
    text = _text(services.sign_in_link(mallory))

    assert text.encode() not in bytes(SignInLink.objects.get().digest)
    assert text not in str(Entry.objects.values_list("details", "reason"))


@pytest.mark.django_db(transaction=True)
def test_of_two_who_follow_a_link_at_once_one_gets_in() -> None:
    text = _text(services.sign_in_link(person("mallory")))
    ready, inside, refused = threading.Barrier(8), [], []

    def follow() -> None:
        ready.wait()
        try:
            inside.append(services.redeem_sign_in_link(text))
        except services.LinkRefused:
            refused.append(1)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=follow) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(inside), len(refused)) == (1, 7)


def test_a_token_is_issued_from_the_command_line(bob: User) -> None:
    output = StringIO()

    call_command("issue_token", "scout", "--owner", "bob", "--days", "7", stdout=output)

    bearer = look_up(output.getvalue().strip())
    assert bearer is not None
    assert (bearer.agent_name, bearer.person_name) == ("scout", "bob")
    assert set(Entry.objects.values_list("actor", flat=True)) == {"command line"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["scout"], "There is no agent scout"),
        (["scout", "--owner", "nobody"], "There is no agent scout"),
        (["scout", "--owner", "bob", "--days", "91"], "1 to 90 days"),
    ],
)
def test_the_command_line_says_what_was_wrong(bob: User, arguments: list[str], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        call_command("issue_token", *arguments)

    assert not AgentToken.objects.exists()


@pytest.mark.parametrize("shown", [slice(None), slice(4, 12), slice(0, 12)])
def test_a_token_is_revoked_from_the_command_line(scout_token: str, shown: slice) -> None:
    output = StringIO()

    call_command("revoke_token", scout_token[shown], stdout=output)

    assert look_up(scout_token) is None
    assert output.getvalue() == f"{scout_token[:12]}_… of scout: revoked.\n"
    call_command("revoke_token", scout_token[shown], stdout=output)
    assert output.getvalue().endswith("was revoked before.\n")


def test_the_command_line_revokes_nothing_unknown(scout_token: str) -> None:
    with pytest.raises(CommandError, match="There is no token csa_00000000_…"):
        call_command("revoke_token", "csa_00000000_")

    assert look_up(scout_token) is not None


def test_an_agent_is_recorded_with_its_owner(scout: Agent) -> None:
    entry = Entry.objects.get(action="agent.created")

    assert (entry.actor, entry.agent, entry.details) == ("bob", "scout", {"owner": "bob"})
