"""The example balancers, started as they are but for addresses and certificates, pass on what
Countersign needs: streams at once, sockets, the client's address, and nothing twice."""

from __future__ import annotations

import asyncio
import datetime
import os
import resource
import shutil
import ssl
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from config.embedded.valkey import free_port
from tests.config.up import ROOT

EXAMPLES = ROOT / "deploy" / "proxies"
# Who wait for their answers at the same time.
CLIENTS = 1024
CONSOLE, AGENTS = "countersign.example.com", "agents.example.com"
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin"
Command = Callable[[Path, Path], list[str]]
PROGRAMS: dict[str, tuple[str, Command]] = {
    "nginx": (
        "nginx.conf",
        lambda file, folder: ["-p", str(folder), "-e", "stderr", "-c", str(file), "-g",
                              f"daemon off; error_log stderr; pid {folder}/pid;"],
    ),
    "haproxy": ("haproxy.cfg", lambda file, _folder: ["-db", "-f", str(file)]),
    "caddy": (
        "Caddyfile",
        lambda file, _folder: ["run", "--adapter", "caddyfile", "--config", str(file)],
    ),
}  # fmt: skip


@dataclass
class Host:
    """One process behind the balancer."""

    name: str
    posts: int = 0
    is_dropping: bool = False
    clients: set[str] = field(default_factory=set)
    everybody_waits: asyncio.Barrier = field(default_factory=lambda: asyncio.Barrier(CLIENTS))
    port: int = 0
    runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/readyz", self.ready)
        app.router.add_get("/name", self.say)
        app.router.add_get("/wait", self.wait)
        app.router.add_get("/stream", self.stream)
        app.router.add_get("/socket", self.socket)
        app.router.add_post("/mcp", self.post)
        self.runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self.runner.setup()
        self.port = self.port or free_port()
        await web.TCPSite(self.runner, "127.0.0.1", self.port, backlog=CLIENTS).start()

    async def stop(self) -> None:
        if self.runner:
            await self.runner.cleanup()
            self.runner = None

    async def ready(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def say(self, request: web.Request) -> web.Response:
        self.clients.add(request.headers.get("X-Forwarded-For", ""))
        return web.Response(text=f"{self.name} {request.headers.get('X-Forwarded-Proto')}")

    async def wait(self, _request: web.Request) -> web.Response:
        await self.everybody_waits.wait()
        return web.Response(text=self.name)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: first\n\n")
        await asyncio.Event().wait()
        return response

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(f"{self.name} heard {message.data}")
        return socket

    async def post(self, request: web.Request) -> web.Response:
        await request.read()
        self.posts += 1
        if self.is_dropping and request.transport:
            request.transport.abort()
        return web.Response(text=self.name)


@dataclass
class Site:
    hosts: dict[str, list[Host]]
    port: int
    http: aiohttp.ClientSession

    def url(self, name: str, path: str) -> str:
        return f"https://{name}:{self.port}{path}"

    async def get(self, name: str) -> str:
        claimed = {"X-Forwarded-For": "203.0.113.9"}
        async with self.http.get(self.url(name, "/name"), headers=claimed) as response:
            return f"{response.status} {await response.text()}"

    async def post(self, name: str) -> int:
        async with self.http.post(self.url(name, "/mcp"), data=b"{}") as response:
            return response.status


class Local(aiohttp.abc.AbstractResolver):
    """Both names are of this machine."""

    async def resolve(
        self, host: str, port: int = 0, family: int = 0
    ) -> list[aiohttp.abc.ResolveResult]:
        return [
            {
                "hostname": host,
                "host": "127.0.0.1",
                "port": port,
                "family": 2,
                "proto": 0,
                "flags": 0,
            }
        ]

    async def close(self) -> None:
        pass


def write_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, CONSOLE)])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName(CONSOLE), x509.DNSName(AGENTS)])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    made = made.public_key(key.public_key()).serial_number(1).add_extension(names, critical=False)
    made = made.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    certificate = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    for file, content in (
        ("fullchain.pem", certificate),
        ("key.pem", private),
        ("all.pem", certificate + private),
    ):
        (folder / file).write_bytes(content)


def configure(example: Path, folder: Path, ports: dict[str, list[int]], port: int) -> Path:
    """The example with this machine's ports and certificate."""
    text = example.read_text().replace("/etc/ssl/countersign", str(folder))
    for role, inner in ((CONSOLE, "8000"), (AGENTS, "8001")):
        for address, own in zip(("10.0.0.11", "10.0.0.12"), ports[role], strict=True):
            assert f"{address}:{inner}" in text
            text = text.replace(f"{address}:{inner}", f"127.0.0.1:{own}")
    for here in ("listen 443", "bind :443", ":443 {"):
        text = text.replace(here, here.replace("443", str(port)))
    path = folder / example.name
    path.write_text(text)
    return path


@asynccontextmanager
async def balanced(
    program: str, folder: Path, ports: dict[str, list[int]], port: int
) -> AsyncIterator[aiohttp.ClientSession]:
    """The program in front of what listens on `ports`, and a client that finds both names at
    `port`."""
    found = shutil.which(program, path=PATH)
    if found is None:
        pytest.skip(f"needs Debian's package {program}")
    example, arguments = PROGRAMS[program]
    write_certificate(folder)
    path = configure(EXAMPLES / example, folder, ports, port)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [found, *arguments(path, folder)],
            stdout=log, stderr=log, env={**os.environ, "HOME": str(folder)},
        )  # fmt: skip
    context = ssl.create_default_context(cafile=folder / "fullchain.pem")
    connector = aiohttp.TCPConnector(ssl=context, resolver=Local(), force_close=True)
    try:
        async with aiohttp.ClientSession(connector=connector) as http:
            await asyncio.wait_for(listening(http, port, process, folder / "log"), 20)
            yield http
    finally:
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            # Caddy waits for streams.
            process.kill()
            process.wait(10)


@asynccontextmanager
async def site(program: str, folder: Path) -> AsyncIterator[Site]:
    hosts = {role: [Host(f"{role} {n}") for n in (1, 2)] for role in (CONSOLE, AGENTS)}
    for host in [one for both in hosts.values() for one in both]:
        await host.start()
    ports, port = {role: [one.port for one in both] for role, both in hosts.items()}, free_port()
    try:
        async with balanced(program, folder, ports, port) as http:
            yield Site(hosts, port, http)
    finally:
        for host in [one for both in hosts.values() for one in both]:
            await host.stop()


async def listening(
    http: aiohttp.ClientSession, port: int, process: subprocess.Popen[bytes], log: Path
) -> None:
    while True:
        assert process.poll() is None, log.read_text()
        try:
            if {await status(http, f"https://{name}:{port}") for name in (CONSOLE, AGENTS)} == {
                200
            }:
                return
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.1)


async def status(http: aiohttp.ClientSession, url: str) -> int:
    async with http.get(f"{url}/readyz") as response:
        return response.status


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of each connection are in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8 * CLIENTS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_balancer_passes_on_what_countersign_needs(program: str, tmp_path: Path) -> None:
    async with site(program, tmp_path) as here:
        for role in (CONSOLE, AGENTS):
            answers = {await here.get(role) for _ in range(20)}
            assert answers == {f"200 {role} {n} https" for n in (1, 2)}
            # What a client claims of its address is not believed.
            assert {one for host in here.hosts[role] for one in host.clients} == {"127.0.0.1"}
        # A stream's first event comes while the stream goes on.
        async with here.http.get(here.url(AGENTS, "/stream")) as stream:
            assert await asyncio.wait_for(stream.content.readline(), 5) == b"data: first\n"
        async with here.http.ws_connect(here.url(CONSOLE, "/socket")) as socket:
            await socket.send_str("hello")
            assert (await asyncio.wait_for(socket.receive_str(), 5)).endswith("heard hello")
        # One that took a call and broke off: nobody sends it to the other.
        for host in here.hosts[AGENTS]:
            host.is_dropping = True
        try:
            async with here.http.post(here.url(AGENTS, "/mcp"), data=b"{}") as broken:
                assert broken.status in (502, 503, 504)
        except aiohttp.ClientError:
            pass
        assert sum(host.posts for host in here.hosts[AGENTS]) == 1
        # One that is gone is passed over, and the other one is not taken for gone.
        await here.hosts[CONSOLE][0].stop()
        posted = sorted([await here.post(CONSOLE) for _ in range(20)])
        # Caddy learns of it by a request with a body, which it answers so.
        assert posted[-1] == 200 or (program, posted[-1]) == ("caddy", 502)
        assert set(posted[:-1]) == {200}
        assert {await here.get(CONSOLE) for _ in range(20)} == {f"200 {CONSOLE} 2 https"}


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_balancer_serves_a_thousand_who_wait_and_drops_half_a_request(
    program: str, tmp_path: Path, many_files: None
) -> None:
    async with site(program, tmp_path) as here:
        together = asyncio.Barrier(CLIENTS)
        for host in here.hosts[AGENTS]:
            host.everybody_waits = together
        context = ssl.create_default_context(cafile=tmp_path / "fullchain.pem")
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", here.port, ssl=context, server_hostname=AGENTS
        )
        writer.write(b"GET /name HTTP/1.1\r\nHost:")
        dropped = asyncio.create_task(asyncio.wait_for(reader.read(), 30))

        connector = aiohttp.TCPConnector(ssl=context, resolver=Local(), limit=0)
        async with aiohttp.ClientSession(connector=connector) as http:
            url, briefly = here.url(AGENTS, "/wait"), aiohttp.ClientTimeout(120)

            async def wait() -> int | str:
                try:
                    async with http.get(url, timeout=briefly) as answer:
                        return answer.status
                except aiohttp.ClientError as error:
                    return type(error).__name__

            waiting: list[asyncio.Task[int | str]] = []
            while len(waiting) < CLIENTS:
                waiting += [asyncio.create_task(wait()) for _ in range(64)]
                # All of them in one instant would keep this process from its other end.
                while together.n_waiting + sum(one.done() for one in waiting) < len(waiting):
                    await asyncio.sleep(0.02)
            answers = Counter(await asyncio.gather(*waiting))

        assert answers == {200: CLIENTS}
        await dropped
        writer.close()
