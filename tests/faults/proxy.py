"""A wire that can be held: between a process and its database or broker, which then seem to hang.

What is sent meanwhile is not lost, as with a server that is stopped: it arrives once the wire is
let go. Held in one direction alone, the server does what it is told and nobody hears of it.
"""

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

CHUNK = 65536


class Wire:
    """Listens where `listener` does, and connects each client with one to `address`."""

    def __init__(
        self, listener: socket.socket, family: int, address: str | tuple[str, int]
    ) -> None:
        self._listener, self._family, self._address = listener, family, address
        self._to_server, self._to_client = threading.Event(), threading.Event()
        self._sockets: list[socket.socket] = []
        self._markers: list[bytes] = []
        self._speaker: socket.socket | None = None
        self._then: Callable[[], None] = self.hold
        self.let_go()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.let_go()
        for one in [self._listener, *self._sockets]:
            # Whoever waits on it wakes up.
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def hold(self) -> None:
        self._to_server.clear()
        self._to_client.clear()

    def hold_answers(self) -> None:
        self._to_client.clear()

    def cut(self) -> None:
        """Nobody is there any more for anybody."""
        self._cut = True
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def once_said(self, *markers: bytes, then: Callable[[], None]) -> None:
        """When somebody has said these, one after another, the server hears the last one, and
        nobody hears its answer."""
        self._markers, self._speaker, self._then = list(markers), None, then

    def let_go(self) -> None:
        self._cut = False
        self._to_server.set()
        self._to_client.set()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(self._family)
            try:
                if self._cut:
                    raise ConnectionError
                server.connect(self._address)
            except OSError:
                # Nobody is there just now.
                client.close()
                server.close()
                continue
            self._sockets += [client, server]
            for ends in ((client, server, self._to_server), (server, client, self._to_client)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _is_last(self, source: socket.socket, data: bytes) -> bool:
        """Of what is to be said, by whoever said the first of it."""
        if not self._markers or self._speaker not in (None, source):
            return False
        if self._markers[0] not in data:
            return False
        self._speaker = source
        self._markers.pop(0)
        return not self._markers

    def _carry(self, source: socket.socket, target: socket.socket, gate: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                if gate is self._to_server and self._is_last(source, data):
                    self._to_client.clear()
                    target.sendall(data)
                    self._then()
                else:
                    gate.wait()
                    target.sendall(data)
        # Also that it ended is heard no sooner.
        gate.wait()
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


class DatabaseWire(Wire):
    """To a PostgreSQL's Unix socket; `url` leads through it."""

    def __init__(self, url: str) -> None:
        parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
        name = f".s.PGSQL.{parts['port']}"
        self._folder = Path(tempfile.mkdtemp(prefix="wire-", dir="/tmp"))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._folder / name))
        listener.listen(100)
        super().__init__(listener, socket.AF_UNIX, f"{parts['host']}/{name}")
        self.url = url.replace(quote(parts["host"], safe=""), quote(str(self._folder), safe=""))

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        shutil.rmtree(self._folder)


class BrokerWire(Wire):
    """To a Valkey's port."""

    def __init__(self, url: str) -> None:
        address, _, rest = url.rpartition("@")[2].partition("/")
        host, _, port = address.rpartition(":")
        listener = socket.create_server((host, 0))
        super().__init__(listener, socket.AF_INET, (host, int(port)))
        here = f"{host}:{listener.getsockname()[1]}"
        self.url = url.replace(f"{address}/{rest}", f"{here}/{rest}")
