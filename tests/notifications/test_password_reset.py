"""A new password by mail: for who allowed it, once, and never round the second factor."""

import re
from datetime import timedelta
from typing import Any

import pyotp
import pytest
from django.contrib.auth import SESSION_KEY
from django.test import Client
from django.utils import timezone

from accounts import one_time_codes, password_reset, services
from accounts.attempts import OF_ASKER, OF_MAILBOX
from accounts.models import Attempt, User
from accounts.roles import Role
from audit.models import Entry
from notifications.cursor import read_entries
from notifications.models import Delivery, MailRecipient, Webhook
from notifications.sending import send_due
from tests.console import scenery
from tests.notifications.conftest import reader
from tests.notifications.receivers import Mailbox, text_of

ASK = "/password-reset/"
ALLOW = "/profile/notifications/password-reset/"
SECOND = "/sign-in/second-step/"
NEW = "a quiet harbour at dusk"
FORM = {"new_password1": NEW, "new_password2": NEW}


@pytest.fixture
def anna(db: None, settings: Any, cursor: None) -> User:
    # Passwords that cost nothing to check.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    made = reader(scenery.person("anna", Role.APPROVER, password=scenery.PASSWORD), "test")
    password_reset.set_allowed(made, True)
    return made


@pytest.fixture
def totp(anna: User) -> pyotp.TOTP:
    made = pyotp.TOTP(one_time_codes.secret(one_time_codes.begin(anna)))
    one_time_codes.confirm(anna, made.at(timezone.now() - timedelta(seconds=30)))
    return made


def ask(client: Client, address: str = "anna@example.org") -> Any:
    return client.post(ASK, {"address": address})


def notify() -> None:
    """What the sweep does within a second."""
    read_entries()
    send_due()


def link_in(mailbox: Mailbox) -> str:
    found = re.search(r"http://[^/]+(/password-reset/\S+)", text_of(mailbox.messages[-1]))
    assert found
    return found[1]


def link(client: Client, mailbox: Mailbox) -> str:
    ask(client)
    notify()
    return link_in(mailbox)


def has_password(password: str) -> bool:
    return User.objects.get(username="anna").check_password(password)


def is_in(client: Client) -> bool:
    return SESSION_KEY in client.session


@pytest.mark.long
def test_a_link_sets_a_password_once_and_ends_all_sessions(
    client: Client, anna: User, mailbox: Mailbox, webhook: Webhook
) -> None:
    elsewhere = Client()
    elsewhere.force_login(anna)
    assert "a link is on its way" in ask(client).text
    assert mailbox.messages == []
    notify()
    assert mailbox.recipients == ["anna@example.org"]
    address = link_in(mailbox)
    # What looks into mail uses nothing up.
    assert "For “anna”" in client.get(address).text

    response = client.post(address, FORM)

    assert response["Location"] == "/sign-in/?reset=1"
    assert has_password(NEW)
    assert not is_in(client)
    assert elsewhere.get("/profile/").status_code == 302
    entry = Entry.objects.get(action="person.password_set")
    assert (entry.actor, entry.reason) == ("anna", "By a link sent by mail.")
    assert Entry.objects.get(action="password_reset.requested").details["person"] == "anna"
    assert not Delivery.objects.filter(webhook=webhook).exists()
    # The link is in no row, and good for nothing more.
    token = address.rstrip("/").rpartition("/")[2]
    assert token not in str(list(Entry.objects.values())) + str(list(Delivery.objects.values()))
    assert client.get(address).status_code == 403
    again = client.post(address, {"new_password1": "other words", "new_password2": "other words"})
    assert again.status_code == 403
    assert has_password(NEW)


@pytest.mark.long
def test_the_second_factor_is_asked_for_before_the_password_is_set(
    client: Client, anna: User, totp: pyotp.TOTP, mailbox: Mailbox
) -> None:
    thief, elsewhere = Client(), Client()
    elsewhere.force_login(anna)
    address = link(client, mailbox)
    # Who reads the mail gets neither in nor the password changed.
    assert thief.post(address, FORM)["Location"] == SECOND
    assert thief.post(SECOND, {"code": "000000"}).status_code == 403
    assert thief.get("/profile/").status_code == 302
    assert has_password(scenery.PASSWORD)
    assert elsewhere.get("/profile/").status_code == 200

    assert client.post(address, FORM)["Location"] == SECOND
    told = client.post(SECOND, {"code": totp.now()}, follow=True)

    assert "Your password is set, and all other sessions have ended." in told.text
    assert is_in(client)
    assert has_password(NEW)
    assert elsewhere.get("/profile/").status_code == 302
    entry = Entry.objects.get(action="person.signed_in")
    assert (entry.reason, entry.details["second_factor"]) == ("By a link sent by mail.", "totp")
    # The thief's first step ended with the old password.
    assert thief.get(SECOND)["Location"] == "/sign-in/"
    assert thief.post(address, FORM).status_code == 403


def test_who_took_the_second_step_too_late_is_told_that_the_password_was_not_set(
    client: Client, anna: User, totp: pyotp.TOTP, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post(link(client, mailbox), FORM)

    def refuse(*_given: object) -> None:
        raise password_reset.ResetRefused

    monkeypatch.setattr(password_reset, "finish", refuse)
    told = client.post(SECOND, {"code": totp.now()}, follow=True)

    assert "The password was not set. Ask for another link." in told.text
    assert not is_in(client)
    assert has_password(scenery.PASSWORD)


def test_of_two_who_use_it_at_once_one_sets_a_password(anna: User) -> None:
    text = password_reset.link_text(anna)
    first, second = password_reset.person_of(text), password_reset.person_of(text)
    password_reset.finish(first, "first")

    with pytest.raises(password_reset.ResetRefused):
        password_reset.finish(second, "second")

    assert User.objects.get(pk=anna.pk).password == "first"


@pytest.mark.long
@pytest.mark.parametrize("who", ["nobody", "not confirmed", "not allowed", "disabled"])
def test_an_answer_tells_nobody_who_is_here(
    client: Client, anna: User, mailbox: Mailbox, who: str
) -> None:
    known = ask(Client())
    notify()
    mailbox.messages.clear()
    if who == "not confirmed":
        MailRecipient.objects.update(confirmed_at=None)
    elif who == "not allowed":
        password_reset.set_allowed(anna, False)
    elif who == "disabled":
        User.objects.filter(pk=anna.pk).update(is_active=False)

    answer = ask(client, "ghost@example.org" if who == "nobody" else "anna@example.org")
    notify()

    assert mailbox.messages == []
    assert (answer.status_code, without_token(answer.text)) == (200, without_token(known.text))
    assert answer.cookies.keys() == known.cookies.keys()
    # Both leave one entry and one attempt: neither takes longer.
    assert Entry.objects.filter(action="password_reset.requested").count() == 2
    assert Attempt.objects.filter(kind="reset").count() == 2
    entry = Entry.objects.filter(action="password_reset.requested").order_by("-pk").first()
    assert entry
    assert entry.details["person"] == ""
    assert "@" not in str(entry.details)


def without_token(page: str) -> str:
    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", page)


@pytest.mark.parametrize("address", ["anna@example.org", "ghost@example.org"])
def test_one_mailbox_gets_few_links_from_anywhere(
    anna: User, mailbox: Mailbox, address: str
) -> None:
    for number in range(OF_MAILBOX):
        assert ask(Client(REMOTE_ADDR=f"192.0.2.{number}"), address.upper()).status_code == 200

    refused = ask(Client(REMOTE_ADDR="192.0.2.99"), address)

    assert refused.status_code == 429
    assert "Wait 15 minutes" in refused.text


@pytest.mark.long
def test_one_address_asks_for_few_links(client: Client, anna: User) -> None:
    for number in range(OF_ASKER):
        assert ask(client, f"ghost{number}@example.org").status_code == 200

    assert ask(client).status_code == 429
    assert ask(Client(REMOTE_ADDR="192.0.2.9")).status_code == 200


@pytest.mark.parametrize(
    "change", ["late", "disabled and enabled", "signed in", "password", "disallowed", "allowed"]
)
def test_a_link_does_not_outlive(
    client: Client, anna: User, mailbox: Mailbox, change: str, settings: Any
) -> None:
    address = link(client, mailbox)
    if change == "late":
        settings.PASSWORD_RESET_TIMEOUT = -1
    elif change == "disabled and enabled":
        for active in (False, True):
            User.objects.filter(pk=anna.pk).update(is_active=active)
    elif change == "signed in":
        Client().post("/sign-in/", {"username": "anna", "password": scenery.PASSWORD})
    elif change == "password":
        services.set_password(anna, scenery.PASSWORD)
    else:
        password_reset.set_allowed(anna, False)
        password_reset.set_allowed(anna, change == "allowed")

    answer = client.post(address, FORM)

    assert answer.status_code == 403
    assert "unknown, was used before, or is too old" in answer.text
    assert not has_password(NEW)


@pytest.mark.parametrize("text", ["1.x", "x.y", "0.a-b", ".", "9" * 40 + ".a-b", "１.a-b"])
def test_an_invented_link_is_refused_in_the_same_words(
    client: Client, anna: User, text: str
) -> None:
    answer = client.post(f"/password-reset/{text}/", FORM)

    assert answer.status_code == 403
    assert "unknown, was used before, or is too old" in answer.text


def test_anothers_token_is_none(client: Client, anna: User) -> None:
    mallory = scenery.person("mallory", password=scenery.PASSWORD)
    password_reset.set_allowed(mallory, True)
    theirs = password_reset.link_text(mallory).partition(".")[2]

    assert client.post(f"/password-reset/{anna.pk}.{theirs}/", FORM).status_code == 403


def test_a_weak_password_uses_nothing_up(client: Client, anna: User, mailbox: Mailbox) -> None:
    address = link(client, mailbox)
    weak = {"new_password1": "anna1234", "new_password2": "anna1234"}

    assert "easy to guess" in client.post(address, weak).text

    assert client.post(address, FORM)["Location"] == "/sign-in/?reset=1"


def test_a_mail_that_comes_late_is_not_sent(
    client: Client, anna: User, mailbox: Mailbox, settings: Any
) -> None:
    ask(client)
    read_entries()
    settings.PASSWORD_RESET_TIMEOUT = 0

    send_due()

    assert mailbox.messages == []
    assert Delivery.objects.get().state == Delivery.State.DROPPED


def test_allowing_it_asks_for_the_password_and_a_confirmed_address(
    client: Client, anna: User
) -> None:
    password_reset.set_allowed(anna, False)
    client.force_login(anna)

    assert "not your password" in client.post(ALLOW, {"allow": "1"}, follow=True).text
    MailRecipient.objects.update(confirmed_at=None)
    given = {"allow": "1", "password": scenery.PASSWORD}
    assert "Confirm your address first" in client.post(ALLOW, given, follow=True).text
    MailRecipient.objects.update(confirmed_at=timezone.now())
    page = client.post(ALLOW, given, follow=True).text

    assert "may be sent to your address" in page
    assert Entry.objects.filter(action="password_reset.allowed", actor="anna").exists()
    client.post(ALLOW, {"allow": "0"})
    assert User.objects.get(pk=anna.pk).reset_by_mail_since is None


@pytest.mark.parametrize("way", ["another address", "removed"])
def test_another_address_is_not_allowed_by_itself(
    client: Client, anna: User, mailbox: Mailbox, way: str
) -> None:
    # Whoever has a session for a moment, and knows no password.
    client.force_login(anna)
    if way == "removed":
        client.post("/profile/notifications/remove/")
    given = {"address": "mallory@example.org", "events": []}
    client.post("/profile/notifications/", given)
    MailRecipient.objects.update(confirmed_at=timezone.now())

    ask(Client(), "mallory@example.org")
    notify()

    assert not [one for one in mailbox.messages if "password-reset" in text_of(one)]


def test_who_has_no_password_yet_allows_nothing(client: Client, olga: User, cursor: None) -> None:
    """Somebody else may have come in by the link, and would keep a way in."""
    person = reader(services.create_person("eve", roles=[], by=olga))
    client.force_login(person)

    page = client.post(ALLOW, {"allow": "1", "password": ""}, follow=True).text

    assert "Set a password first" in page
    assert User.objects.get(pk=person.pk).reset_by_mail_since is None
