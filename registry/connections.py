"""How a server is reached: plain values, its secrets opened, for those who connect."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, Self, cast

import orjson
from django.conf import settings

from core import seal
from core.english import gettext as _
from core.errors import CountersignError
from core.sealed_fields import SealedField
from registry.models import CredentialOwner, Server, ServerCredential

PURPOSE = "server credential"
SHARED = CredentialOwner()
Named = tuple[int, str]


class Unreachable(CountersignError):
    """The server cannot be connected to as things stand here; says what to do."""


@dataclass(frozen=True, slots=True)
class ServerConnection:
    """`key` differs whenever anything else does: pools and processes are kept by it."""

    key: str
    transport: Literal["http", "stdio", "api"]
    url: str = ""
    argv: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    revision: str = ""
    # The revision to speak, where an operator chose it.
    wanted: str = ""
    by_events: bool = False
    # Of servers with a sign-in of their own: its id, to find the credential that a call carries.
    signs_in: int = 0
    # Of which kind of owner that credential is (registry/models/credentials.py).
    credential_of: str = ""

    def owner(self, *, person: Named, team: Named, agent: Named) -> CredentialOwner:
        """Whose credential a call carries: of this agent, for its person and its team."""
        owners = {"person": person, "team": team, "agent": agent}
        return CredentialOwner(kind, *owners[kind]) if (kind := self.credential_of) else SHARED

    def with_credential(self, credential: ServerCredential, headers: Mapping[str, str]) -> Self:
        """The connection of one credential, in one generation: nobody else's calls share it."""
        key = f"{self.key}.{credential.pk}.{credential.generation}"
        own = {name.lower() for name in headers}
        shared = {name: one for name, one in self.headers.items() if name.lower() not in own}
        return replace(self, key=key, headers={**shared, **headers})


@dataclass(frozen=True, slots=True)
class Command:
    """A program that the host's administrator lets servers run."""

    argv: list[str]
    env: dict[str, str] = field(repr=False)
    title: str = ""


class Commands:
    """The host's catalogue of commands, read when first asked for."""

    @cached_property
    def _catalogue(self) -> dict[str, Command]:
        try:
            # What comes with Countersign has its names; a file that has one of them means it.
            listed = settings.BUILT_IN_COMMANDS | self._of_the_host()
            return {name: _command(line) for name, line in listed.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise Unreachable(
                _("The host's catalogue of commands, %(file)s, cannot be read: %(why)s")
                % {"file": settings.STDIO_CATALOGUE, "why": error}
            ) from error

    def _of_the_host(self) -> dict[str, Any]:
        try:
            return cast("dict[str, Any]", orjson.loads(settings.STDIO_CATALOGUE.read_bytes()))
        except FileNotFoundError:
            return {}

    def names(self) -> list[str]:
        return sorted(self._catalogue)

    def get(self, name: str) -> Command | None:
        return self._catalogue.get(name)


def connection(server: Server, commands: Commands) -> ServerConnection:
    if server.transport == Server.Transport.STDIO:
        return _connection(server, argv=tuple(server.argv), env=_command_of(server, commands).env)
    headers = _opened(server, "sealed_headers")
    if server.sign_in:
        who: dict[str, Any] = {"signs_in": server.pk, "credential_of": server.credential_of}
        return _connection(server, url=server.url, headers=headers, **who)
    return _connection(server, url=server.url, headers={**headers, **_authorization(server)})


def current_keys(names: Iterable[str]) -> set[str]:
    """The current keys of these servers, as far as calls may be sent to them."""
    keys, commands = set(), Commands()
    for server in Server.objects.filter(slug__in=list(names), enabled=True):
        with contextlib.suppress(Unreachable):
            reached = connection(server, commands)
            keys.add(reached.key)
            if server.sign_in:
                usable = server.credentials.usable()
                keys |= {reached.with_credential(one, {}).key for one in usable}
    return keys


def place(server: Server, name: str) -> str:
    """The one place where a sealed field opens: this row, this field, this version."""
    return f"registry_server|{server.pk}|{name}|{server.connection_version}"


SEALED = tuple(
    SealedField(Server, name, PURPOSE, partial(place, name=name))
    for name in ("sealed_headers", "sealed_credential")
)


def _connection(server: Server, **values: Any) -> ServerConnection:
    wanted: dict[str, Any] = {"wanted": server.wanted_revision} if server.wanted_revision else {}
    secret = orjson.dumps({**values, **wanted, "version": server.connection_version})
    mark = hashlib.sha256(seal.sign("connection key", secret)).hexdigest()[:12]
    transport = cast(Literal["http", "stdio", "api"], server.transport)
    hints: dict[str, Any] = {"revision": server.revision, "by_events": server.by_events}
    return ServerConnection(f"{server.slug}:{mark}", transport, **hints, **wanted, **values)


def _command(line: Mapping[str, Any]) -> Command:
    argv, env = line["argv"], line.get("env", {})
    if not argv or not all(isinstance(word, str) for word in [*argv, *env.values()]):
        raise ValueError("argv and env must be text")
    if not Path(argv[0]).is_absolute():
        # Whoever may write to a folder of PATH would choose the program.
        raise ValueError(f"{argv[0]} is not the full path of a program")
    return Command(list(argv), dict(env), str(line.get("title", "")))


def _command_of(server: Server, commands: Commands) -> Command:
    command = commands.get(server.command)
    if command is None:
        raise Unreachable(
            _("The host's catalogue of commands no longer has “%s”.") % server.command
        )
    if command.argv != server.argv:
        raise Unreachable(
            _("The host's catalogue says something else for “%s” now: update the server.")
            % server.command
        )
    return command


def _authorization(server: Server) -> dict[str, str]:
    credential = _opened(server, "sealed_credential")
    return {"Authorization": f"Bearer {credential['credential']}"} if credential else {}


def _opened(server: Server, name: str) -> dict[str, str]:
    sealed = getattr(server, name)
    if sealed is None:
        return {}
    try:
        opened: dict[str, str] = orjson.loads(
            seal.unseal(PURPOSE, bytes(sealed), place=place(server, name))
        )
    except seal.Unsealable as error:
        raise Unreachable(
            _("The credential of “%s” cannot be opened here: enter it again.") % server.slug
        ) from error
    return opened
