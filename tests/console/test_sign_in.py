"""Getting in and out."""

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from accounts import services
from accounts.models import User
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

    assert response["Location"] == reverse("registry:catalogue")
    assert is_in(client)
    assert Entry.objects.filter(action="person.signed_in", actor="anna").exists()


def test_one_comes_back_to_the_page_that_asked(client: Client, anna: User) -> None:
    assert sign_in(client, next="/calls/")["Location"] == "/calls/"


@pytest.mark.parametrize("there", ["https://evil.example/", "//evil.example/", "javascript:1"])
def test_one_is_not_sent_elsewhere(client: Client, anna: User, there: str) -> None:
    assert sign_in(client, next=there)["Location"] == reverse("registry:catalogue")
    theme = client.post(reverse("accounts:theme"), {"theme": "dark", "next": there})
    assert theme["Location"] == "/"


def test_a_wrong_password_says_the_same_as_a_wrong_name(client: Client, anna: User) -> None:
    wrong_password = sign_in(client, "wrong").text
    wrong_name = client.post(ADDRESS, {"username": "nobody", "password": "wrong"}).text

    sentence = "No person here has this name and password."
    assert sentence in wrong_password
    assert sentence in wrong_name
    assert not is_in(client)


def test_somebody_switched_off_stays_out(client: Client, anna: User) -> None:
    User.objects.update(is_active=False)
    sign_in(client)
    assert not is_in(client)


def test_a_link_only_shows_a_button_until_it_is_pressed(client: Client, anna: User) -> None:
    address = link(anna)

    assert "Your sign-in link" in client.get(address).text
    assert not is_in(client)

    response = client.post(address)
    assert response["Location"] == reverse("registry:catalogue")
    assert is_in(client)


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

    assert '<html lang="en" data-theme="dark">' in client.get(ADDRESS).text


def test_a_theme_that_there_is_not_changes_nothing(client: Client, db: None) -> None:
    client.post(reverse("accounts:theme"), {"theme": '"><script>'})

    assert "theme" not in client.cookies
