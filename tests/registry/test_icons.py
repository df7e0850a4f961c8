"""Icons of servers and tools: fetched once after discovery, drawn anew, and served as our own."""

import base64
import io
import struct
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from PIL import Image, PngImagePlugin

from accounts.models import User
from config.embedded.service import wait_until
from registry.icons import declared, fetching
from registry.icons.rendering import IconRefused, render
from registry.models import Icon, Server, Tool
from registry.tasks import discover_server
from tests.console import scenery
from tests.registry.offering import ADD, Offering

pytestmark = pytest.mark.django_db


def picture(form: str = "PNG", size: tuple[int, int] = (128, 96), **options: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "teal").save(out, form, **options)
    return out.getvalue()


def data_url(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


class Pictures:
    """A server of pictures, and what it was asked."""

    def __init__(self) -> None:
        self.status, self.body = 200, picture()
        self.asked: list[dict[str, str]] = []


@pytest.fixture
def pictures() -> Iterator[tuple[Pictures, str]]:
    offered = Pictures()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            offered.asked.append(dict(self.headers))
            self.send_response(offered.status)
            self.send_header("Location", "/elsewhere.png")
            self.send_header("Content-Length", str(len(offered.body)))
            self.end_headers()
            self.wfile.write(offered.body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield offered, f"http://127.0.0.1:{server.server_port}/icon.png"
        server.shutdown()
        thread.join()


def declare(server: Server, *icons: object) -> Server:
    Server.objects.filter(pk=server.pk).update(server_info={"icons": list(icons)})
    fetching.fetch_missing(server.pk)
    server.refresh_from_db()
    return server


@pytest.fixture
def mailer(olga: User) -> Server:
    return scenery.server("mailer", olga, scenery.SEND)


def shown(client: Client, icon_id: int | None) -> bytes:
    return client.get(reverse("registry:icon", args=[icon_id])).content


@pytest.mark.django_db(transaction=True)
def test_discovery_brings_the_icons_of_a_server_and_its_tools(
    calculator: Server, offering: Offering, as_olga: Client
) -> None:
    own, of_tool = picture(size=(80, 80)), picture("WEBP")
    offering.info["icons"] = [{"src": data_url(own), "sizes": ["80x80"]}]
    offering.tools = [{**ADD, "icons": [{"src": data_url(of_tool, "image/webp")}]}]

    discover_server(calculator.pk)

    assert wait_until(lambda: Tool.objects.exclude(icon=None).exists(), seconds=20)
    calculator.refresh_from_db()
    assert Icon.objects.count() == 2
    page = as_olga.get(reverse("registry:catalogue")).text
    assert f'src="/icons/{Tool.objects.get().icon_id}.png"' in page
    assert f'src="/icons/{calculator.icon_id}.png"' in as_olga.get(reverse("registry:servers")).text


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_a_picture_is_fetched_once_and_drawn_small(
    mailer: Server, pictures: tuple[Pictures, str], as_olga: Client, form: str
) -> None:
    offered, address = pictures
    offered.body = picture(form)

    for _again in range(2):
        declare(mailer, {"src": address})

    (asked,) = offered.asked
    assert "Cookie" not in asked
    assert "Authorization" not in asked
    with Image.open(io.BytesIO(shown(as_olga, mailer.icon_id))) as drawn:
        assert (drawn.format, drawn.size) == ("PNG", (64, 48))


def test_an_icon_is_ours_to_serve(as_olga: Client, mailer: Server) -> None:
    declare(mailer, {"src": data_url(picture())})

    response = as_olga.get(reverse("registry:icon", args=[mailer.icon_id]))

    assert response["Content-Type"] == "image/png"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert "immutable" in response["Cache-Control"]
    assert "no-store" not in response["Cache-Control"]


def test_only_who_sees_tools_sees_icons(client: Client, mailer: Server, mallory: User) -> None:
    declare(mailer, {"src": data_url(picture())})
    address = reverse("registry:icon", args=[mailer.icon_id])

    assert client.get(address).status_code == 302
    client.force_login(mallory)
    assert client.get(address).status_code == 403


def test_nothing_but_pixels_is_passed_on() -> None:
    note = PngImagePlugin.PngInfo()
    note.add_text("Comment", "<script>alert(1)</script>")
    written = picture(pnginfo=note, icc_profile=b"secret profile") + b"<html>appended</html>"

    drawn = render(written, is_for_dark=False)

    assert b"script" in written
    for hidden in (b"script", b"secret", b"appended", b"iCCP", b"tEXt"):
        assert hidden not in drawn


def bomb() -> bytes:
    """A small PNG whose header promises 40,000 pixels each way."""
    head = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in [(b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 9)), (b"IEND", b"")]
    )


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
REFUSED = {
    "SVG": (SVG, "no PNG, JPEG or WebP"),
    "GIF": (picture("GIF"), "no PNG, JPEG or WebP"),
    "HTML": (b"<!doctype html><title>Hello</title>", "no PNG, JPEG or WebP"),
    "empty": (b"", "no PNG, JPEG or WebP"),
    "cut": (picture()[:60], "cannot be read"),
    "large": (picture(size=(3000, 10)), "larger than 2048"),
    "bomb": (bomb(), "cannot be read|larger than"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_small_picture_is_refused(name: str) -> None:
    content, why = REFUSED[name]

    with pytest.raises(IconRefused, match=why):
        render(content, is_for_dark=False)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("data:image/png,notbase64", "no PNG, JPEG or WebP"),
        ("data:image/png;base64,@@@", "no base64"),
        ("http://10.0.0.1/icon.png", "https|not allowed|refused"),
        ("https://localhost:1/icon.png", "could not be reached|not allowed|refused"),
    ],
)
def test_a_failure_is_said_on_the_servers_page_alone(
    as_olga: Client, mailer: Server, source: str, why: str
) -> None:
    declare(mailer, {"src": source})

    icon = Icon.objects.get()
    assert icon.content is None
    assert icon.problem
    assert mailer.icon_id is None
    page = as_olga.get(reverse("registry:server", args=["mailer"])).text
    assert "Icons that are not shown" in page
    assert '<span class="emblem" aria-hidden="true" data-letters="MA"></span>' in page
    assert "Icons that are not shown" not in as_olga.get(reverse("registry:catalogue")).text
    assert as_olga.get(reverse("registry:icon", args=[icon.pk])).status_code == 404


@pytest.mark.parametrize("status", [301, 404, 500])
def test_no_redirect_is_followed(
    mailer: Server, pictures: tuple[Pictures, str], status: int
) -> None:
    offered, address = pictures
    offered.status = status

    declare(mailer, {"src": address})

    assert Icon.objects.get().problem == f"Its address answers with status {status}."
    assert len(offered.asked) == 1


def test_what_failed_is_tried_again_after_a_day(
    mailer: Server, pictures: tuple[Pictures, str]
) -> None:
    offered, address = pictures
    offered.status = 500
    declare(mailer, {"src": address})
    offered.status = 200

    declare(mailer, {"src": address})
    assert mailer.icon_id is None

    Icon.objects.update(fetched_at=timezone.now() - fetching.RETRY_AFTER * 2)
    declare(mailer, {"src": address})
    assert mailer.icon_id is not None


def test_an_icon_that_is_declared_no_more_is_gone(mailer: Server) -> None:
    declare(mailer, {"src": data_url(picture())})

    declare(mailer)

    assert mailer.icon_id is None
    assert not Icon.objects.exists()


@pytest.mark.long
def test_a_server_gets_only_so_many(olga: User, pictures: tuple[Pictures, str]) -> None:
    offered, address = pictures
    tools = [
        {**scenery.ADD, "name": f"add-{n}", "icons": [{"src": f"{address}?{n}"}]}
        for n in range(fetching.MOST + 5)
    ]
    server = scenery.server("crowd", olga, *tools)

    fetching.fetch_missing(server.pk)

    assert len(offered.asked) == fetching.MOST
    assert server.tools.exclude(icon=None).count() == fetching.MOST


@pytest.mark.parametrize(
    ("icons", "source"),
    [
        (None, None),
        ("https://a.example/a.png", None),
        ([{"src": "javascript:alert(1)"}, {"src": "file:///etc/passwd"}, {"src": 7}, "x"], None),
        ([{"src": "https://a.example/\nHost: b"}], None),
        ([{"src": "https://a.example/" + "a" * declared.SOURCE_MAX}], None),
        (
            [{"src": "https://a.example/a.svg"}, {"src": "https://a.example/a.png"}],
            "https://a.example/a.png",
        ),
        (
            [
                {"src": "https://a.example/16.png", "sizes": ["16x16"]},
                {"src": "https://a.example/512.png", "sizes": ["512x512"]},
                {"src": "https://a.example/96.png", "sizes": ["48x48", "96x96"]},
            ],
            "https://a.example/96.png",
        ),
        (
            [
                {"src": "https://a.example/dark.png", "theme": "dark"},
                {"src": "https://a.example/light.png", "theme": "light"},
            ],
            "https://a.example/light.png",
        ),
    ],
)
def test_one_of_several_is_chosen(icons: object, source: str | None) -> None:
    chosen = declared.choose(icons)

    assert (chosen.source if chosen else None) == source


def test_one_for_dark_ground_brings_it_along() -> None:
    out = io.BytesIO()
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(out, "PNG")

    with Image.open(io.BytesIO(render(out.getvalue(), is_for_dark=True))) as drawn:
        assert drawn.getpixel((0, 0)) == (24, 28, 32, 255)
