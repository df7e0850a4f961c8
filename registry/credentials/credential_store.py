"""Credentials that calls carry: connected, opened for a call, renewed once for all, and removed."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from accounts.actors import By, acting
from accounts.models import User
from audit.services import SYSTEM, record
from core.english import gettext as _
from core.errors import CountersignError
from registry.credentials import links, token_endpoint, vault
from registry.credentials.authorization_server import SignInFailed, scopes_in
from registry.credentials.locks import RENEWAL, alone
from registry.credentials.token_endpoint import ServerTokens, TokenRejected
from registry.models import Server, ServerClient, ServerCredential

log = logging.getLogger(__name__)

# Renewed so long before it expires.
EARLY = timedelta(seconds=30)
SHARED = "shared"


class CredentialMissing(CountersignError):
    """No credential is there for the call: its sentence names who has to sign in, and the page."""

    def __init__(self, sentence: str, page: str = "") -> None:
        super().__init__(sentence)
        self.page = page


@dataclass(frozen=True, slots=True)
class OpenCredential:
    """A credential as a call carries it."""

    row: ServerCredential
    headers: dict[str, str] = field(repr=False)
    can_be_renewed: bool = False


@transaction.atomic
def connect_tokens(
    client: ServerClient, person: User | None, tokens: ServerTokens, asked: list[str], *, by: By
) -> ServerCredential:
    """Takes the place of the credential before, if there was one."""
    values = {"access": tokens.access, "refresh": tokens.refresh}
    scopes = asked if tokens.scopes is None else tokens.scopes
    row = _anew(client, person, expires_at=tokens.expires_at, scopes=scopes, issuer=client.issuer)
    return _connected(client, row, values, by=by)


@transaction.atomic
def connect_key(client: ServerClient, person: User, key: str, *, by: By) -> ServerCredential:
    """The person's own key for the header that the operator chose."""
    return _connected(client, _anew(client, person), {"key": key}, by=by)


def current(server_id: int, person_id: int | None) -> OpenCredential:
    """Renewed first if it expires now. Raises CredentialMissing and SignInFailed."""
    row = _usable(server_id, person_id)
    if row is None:
        raise missing(server_id, person_id)
    is_old = row.expires_at is not None and row.expires_at - timezone.now() < EARLY
    opened = _opened(row)
    if not is_old or not opened.can_be_renewed:
        return opened
    try:
        return renew(row.pk, row.generation)
    except TokenRejected:
        raise missing(server_id, person_id) from None


def is_connected(server_id: int, person_id: int | None) -> bool:
    return _usable(server_id, person_id) is not None


def renew(pk: int, generation: int) -> OpenCredential:
    """The credential after this generation: by one process at a time, and once for all who hold the
    old one. Raises TokenRejected, after which it is ended, SignInFailed and CredentialMissing."""
    with alone(RENEWAL, pk):
        row = ServerCredential.objects.usable().filter(pk=pk).select_related("server").first()
        if row is None:
            raise CredentialMissing(_("The credential is gone."))
        if row.generation != generation:
            return _opened(row)
        client = ServerClient.objects.select_related("server").get(server_id=row.server_id)
        values = vault.open_values(row)
        # A refresh token goes to nobody but the issuer that gave it.
        if not values.get("refresh") or row.issuer != client.issuer:
            raise TokenRejected(_("The authorization server wants a new sign-in."))
        try:
            tokens = token_endpoint.refresh(client, values["refresh"])
        except TokenRejected as error:
            _end(row, str(error))
            raise
        renewed = _renewed(row, tokens, before=values)
        if renewed is None:
            _revoke(client, {"refresh": tokens.refresh, "access": tokens.access})
            raise CredentialMissing(_("The credential is gone."))
        return renewed


@transaction.atomic
def want_scopes(row: ServerCredential, scope: str) -> None:
    """The server wants more than was granted: its page asks the person."""
    locked = ServerCredential.objects.select_for_update().filter(pk=row.pk).first()
    wanted = scopes_in(scope)
    if locked is None or not wanted or set(wanted) <= set(locked.wanted_scopes):
        return
    locked.wanted_scopes = list(dict.fromkeys([*locked.wanted_scopes, *wanted]))[:50]
    locked.save(update_fields=["wanted_scopes"])
    record(
        "credential.scopes_wanted",
        actor=SYSTEM,
        server=locked.server.slug,
        owner=owner_name(locked),
        scopes=wanted,
    )


@transaction.atomic
def remove(rows: QuerySet[ServerCredential], *, by: By, reason: str = "") -> int:
    """Deletes credentials, and revokes them at their authorization servers after the commit."""
    gone = list(rows.select_for_update(of=("self",)).select_related("server__client", "person"))
    for row in gone:
        # It opens what is sealed to the row, which has no key once it is deleted.
        transaction.on_commit(_Revocation(row))
        row.delete()
        record(
            "credential.removed",
            actor=acting(by),
            reason=reason,
            server=row.server.slug,
            owner=owner_name(row),
        )
    return len(gone)


def missing(server_id: int, person_id: int | None) -> CredentialMissing:
    server = Server.objects.get(pk=server_id)
    page = links.page_of(server, person_id)
    said = {"server": server.slug, "page": page}
    if person_id is None:
        sentence = _("An operator has to sign in at “%(server)s” first, at %(page)s.")
    else:
        said["person"] = User.objects.get(pk=person_id).username
        sentence = _("%(person)s has to sign in at “%(server)s” first, at %(page)s.")
    return CredentialMissing(sentence % said, page)


def owner_name(row: ServerCredential) -> str:
    """The name in entries, rules and cards; never the credential itself."""
    return row.person.username if row.person else SHARED


def _usable(server_id: int, person_id: int | None) -> ServerCredential | None:
    rows = ServerCredential.objects.usable().of(server_id, person_id)
    return rows.select_related("server").first()


def _opened(row: ServerCredential) -> OpenCredential:
    """Raises CredentialMissing where it does not open here."""
    try:
        values = vault.open_values(row)
    except vault.NotOpened as error:
        said = missing(row.server_id, row.person_id)
        raise CredentialMissing(f"{error} {said}", said.page) from error
    if "key" in values:
        client = ServerClient.objects.get(server_id=row.server_id)
        return OpenCredential(row, {client.header: values["key"]})
    headers = {"Authorization": f"Bearer {values['access']}"}
    return OpenCredential(row, headers, can_be_renewed=bool(values.get("refresh")))


def _anew(client: ServerClient, person: User | None, **values: object) -> ServerCredential:
    """Raises SignInFailed where the sign-in was set anew, perhaps for another address, while
    somebody waited for the network."""
    Server.objects.select_for_update().get(pk=client.server_id)
    same = {"pk": client.pk, "issuer": client.issuer, "client_id": client.client_id}
    if not ServerClient.objects.filter(**same, server__enabled=True).exists():
        raise SignInFailed(_("The server's sign-in was changed in the meantime. Begin again."))
    ServerCredential.objects.of(client.server_id, person.pk if person else None).delete()
    return ServerCredential.objects.create(server=client.server, person=person, **values)


def _connected(
    client: ServerClient, row: ServerCredential, values: dict[str, str], *, by: By
) -> ServerCredential:
    vault.seal_values(row, values)
    row.save(update_fields=["sealed"])
    record(
        "credential.connected",
        actor=acting(by),
        server=client.server.slug,
        owner=owner_name(row),
        issuer=row.issuer,
        scopes=row.scopes,
    )
    return row


@transaction.atomic
def _renewed(
    row: ServerCredential, tokens: ServerTokens, *, before: dict[str, str]
) -> OpenCredential | None:
    """None: it was disconnected meanwhile."""
    if not ServerCredential.objects.select_for_update().filter(pk=row.pk).exists():
        return None
    row.generation += 1
    row.expires_at, row.refreshed_at = tokens.expires_at, timezone.now()
    if tokens.scopes is not None:
        row.scopes = tokens.scopes
    # Source: OAuth 2.1, 4.3.2: without a new one the old one stays good.
    vault.seal_values(
        row, {"access": tokens.access, "refresh": tokens.refresh or before["refresh"]}
    )
    row.save(update_fields=["generation", "expires_at", "refreshed_at", "scopes", "sealed"])
    record(
        "credential.renewed",
        actor=SYSTEM,
        server=row.server.slug,
        owner=owner_name(row),
        generation=row.generation,
    )
    return _opened(row)


@transaction.atomic
def _end(row: ServerCredential, why: str) -> None:
    row.ended, row.sealed = why[:300], None
    row.save(update_fields=["ended", "sealed"])
    record(
        "credential.ended", actor=SYSTEM, reason=why, server=row.server.slug, owner=owner_name(row)
    )


class _Revocation:
    """Revokes what was deleted: with the tokens in memory alone, and no result is waited for by
    anybody else."""

    def __init__(self, row: ServerCredential) -> None:
        self._row = row
        try:
            self._values = vault.open_values(row)
        except vault.NotOpened:
            self._values = {}

    def __call__(self) -> None:
        client = getattr(self._row.server, "client", None)
        # The server may name another issuer by now, which gets no token of the one before.
        if client is not None and client.issuer == self._row.issuer:
            _revoke(client, self._values)


def _revoke(client: ServerClient, values: dict[str, str]) -> None:
    for name, hint in (("refresh", "refresh_token"), ("access", "access_token")):
        if token := values.get(name):
            try:
                token_endpoint.revoke(client, token, hint)
            except (SignInFailed, vault.NotOpened) as error:
                log.warning("%s: not revoked: %s", client.server.slug, error)
