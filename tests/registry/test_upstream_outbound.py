"""Where the client may connect to: every spelling of an address that is not public is refused."""

import asyncio
import socket
from collections.abc import AsyncIterator
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from core.outbound import AddressRefused, Guard
from registry.upstream import NotSent, Target, UpstreamCall, Upstreams
from tests.upstreams.raw import MODERN, RawServer, Request, modern, reply, respond, serving

PUBLIC = ["93.184.216.34", "8.8.8.8", "1.1.1.1", "2606:4700::1111", "2a00:1450:4001:81b::200e"]

HIDDEN = [
    *("127.0.0.1", "127.1.2.3", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255"),
    *("192.168.0.1", "169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.1"),
    *("192.0.0.8", "192.0.0.9", "192.0.0.170", "192.0.0.192", "192.0.2.1", "192.88.99.1"),
    *("198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "224.0.0.251"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::2", "::7f00:1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
    *("::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::10.0.0.1"),
    *("64:ff9b::8.8.8.8", "64:ff9b:1::7f00:1", "64:ff9b:1:ffff::1", "100::1", "100:0:0:1::1"),
    *("2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:20::1"),
    *("2001:1::1", "2001:3::1", "2001:4:112::1", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::1"),
    *("2002:0808:0808::1", "3fff::1", "3fff:fff::1", "5f00::1", "fc00::1", "fd00:ec2::254"),
    *("fe80::1", "fe80::1%lo", "fec0::1", "feff::1", "ff02::1", "ff0e::1", "4000::1"),
]

SPELLINGS = [
    *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1"),
    *("017700000001", "0", "0.0.0.0", "127.0.0.1.", "localhost", "LOCALHOST", "localhost."),
    *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]"),
    *(
        "[0:0:0:0:0:0:0:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "１２７.０.０.１",
        "127。0。0。1",
    ),
    *("①②⑦.0.0.1", "[fe80::1%25lo]", "[::1%25lo]", "127.00.0.1", "127.0.0.01", "0x7f.0x0.0x0.0x1"),
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert Guard().allows(ip_address(address))


@pytest.mark.parametrize("address", HIDDEN)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(AddressRefused, match="not public"):
        Guard().check_address(address)


def test_the_named_networks_are_allowed_and_nothing_beside_them() -> None:
    guard = Guard(["10.1.0.0/16", "fd00:1::/32", "127.0.0.1"])

    for inside in ("10.1.255.255", "::ffff:10.1.0.1", "fd00:1::9", "127.0.0.1", "8.8.8.8"):
        assert guard.allows(ip_address(inside))
    for outside in ("10.2.0.0", "fd00:2::1", "127.0.0.2", "::1", "2002:a01:1::1"):
        assert not guard.allows(ip_address(outside))


def test_a_public_network_contains_no_hidden_one() -> None:
    """What Python itself calls private must never pass, whatever its version knows."""
    for network in ("10.0.0.0/8", "192.168.0.0/16", "fc00::/7", "fe80::/10", "ff00::/8"):
        parsed = ip_network(network)
        assert not Guard().allows(parsed[0])
        assert not Guard().allows(parsed[-1])


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://example.com/", "https://"),
        ("file:///etc/passwd", "https://"),
        ("gopher://example.com:70/_x", "https://"),
        ("//example.com/", "https://"),
        ("example.com", "https://"),
        ("http://", "names no host|not a URL"),
        ("http:///path", "names no host|not a URL"),
        ("http://user@example.com/", "user name or password"),
        ("http://user:secret@example.com/", "user name or password"),
        ("http://:@example.com/", "user name or password"),
        ("http://127.0.0.1#@example.com/", "not public"),
        ("http://127.0.0.1\\@example.com/", "not|no host|user name"),
        ("http://[::1]/", "not public"),
        ("http://[::1/", "not a URL"),
        ("http://example.com:99999/", "not a URL"),
        ("https://xn--/", "not a URL"),
        ("http://127.1/", "not an address"),
        ("http://2130706433/", "not an address"),
    ],
)
def test_a_url_that_may_not_be_called_is_refused(url: str, said: str) -> None:
    with pytest.raises(AddressRefused, match=said):
        Guard().check_url(url)


async def answer(request: Request, out: asyncio.StreamWriter) -> None:
    respond(out, reply(request))


@pytest.fixture
async def canary() -> AsyncIterator[RawServer]:
    """Listens on this machine, where nobody may come."""
    async with serving(answer) as server:
        yield server
    assert not server.connections


@pytest.mark.parametrize("host", SPELLINGS)
@pytest.mark.parametrize("hint", ["", MODERN])
async def test_no_spelling_of_this_machine_is_reached(
    canary: RawServer, host: str, hint: str
) -> None:
    upstreams = Upstreams()
    url = f"http://{host}:{canary.port}/mcp"
    target = Target(key="k", transport="http", url=url, revision=hint)

    with pytest.raises(NotSent):
        await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
    with pytest.raises(NotSent):
        await upstreams.discover(target)
    await upstreams.aclose()


class Names:
    """What the operating system would answer, one list of addresses after the other."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int, **more: Any) -> list[Any]:
        self.asked += 1
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (address, port, 0, 0) if ":" in address else (address, port),
            )
            for address in addresses
        ]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(*answers: list[str]) -> Names:
        made = Names(*answers)
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", made, raising=False)
        return made

    return install


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::1", "93.184.216.34"]]
)
async def test_one_hidden_address_refuses_the_name(
    canary: RawServer, names: Any, addresses: list[str]
) -> None:
    names(addresses)
    with pytest.raises(AddressRefused, match="not public"):
        await Guard().resolve("innocent.example", canary.port)

    upstreams = Upstreams()
    url = f"http://innocent.example:{canary.port}/mcp"

    with pytest.raises(NotSent, match="not public"):
        await upstreams.call_tool(
            Target(key="k", transport="http", url=url, revision=MODERN), UpstreamCall("t", b"{}")
        )
    await upstreams.aclose()


async def test_a_name_that_changes_its_mind_is_not_asked_twice(names: Any) -> None:
    """Rebinding: what was looked at is what is connected to."""
    async with serving(modern(answer)) as server, serving(answer) as other:
        asked = names(["127.0.0.1"], ["127.0.0.2"])
        upstreams = Upstreams(networks=["127.0.0.1/32"])
        url = f"http://rebinding.example:{server.port}/mcp"
        target = Target(key="k", transport="http", url=url, revision=MODERN)
        await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
        await upstreams.aclose()

    assert asked.asked == 1
    assert server.connections == 1
    assert not other.connections
    assert server.requests[0].headers["host"] == f"rebinding.example:{server.port}"


async def test_a_socket_is_only_made_for_an_allowed_address() -> None:
    with pytest.raises(AddressRefused):
        Guard().open_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 80)))

    made = Guard().open_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 80)))
    made.close()


async def test_a_name_that_is_not_there_is_certain(names: Any) -> None:
    async def not_found(*given: Any, **more: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    asyncio.get_running_loop().getaddrinfo = not_found  # type: ignore[method-assign]
    upstreams = Upstreams()
    target = Target(key="k", transport="http", url="https://no.example/mcp")

    with pytest.raises(NotSent, match=r"no\.example was not found"):
        await upstreams.call_tool(target, UpstreamCall("t", b"{}"))
    await upstreams.aclose()
