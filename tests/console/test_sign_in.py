"""Getting in and out."""

from ipaddress import ip_network

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import attempts, services
from accounts.models import Attempt, User
from accounts.roles import Role
from audit.models import Entry
from tests.console import scenery

ADDRESS = "/sign-in/"


@pytest.fixture
def anna(db: None) -> User:
    return scenery.person("anna", Role.VIEWER, password=scenery.PASSWORD)


def sign_in(client: Client, password: str = scenery.PASSWORD, **fields: str):
    return client.post(ADDRESS, {"username": "anna", "password": password, **fields})


def is_in(client: Client) -> bool:
    return client.get(reverse("registry:catalogue")).status_code == 200


def link(person: User) -> str:
    return services.sign_in_link(person).removeprefix(settings.PUBLIC_URL)


def test_a_password_lets_in_and_is_written_down(client: Client, anna: User) -> None:
    response = sign_in(client)

    assert response["Location"] == reverse("home")
    assert is_in(client)
    assert Entry.objects.filter(action="person.signed_in", actor="anna").exists()


def test_one_comes_back_to_the_page_that_asked(client: Client, anna: User) -> None:
    assert sign_in(client, next="/calls/")["Location"] == "/calls/"


@pytest.mark.parametrize("there", ["https://evil.example/", "//evil.example/", "javascript:1"])
def test_one_is_not_sent_elsewhere(client: Client, anna: User, there: str) -> None:
    assert sign_in(client, next=there)["Location"] == reverse("home")
    theme = client.post(reverse("accounts:theme"), {"theme": "dark", "next": there})
    assert theme["Location"] == "/"


def test_a_wrong_password_says_the_same_as_a_wrong_name(client: Client, anna: User) -> None:
    wrong_password = sign_in(client, "wrong").text
    wrong_name = client.post(ADDRESS, {"username": "nobody", "password": "wrong"}).text

    sentence = "No person here has this name and password."
    assert sentence in wrong_password
    assert sentence in wrong_name
    assert not is_in(client)


@pytest.fixture
def quick(settings) -> None:
    """Passwords that cost nothing to check."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def guess(client: Client, times: int, name: str = "anna") -> list[int]:
    given = {"username": name, "password": "guess"}
    return [client.post(ADDRESS, given).status_code for _n in range(times)]


def test_guessing_ends_and_is_written_down(quick: None, client: Client, anna: User) -> None:
    assert set(guess(client, attempts.OF_PAIR)) == {200}

    refused = sign_in(client)

    assert refused.status_code == 429
    assert "Too many wrong tries. Wait 15 minutes" in refused.text
    assert not is_in(client)
    failed = Entry.objects.filter(action="sign_in.failed")
    assert failed.count() == attempts.OF_PAIR
    assert failed[0].details["person"] == "anna"
    assert Entry.objects.filter(action="sign_in.limited").count() == 1


def test_one_name_is_not_guessed_in_many_spellings(quick: None, client: Client, anna: User) -> None:
    guess(client, attempts.OF_PAIR)

    # Full-width letters, which signing in reads as plain ones.
    assert guess(client, 1, "ａnna") == [429]
    assert sign_in(client, username="annａ").status_code == 429


def test_what_was_tried_is_forgotten(quick: None, client: Client, anna: User) -> None:
    guess(client, attempts.OF_PAIR + 3)
    Attempt.objects.update(at=timezone.now() - attempts.WINDOW)

    assert sign_in(client).status_code == 302


@pytest.mark.long
def test_nobody_keeps_somebody_else_out(quick: None, client: Client, anna: User) -> None:
    sign_in(client)
    client.post(reverse("accounts:sign_out"))
    stranger = Client()
    guess(stranger, attempts.OF_PAIR)
    for n in range(attempts.OF_NAME - attempts.OF_PAIR):
        guess(Client(REMOTE_ADDR=f"192.0.2.{n}"), 1)

    # By now no browser that does not know her may try her name, wherever it is.
    assert sign_in(Client(REMOTE_ADDR="192.0.2.99")).status_code == 429
    # Hers may, at the stranger's own address even.
    assert sign_in(client).status_code == 302
    assert stranger.post(link(anna)).status_code == 302


def test_one_behind_a_proxy_locks_out_nobody_else(
    quick: None, settings, monkeypatch, anna: User
) -> None:
    monkeypatch.setattr(attempts, "OF_ADDRESS", 4)
    settings.TRUSTED_PROXIES = [ip_network("127.0.0.1/32")]
    for n in range(attempts.OF_ADDRESS):
        name = f"anna{n}"
        assert guess(Client(headers={"X-Forwarded-For": "192.0.2.66"}), 1, name) == [200]
    assert guess(Client(headers={"X-Forwarded-For": "192.0.2.66"}), 1) == [429]

    assert sign_in(Client(headers={"X-Forwarded-For": "192.0.2.7"})).status_code == 302
    assert Attempt.objects.filter(address="192.0.2.66").count() == attempts.OF_ADDRESS


@pytest.mark.long
def test_a_session_of_before_is_disabled_for_good(client: Client, anna: User, olga: User) -> None:
    sign_in(client)
    old_link = link(anna)
    services.set_active(anna, False, by=olga)
    assert not is_in(client)

    services.set_active(User.objects.get(pk=anna.pk), True, by=olga)

    assert not is_in(client)
    assert Client().post(old_link).status_code == 403
    assert sign_in(Client()).status_code == 302


def test_no_way_of_disabling_leaves_a_session(client: Client, anna: User) -> None:
    sign_in(client)
    stale = User.objects.get(pk=anna.pk)
    User.objects.filter(pk=anna.pk).update(is_active=False)

    # All its columns, as they were read before.
    stale.save()

    assert not is_in(client)


@pytest.mark.long
def test_a_browser_is_known_by_a_cookie_that_is_ours(
    quick: None, client: Client, anna: User, alice: User
) -> None:
    sign_in(client)
    known = client.cookies["known"]
    assert known["httponly"]
    client.post(reverse("accounts:sign_out"))
    for forged in (
        known.value.replace(f"{anna.pk}.", f"{alice.pk}.", 1),
        "1.x.y",
        "",
        "é",
        "²..",
        "9" * 5000,
    ):
        client.cookies["known"] = forged
        guess(client, 1)

    assert set(Attempt.objects.values_list("browser", flat=True)) == {""}
    client.cookies["known"] = known.value
    assert set(guess(client, attempts.OF_BROWSER + 1)) == {200, 429}


def test_one_address_does_not_try_everybody(quick: None, client: Client, db: None) -> None:
    for n in range(attempts.OF_ADDRESS):
        Attempt.objects.create(kind="sign_in", who=str(n), address="127.0.0.1")

    assert guess(client, 1, "whoever") == [429]


def test_a_password_typed_as_a_name_is_written_nowhere(
    quick: None, client: Client, db: None
) -> None:
    guess(client, 1, "hunter2hunter2")

    entry = Entry.objects.get(action="sign_in.failed")
    assert "hunter2" not in f"{entry.details} {entry.reason} {entry.actor}"
    assert "hunter2" not in str(list(Attempt.objects.values()))


def test_an_empty_form_is_no_try(client: Client, anna: User) -> None:
    client.post(ADDRESS, {"username": "anna", "password": ""})

    assert not Attempt.objects.exists()
    assert not Entry.objects.filter(action="sign_in.failed").exists()


def test_somebody_switched_off_stays_out(client: Client, anna: User) -> None:
    User.objects.update(is_active=False)
    sign_in(client)
    assert not is_in(client)


def test_a_link_only_shows_a_button_until_it_is_pressed(client: Client, anna: User) -> None:
    address = link(anna)

    assert "Your sign-in link" in client.get(address).text
    assert not is_in(client)

    response = client.post(address)
    assert response["Location"] == reverse("home")
    assert is_in(client)


def test_a_link_over_somebody_elses_session_asks_to_sign_out_first(
    client: Client, anna: User, bob: User
) -> None:
    client.force_login(bob)
    address = link(anna)
    page = client.get(address).text
    assert "You are signed in here as bob." in page
    assert 'action="/sign-out/"' in page

    assert client.post(address).status_code == 409

    assert int(client.session["_auth_user_id"]) == bob.pk
    # It is not used up.
    assert client.post("/sign-out/", {"next": address})["Location"] == address
    assert not is_in(client)
    client.post(address)
    assert int(client.session["_auth_user_id"]) == anna.pk


def test_a_sign_out_goes_on_to_no_other_site(client: Client, bob: User) -> None:
    for there in ("https://evil.example/", "//evil.example", "javascript:alert(1)"):
        client.force_login(bob)
        assert client.post("/sign-out/", {"next": there})["Location"].startswith("/")
        assert "evil" not in client.post("/sign-out/", {"next": there})["Location"]


def test_a_link_works_once(client: Client, anna: User) -> None:
    address = link(anna)
    client.post(address)
    other = Client()

    response = other.post(address)

    assert response.status_code == 403
    assert "was used before" in response.text
    assert not is_in(other)


def test_a_made_up_link_lets_nobody_in(client: Client, anna: User) -> None:
    assert client.post("/sign-in/made-up/").status_code == 403
    assert not is_in(client)


def test_signing_out_is_pressed_and_not_visited(client: Client, anna: User) -> None:
    client.force_login(anna)

    assert client.get(reverse("accounts:sign_out")).status_code == 405
    assert is_in(client)
    client.post(reverse("accounts:sign_out"))
    assert not is_in(client)


def test_the_theme_is_in_the_page_before_any_script(client: Client, db: None) -> None:
    client.post(reverse("accounts:theme"), {"theme": "dark", "next": ADDRESS})

    assert '<html lang="en" data-theme="dark" ' in client.get(ADDRESS).text


def test_a_theme_that_there_is_not_changes_nothing(client: Client, db: None) -> None:
    client.post(reverse("accounts:theme"), {"theme": '"><script>'})

    assert "theme" not in client.cookies
