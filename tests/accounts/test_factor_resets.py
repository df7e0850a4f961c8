"""Help for a lost second factor: two administrators, and nobody taken over."""

import re
import time
from concurrent.futures import Future, ThreadPoolExecutor
from io import StringIO

import pyotp
import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import (
    custom_roles,
    factor_resets,
    one_time_codes,
    passkeys,
    refusals,
    second_factor,
    services,
)
from accounts.actors import AccountRefused
from accounts.custom_roles import RoleTerms
from accounts.models import (
    Attempt,
    BrowserSession,
    CodeApp,
    FactorReset,
    Passkey,
    Proof,
    RoleChange,
    User,
)
from accounts.roles import Role
from accounts.stepup import Ticket, keep_code_proof
from audit.models import Entry
from core.errors import CountersignError
from notifications.events import Event, event_of
from notifications.recipients import account_of
from tests.approvals.test_stepping import passkey
from tests.console import scenery

pytestmark = pytest.mark.django_db
PAGE = "accounts:factor_reset"
BLOCKED = """SELECT EXISTS (SELECT FROM pg_locks l WHERE NOT l.granted
AND pg_backend_pid() = ANY (pg_blocking_pids(l.pid)))"""


def has_codes(person: User) -> User:
    one_time_codes.begin(person)
    CodeApp.objects.filter(person=person).update(confirmed_at=timezone.now())
    return User.objects.get(pk=person.pk)


@pytest.fixture
def ada(db: None) -> User:
    return has_codes(scenery.person("ada", Role.ADMINISTRATOR))


@pytest.fixture
def eve(db: None) -> User:
    return has_codes(scenery.person("eve", Role.ADMINISTRATOR))


@pytest.fixture
def lost(db: None) -> User:
    """An approver whose telephone is gone, and who is signed in somewhere."""
    return has_codes(scenery.person("lost", Role.APPROVER, password=scenery.PASSWORD))


def proof_of(by: User, person: User) -> Proof:
    return keep_code_proof(by, factor_resets.statement(person, by, Ticket.new(), None))


def ask(person: User, by: User, reason: str = "Telephone lost.") -> FactorReset:
    return factor_resets.request(person, by=by, reason=reason, proof=proof_of(by, person))


def confirm(reset: FactorReset, by: User) -> None:
    factor_resets.confirm(reset, by=by, proof=proof_of(by, reset.person))


def has_factor(person: User) -> bool:
    return User.objects.get(pk=person.pk).has_second_factor


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def entries() -> list[str]:
    found = Entry.objects.filter(action__startswith="person.factors")
    return [one.action for one in found.order_by("id")]


@pytest.mark.long
def test_two_administrators_remove_them_and_sessions_end(ada: User, eve: User, lost: User) -> None:
    theirs = signed_in(lost)
    key = theirs.session.session_key
    assert key
    BrowserSession.objects.create(person=lost, key=key, user_agent="", address="::1")

    reset = ask(lost, ada)
    assert has_factor(lost)
    confirm(reset, eve)

    assert not has_factor(lost)
    assert theirs.get("/profile/").status_code == 302
    assert entries() == ["person.factors_reset_requested", "person.factors_reset"]
    entry = Entry.objects.get(action="person.factors_reset")
    assert (entry.actor, entry.reason, entry.details["asked_by"]) == (
        "eve", "Telephone lost.", "ada"
    )  # fmt: skip
    change = RoleChange.objects.get(person=lost)
    assert (change.role, change.state) == (Role.APPROVER, "reset")
    # They get the mail, not who did it.
    assert event_of(entry.action, "") == Event.FACTORS_RESET
    assert account_of(entry) == lost.pk
    with pytest.raises(AccountRefused, match="answered this request first"):
        confirm(FactorReset.objects.get(), eve)


def test_who_asked_and_whose_they_are_do_not_confirm(ada: User, eve: User, lost: User) -> None:
    lost.groups.add(Group.objects.get(name=Role.ADMINISTRATOR))
    reset = ask(lost, ada)

    for by in (ada, lost):
        with pytest.raises(AccountRefused, match="Another administrator"):
            confirm(reset, by)
    User.objects.filter(pk=eve.pk).update(
        invited_by=ada, unconfirmed_until=services._unconfirmed_until()
    )
    with pytest.raises(AccountRefused, match="let the other in"):
        confirm(reset, User.objects.get(pk=eve.pk))
    assert has_factor(lost)
    assert entries() == ["person.factors_reset_requested"]


def test_who_asked_may_not_ask_any_more(ada: User, eve: User, lost: User) -> None:
    reset = ask(lost, ada)
    ada.groups.clear()
    scenery.person("third", Role.ADMINISTRATOR)

    with pytest.raises(AccountRefused, match="may not ask any more"):
        confirm(FactorReset.objects.get(pk=reset.pk), eve)


def test_nobody_removes_their_own(ada: User, eve: User) -> None:
    with pytest.raises(AccountRefused, match="their own"):
        ask(ada, ada)


@pytest.mark.parametrize("reason", [""])
def test_it_takes_a_reason(ada: User, eve: User, lost: User, reason: str) -> None:
    with pytest.raises(AccountRefused, match="Give a reason"):
        ask(lost, ada, reason)


def test_alone_it_stays_with_the_host(ada: User, lost: User) -> None:
    with pytest.raises(AccountRefused, match="reset_factors lost"):
        ask(lost, ada)
    second_factor.reset_at_host(lost)
    entry = Entry.objects.get(action="person.factors_reset")
    assert account_of(entry) == lost.pk
    assert not has_factor(lost)


def helper(ada: User) -> User:
    """Somebody who manages users, and nothing else."""
    terms = RoleTerms(frozenset({"accounts.view_user", "accounts.change_user"}))
    role = custom_roles.create("Help desk", description="Users", terms=terms, by=ada)
    made = has_codes(scenery.person("helper"))
    made.groups.add(role.group)
    return User.objects.get(pk=made.pk)


@pytest.mark.parametrize("more", ["Approver", "Administrator", "scoped", "own", "superuser"])
def test_nobody_with_more_rights_is_taken_over(ada: User, eve: User, lost: User, more: str) -> None:
    by = helper(ada)
    lost.groups.clear()
    assert factor_resets.why_not(User.objects.get(pk=lost.pk), by) == ""
    match more:
        case "scoped":
            terms = RoleTerms(frozenset({"registry.change_server"}), server_tags=("x",))
            made = custom_roles.create("Scoped", description="x", terms=terms, by=ada)
            lost.groups.add(made.group)
        case "own":
            lost.user_permissions.add(Permission.objects.get(codename="decide_approval"))
        case "superuser":
            User.objects.filter(pk=lost.pk).update(is_superuser=True)
        case role:
            lost.groups.add(Group.objects.get(name=role))

    with pytest.raises(AccountRefused, match="may do more than you"):
        ask(User.objects.get(pk=lost.pk), by)
    if more == "superuser":
        with pytest.raises(AccountRefused, match="may do more than you"):
            ask(User.objects.get(pk=lost.pk), ada)
    else:
        reset = ask(User.objects.get(pk=lost.pk), ada)
        with pytest.raises(AccountRefused, match="may do more than you"):
            confirm(reset, by)
    assert has_factor(lost)


@pytest.mark.long
def test_pages_ask_and_confirm_with_a_code_of_ones_own(ada: User, eve: User, lost: User) -> None:
    at = reverse(PAGE, args=[lost.pk])
    first, second = signed_in(ada), signed_in(eve)

    refused = first.post(at, {"reason": "Telephone lost."})
    assert refused.status_code == 403
    assert "Confirm with a passkey or a code of your own." in refused.text
    assert first.post(at, {"reason": "Telephone lost.", "code": "000000"}).status_code == 403
    assert not FactorReset.objects.exists()
    assert first.post(at, {"reason": "Telephone lost.", "code": code_of(ada)}).status_code == 302
    assert "Telephone lost." in second.get("/people/").text
    assert "Another administrator" in first.get(at).text
    asked = shown(second, lost)
    for _n in range(2):
        assert first.post(at, {**asked, "code": code_of(ada)}).status_code == 403
    entry = Entry.objects.get(action="confirmation.rejected")
    assert (entry.actor, entry.details["confirmed"]) == ("ada", str(FactorReset.objects.get()))
    assert "Another administrator" in entry.reason
    assert second.post(at, asked).status_code == 403
    assert has_factor(lost)
    assert second.post(at, {**asked, "code": code_of(eve)}).status_code == 302
    assert not has_factor(lost)
    assert Proof.objects.filter(person__in=[ada, eve]).count() == 2


def test_it_is_denied_without_a_trace_left_open(ada: User, eve: User, lost: User) -> None:
    ask(lost, ada)
    client = signed_in(eve)
    client.post(reverse(PAGE, args=[lost.pk]), {**shown(client, lost), "act": "deny"})

    assert has_factor(lost)
    assert entries()[-1] == "person.factors_reset_denied"
    assert factor_resets.pending(lost) is None


def shown(client: Client, person: User) -> dict[str, str]:
    """The hidden field that says which request the page shows."""
    page = client.get(reverse(PAGE, args=[person.pk])).text
    return dict(re.findall(r'<input type="hidden" name="(asked)" value="(\d+)">', page)[:1])


@pytest.mark.long
def test_whoever_asks_confirms_nothing_that_came_meanwhile(
    ada: User, eve: User, lost: User
) -> None:
    at = reverse(PAGE, args=[lost.pk])
    client = signed_in(eve)
    before = shown(client, lost)
    ask(lost, ada)

    answer = client.post(at, {**before, "reason": "Telephone lost.", "code": code_of(eve)})

    assert answer.status_code == 403
    assert "Check what is pending now" in answer.text
    options = client.post(reverse("accounts:factor_reset_options", args=[lost.pk]), before)
    assert "Check what is pending now" in options.json()["error"]
    assert has_factor(lost)
    # Nor another request than the one that the page showed.
    first = shown(client, lost)
    factor_resets.refuse(FactorReset.objects.get(), by=ada)
    ask(lost, ada, "Another reason.")
    assert client.post(at, {**first, "code": code_of(eve)}).status_code == 403
    assert client.post(at, {**first, "act": "deny"}).status_code == 403
    assert factor_resets.pending(lost) is not None
    assert has_factor(lost)


def test_a_passkey_signs_whether_it_asks_or_confirms(ada: User, eve: User, lost: User) -> None:
    reset, ticket = ask(lost, ada), Ticket.new()

    assert factor_resets.statement(lost, eve, ticket, None) != factor_resets.statement(
        lost, eve, ticket, reset
    )
    assert f"request {reset.pk}\n" in factor_resets.statement(lost, eve, ticket, reset)


def test_an_old_request_removes_no_factor_that_was_set_up_since(
    ada: User, eve: User, lost: User
) -> None:
    reset = ask(lost, ada)
    passkey(lost)

    with pytest.raises(AccountRefused, match="second factor since"):
        confirm(reset, eve)
    assert has_factor(lost)
    factor_resets.refuse(reset, by=eve)
    confirm(ask(lost, ada), eve)
    assert not has_factor(lost)


@pytest.mark.django_db(transaction=True)
def test_a_factor_that_is_added_at_this_moment_is_not_removed_unseen(
    ada: User, eve: User, lost: User
) -> None:
    """Two connections: the confirmation waits for whoever adds one, and sees it then."""
    reset, proof = ask(lost, ada), proof_of(eve, lost)

    def confirm_meanwhile() -> str:
        try:
            factor_resets.confirm(reset, by=eve, proof=proof)
        except AccountRefused as error:
            return str(error)
        finally:
            connection.close()
        return ""

    CodeApp.objects.filter(person=lost).update(confirmed_at=None)
    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            one_time_codes.confirm(lost, code_of(lost))
            confirmation = thread.submit(confirm_meanwhile)
            wait_until_blocked(confirmation)
        answer = confirmation.result()

    assert "second factor since" in answer
    assert has_factor(lost)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["code app", "passkey"])
def test_an_ended_session_adds_no_factor_during_a_reset(
    ada: User, eve: User, lost: User, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reset, proof = ask(lost, ada), proof_of(eve, lost)
    answer = type("Answer", (), {"credential_id": b"new", "credential_public_key": b"key",
                                 "sign_count": 0, "credential_backed_up": False})  # fmt: skip
    monkeypatch.setattr(passkeys, "verify_registration_response", lambda **_given: answer)
    CodeApp.objects.filter(person=lost).update(confirmed_at=None)
    passkey(lost)
    Passkey.objects.filter(person=lost).update(created_at=reset.asked_at)
    code = code_of(lost)
    key = signed_in(lost).session.session_key
    assert key
    BrowserSession.objects.create(person=lost, key=key, user_agent="", address="::1")

    def add() -> str:
        try:
            if kind == "passkey":
                passkeys.add(lost, "new", challenge="", answer="{}", session_key=key)
            else:
                one_time_codes.confirm(lost, code, session_key=key)
        except CountersignError as error:
            return str(error)
        finally:
            connection.close()
        return "added"

    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            factor_resets.confirm(reset, by=eve, proof=proof)
            added = thread.submit(add)
            wait_until_blocked(added)
        said = added.result()

    left = list(Passkey.objects.usable().filter(person=lost).values_list("name", flat=True))
    assert (said, left) == ("Your session ended. Sign in, then begin again.", [])
    assert not CodeApp.objects.filter(person=lost).exists()


def wait_until_blocked(job: Future[str]) -> None:
    """Until a statement of the job waits for this connection's lock."""
    until = time.monotonic() + 20
    with connection.cursor() as cursor:
        while not job.done() and time.monotonic() < until:
            cursor.execute(BLOCKED)
            if cursor.fetchone()[0]:
                return
    pytest.fail("It did not wait.")


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.APPROVER, Role.AUDITOR, Role.VIEWER])
def test_others_have_no_such_page(ada: User, eve: User, lost: User, role: Role) -> None:
    client = signed_in(scenery.person("other", role))
    at = reverse(PAGE, args=[lost.pk])

    assert client.get(at).status_code == 403
    assert client.post(at, {"reason": "x"}).status_code == 403
    assert client.post(reverse("accounts:factor_reset_options", args=[lost.pk])).status_code == 403


def code_of(person: User) -> str:
    """A code of the app that was not used yet."""
    app = CodeApp.objects.get(person=person)
    CodeApp.objects.filter(pk=app.pk).update(last_step=0)
    return pyotp.TOTP(one_time_codes.secret(app)).now()


def post_as(who: User, lost: User, reset: FactorReset) -> None:
    at = reverse(PAGE, args=[lost.pk])
    assert signed_in(who).post(at, {"asked": str(reset.pk), "code": "1"}).status_code == 403


@pytest.mark.long
def test_each_user_at_one_address_has_an_entry_of_their_own(
    ada: User, eve: User, lost: User
) -> None:
    lost.groups.add(*ada.groups.all())
    reset = ask(lost, ada)

    for who in (ada, lost, ada):
        post_as(who, lost, reset)

    rejected = Entry.objects.filter(action="confirmation.rejected")
    assert sorted(rejected.values_list("actor", flat=True)) == ["ada", "lost"]


@pytest.mark.long
def test_a_flood_by_nobody_hides_no_users_entry(
    ada: User, eve: User, lost: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "MOST", 3)
    reset = ask(lost, ada)
    for n in range(5):
        Client(REMOTE_ADDR=f"2001:db8:{n:x}::1").get("/sign-in/?next=https://evil.example/")
    assert Entry.objects.filter(action="sign_in.redirect_rejected").count() == 3

    post_as(ada, lost, reset)

    assert Entry.objects.filter(action="confirmation.rejected").count() == 1
    # Nor does a user's hide theirs.
    Attempt.objects.exclude(who__startswith="by ").delete()
    Client().get("/sign-in/?next=https://evil.example/")
    assert Entry.objects.filter(action="sign_in.redirect_rejected").count() == 4


def test_the_command_ends_sessions_too(lost: User) -> None:
    theirs = signed_in(lost)
    key = theirs.session.session_key
    assert key
    BrowserSession.objects.create(person=lost, key=key, user_agent="", address="::1")

    call_command("reset_factors", "lost", stdout=StringIO())

    assert theirs.get("/profile/").status_code == 302
    assert not BrowserSession.objects.exists()
    entry = Entry.objects.get(action="sessions.ended")
    assert (entry.actor_kind, entry.details["person"]) == ("system", "lost")


@pytest.mark.parametrize("name", ["add_passkey", "confirm_code_app"])
def test_pages_say_by_which_session_a_factor_is_added(
    lost: User, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []
    for module, verb in ((passkeys, "add"), (one_time_codes, "confirm")):
        monkeypatch.setattr(
            module, verb, lambda *_, session_key, **_more: given.append(session_key)
        )
    client = signed_in(lost)
    session = client.session
    session["passkey_challenge"] = ["", int(time.time())]
    session.save()

    client.post(reverse(f"accounts:{name}"), {"code": "1", "answer": "{}"})

    assert given == [session.session_key]
