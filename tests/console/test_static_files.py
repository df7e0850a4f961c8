"""Our own files as the console serves them, and pages as they are packed."""

import gzip

import pytest
from django.templatetags.static import static
from django.test import Client

from accounts.models import User

pytestmark = pytest.mark.django_db


def get(client: Client, address: str, *, packed: bool = True) -> tuple[dict[str, str], bytes]:
    response = client.get(address, headers={"Accept-Encoding": "gzip" if packed else ""})
    assert response.status_code == 200
    body = b"".join(response) if response.streaming else response.content
    return dict(response.headers), body


@pytest.mark.parametrize("name", ["console.css", "console.js", "cards.js", "img/icons.svg"])
def test_a_file_is_kept_for_good_and_packed_for_who_unpacks(client: Client, name: str) -> None:
    headers, packed = get(client, static(name))
    assert "immutable" in headers["Cache-Control"]
    assert headers["Vary"] == "Accept-Encoding"
    plain_headers, plain = get(client, static(name), packed=False)
    assert "Content-Encoding" not in plain_headers
    assert gzip.decompress(packed) == plain


@pytest.mark.parametrize("name", ["console.css", "console.js", "cards.js"])
def test_comments_of_our_source_are_not_sent(client: Client, name: str) -> None:
    _headers, body = get(client, static(name), packed=False)

    lines = body.decode().splitlines()
    assert not [line for line in lines if line.strip().startswith(("//", "/*"))]
    assert lines


def test_what_gains_nothing_is_not_packed(client: Client) -> None:
    headers, body = get(client, static("fonts/hyperlegible-next-basic.woff2"))

    assert "Content-Encoding" not in headers
    assert headers["Content-Type"] == "font/woff2"
    assert body.startswith(b"wOF2")


def test_styles_name_fonts_that_are_kept_for_good(client: Client) -> None:
    _headers, styles = get(client, static("console.css"), packed=False)

    assert static("fonts/hyperlegible-mono-basic.woff2").removeprefix("/static/") in styles.decode()
    assert b"../" not in styles


def test_a_page_of_another_release_gets_the_file_of_this_one_but_not_for_good(
    client: Client,
) -> None:
    headers, _body = get(client, "/static/console.0123456789ab.css")

    assert headers["Cache-Control"] == "no-cache"
    assert client.get("/static/nothing.0123456789ab.css").status_code == 404
    assert client.post(static("console.css")).status_code != 200


def test_pages_are_packed_and_downloads_are_not(client: Client, alice: User) -> None:
    client.force_login(alice)

    headers, page = get(client, "/queue/")
    assert headers["Content-Encoding"] == "gzip"
    assert b"</html>" in gzip.decompress(page)
    headers, _body = get(client, "/static/app.webmanifest")
    assert "Content-Encoding" not in headers
