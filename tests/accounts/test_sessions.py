"""A person's sessions: listed, ended one by one or together, limited, and new devices told of."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyotp
import pytest
from django.conf import settings as current
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from accounts import passkeys, services, sessions
from accounts.models import BrowserSession, User
from accounts.roles import Role
from accounts.session_store import SINCE, SessionStore
from accounts.tasks import remove_ended_sessions
from accounts.user_agents import device as device_of
from audit.models import Entry
from tests.accounts.factors import SECOND, Clock, anna, clock, first_step, is_in, totp
from tests.console import scenery

__all__ = ["anna", "clock", "totp"]

PAGE = "/profile/sessions/"
COOKIE = current.SESSION_COOKIE_NAME
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/142.0.0.0 Safari/537.36"
)
PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like "
    "Gecko) Version/18.0 Mobile/15E148 Safari/604.1"
)


def browser(user_agent: str = FIREFOX, address: str = "192.0.2.1") -> Client:
    return Client(HTTP_USER_AGENT=user_agent, REMOTE_ADDR=address)


@pytest.fixture
def desk(anna: User) -> Client:
    made = browser()
    first_step(made)
    return made


@pytest.fixture
def laptop(anna: User, desk: Client) -> Client:
    made = browser(CHROME, "192.0.2.2")
    first_step(made)
    return made


def is_open(client: Client) -> bool:
    return bool(client.get("/profile/").status_code == 200)


def row(client: Client) -> BrowserSession:
    return BrowserSession.objects.get(key=client.session.session_key)


def begin_passkey(client: Client) -> Any:
    return client.post("/profile/passkeys/begin/", {"password": scenery.PASSWORD})


def end_of(client: Client) -> datetime:
    return Session.objects.get(session_key=client.session.session_key).expire_date


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FIREFOX, "Firefox, Linux"),
        (CHROME, "Chrome, Windows"),
        (CHROME + " Edg/142.0", "Edge, Windows"),
        (PHONE, "Safari, iPhone"),
        ("curl/8", "Unknown device"),
        ("<script>alert(1)</script>", "Unknown device"),
        ("", "Unknown device"),
    ],
)
def test_a_device_is_named_in_words_of_ours(text: str, said: str) -> None:
    assert device_of(text) == said


@pytest.mark.long
def test_they_are_listed_and_this_one_is_marked(desk: Client, laptop: Client) -> None:
    page = laptop.get(PAGE).text

    assert page.index("Chrome, Windows") < page.index("This session") < page.index("192.0.2.1")
    assert "Firefox, Linux" in page
    assert page.count("This session") == 1
    # What opens a session stands on no page.
    assert not [key for key in (row(desk).key, row(laptop).key) if key in page]


def test_one_is_ended_and_the_others_go_on(desk: Client, laptop: Client) -> None:
    phone = browser(PHONE)
    first_step(phone)

    laptop.post(f"{PAGE}{row(desk).pk}/end/")

    assert not is_open(desk)
    assert is_open(phone)
    assert is_open(laptop)
    entry = Entry.objects.get(action="sessions.ended")
    assert (entry.actor, entry.details["device"]) == ("anna", "Firefox, Linux")
    assert entry.details["count"] == 1


def test_all_others_are_ended(desk: Client, laptop: Client) -> None:
    phone = browser(PHONE)
    first_step(phone)

    page = phone.post(f"{PAGE}end/", follow=True).text

    assert "2 sessions have ended." in page
    assert [is_open(one) for one in (desk, laptop, phone)] == [False, False, True]
    assert Entry.objects.get(action="sessions.ended").details["count"] == 2


def test_nobody_ends_anothers_or_their_own_by_its_number(
    desk: Client, client: Client, anna: User
) -> None:
    client.force_login(scenery.person("mallory"))
    assert client.post(f"{PAGE}{row(desk).pk}/end/").status_code == 404
    assert desk.post(f"{PAGE}{row(desk).pk}/end/").status_code == 404
    assert desk.get(f"{PAGE}end/").status_code == 405
    assert browser().post(f"{PAGE}end/")["Location"].startswith("/sign-in/")

    assert is_open(desk)
    assert "192.0.2.1" not in client.get(PAGE).text


def test_an_ended_one_is_not_saved_again_by_a_request_under_way(
    desk: Client, laptop: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = row(desk)

    def meanwhile(_person: User) -> tuple[dict[str, str], str]:
        sessions.end(ended)
        return {}, "challenge"

    monkeypatch.setattr(passkeys, "options", meanwhile)
    # It would save the challenge in its session.
    answer = begin_passkey(desk)

    assert answer.status_code == 400
    assert not Session.objects.filter(session_key=ended.key).exists()
    assert not BrowserSession.objects.filter(key=ended.key).exists()
    assert not is_open(desk)


def test_disabling_ends_them_for_good(anna: User, desk: Client, laptop: Client) -> None:
    by = scenery.person("ada", Role.ADMINISTRATOR)
    services.set_active(anna, False, by=by)
    services.set_active(anna, True, by=by)

    assert not is_open(desk)
    assert not is_open(laptop)
    again = browser()
    first_step(again)
    page = again.get(PAGE).text
    assert page.count("last used") == 1


def test_a_new_password_ends_the_others_and_keeps_this_one(desk: Client, laptop: Client) -> None:
    since, new = row(desk).created_at, "a quiet harbour at dusk"
    form = {"old_password": scenery.PASSWORD, "new_password1": new, "new_password2": new}

    desk.post("/profile/password/", form)

    assert is_open(desk)
    assert not is_open(laptop)
    page = desk.get(PAGE).text
    assert page.count("last used") == 1
    assert row(desk).created_at == since


def test_signing_out_ends_it(desk: Client, anna: User) -> None:
    desk.post("/sign-out/")

    assert sessions.list_open(anna) == []


def test_a_planted_session_is_worth_nothing(anna: User) -> None:
    victim, attacker = browser(), browser(CHROME)
    attacker.get("/sign-in/")
    planted = "a" * 32
    victim.cookies[COOKIE] = attacker.cookies[COOKIE] = planted

    first_step(victim)

    assert is_in(victim)
    assert victim.session.session_key != planted
    assert not is_open(attacker)


def test_a_first_step_is_no_session(anna: User, totp: pyotp.TOTP, clock: Clock) -> None:
    client = browser()
    first_step(client)
    assert sessions.list_open(anna) == []
    key = client.session.session_key

    client.post(SECOND, {"code": totp.at(clock.now)})

    assert [one.key for one in sessions.list_open(anna)] == [client.session.session_key] != [key]


def test_it_ends_some_time_after_its_last_use(desk: Client, settings: Any) -> None:
    settings.SESSION_IDLE_S = 600
    forget_seen()
    desk.get(PAGE)
    assert timedelta(seconds=590) < end_of(desk) - timezone.now() <= timedelta(seconds=600)

    Session.objects.update(expire_date=timezone.now() + timedelta(seconds=5))
    # Within a minute it is not written again, and what a page fetches by itself keeps nobody in.
    desk.get(PAGE)
    forget_seen()
    desk.get(PAGE, headers={"HX-Request": "true"})
    assert end_of(desk) - timezone.now() < timedelta(seconds=6)
    desk.get(PAGE)
    assert end_of(desk) - timezone.now() > timedelta(seconds=590)

    Session.objects.update(expire_date=timezone.now())
    assert not is_open(desk)


def test_it_ends_some_time_after_its_sign_in_however_used(desk: Client, settings: Any) -> None:
    settings.SESSION_MAX_S = 900
    since = datetime.fromtimestamp(desk.session[SINCE], UTC)
    forget_seen()

    desk.get(PAGE)
    assert end_of(desk) == since + timedelta(seconds=900)
    # Nor does saving it move that.
    assert begin_passkey(desk).status_code == 200
    assert end_of(desk) == since + timedelta(seconds=900)

    settings.SESSION_MAX_S = 0
    begin_passkey(desk)
    assert not is_open(desk)


def test_a_session_from_before_an_upgrade_is_limited_too(desk: Client, settings: Any) -> None:
    kept = Session.objects.get(session_key=desk.session.session_key)
    data = {name: value for name, value in kept.get_decoded().items() if name != SINCE}
    Session.objects.update(session_data=SessionStore().encode(data))

    desk.get(PAGE)
    since = desk.session[SINCE]
    desk.get(PAGE)

    assert desk.session[SINCE] == since
    settings.SESSION_MAX_S = 0
    forget_seen()
    desk.get(PAGE)
    assert not is_open(desk)


def test_a_database_that_takes_no_note_takes_no_answer(
    desk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_seen()

    def fails(*_args: object) -> None:
        raise DatabaseError("away")

    monkeypatch.setattr(sessions, "_write_seen", fails)

    assert is_open(desk)


def test_rows_of_ended_sessions_are_removed_and_others_stay(
    desk: Client, laptop: Client, anna: User
) -> None:
    # Somebody asked for a passkey, and went away.
    stranger = browser()
    stranger.post("/sign-in/passkey/options/")
    gone = [row(desk).key, stranger.session.session_key]
    Session.objects.filter(session_key__in=gone).update(expire_date=timezone.now())

    remove_ended_sessions()

    assert [one.session_key for one in Session.objects.all()] == [laptop.session.session_key]
    assert [one.key for one in BrowserSession.objects.all()] == [laptop.session.session_key]


def forget_seen() -> None:
    sessions._seen.clear()


def test_a_new_device_is_an_entry_and_a_known_one_is_not(anna: User, desk: Client) -> None:
    # The first sign-in of all is no news.
    assert not Entry.objects.filter(action="person.new_device").exists()
    desk.post("/sign-out/")
    first_step(desk)
    assert not Entry.objects.filter(action="person.new_device").exists()

    first_step(browser(CHROME, "203.0.113.7"))

    entry = Entry.objects.get(action="person.new_device")
    assert (entry.actor, entry.details["device"]) == ("anna", "Chrome, Windows")
    assert entry.details["address"] == "203.0.113.7"


def test_a_forged_cookie_makes_no_known_device(anna: User, desk: Client) -> None:
    stranger = browser(CHROME)
    stranger.cookies["known"] = f"{anna.pk}.anything.AAAA"

    first_step(stranger)

    assert Entry.objects.filter(action="person.new_device").count() == 1
