"""Credentials that calls carry: connected, opened for a call, renewed once for all, and removed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.actors import By, acting
from accounts.models import User
from audit.services import SYSTEM, record
from core.database_pool import release_connection
from core.english import gettext as _
from core.errors import CountersignError
from registry.credentials import links, token_endpoint, vault
from registry.credentials.authorization_server import CHANGED, SignInFailed, scopes_in
from registry.credentials.locks import RENEWAL, alone
from registry.credentials.token_endpoint import ServerTokens, TokenRejected
from registry.models import CredentialOwner, Server, ServerClient, ServerCredential
from registry.models.credentials import ServerCredentialQuerySet

log = logging.getLogger(__name__)

# Renewed so long before it expires.
EARLY = timedelta(seconds=30)
NOBODY = "shared"
# So many credentials that were deleted are revoked at once, and waited for so long in all.
REVOKED_AT_ONCE, REVOKED_WITHIN_S = 8, 20.0


_SIGN_IN = {
    "": _("An operator has to sign in at “%(server)s” first, at %(page)s."),
    "person": _("%(person)s has to sign in at “%(server)s” first, at %(page)s."),
    "team": _("An operator has to connect the team “%(name)s” at “%(server)s” first, at %(page)s."),
    "agent": _(
        "An operator has to connect the agent “%(name)s” at “%(server)s” first, at %(page)s."
    ),
}
_NO_PERSON = _("The server is signed in at by each person, and this is nobody's.")
_NO_OWNER = {
    "team": _(
        "“%(server)s” is called with the account of a team, and the agent acts for none: choose "
        "one of its owner's teams on the agent's page."
    ),
}


class CredentialMissing(CountersignError):
    """No credential is there for the call: its sentence names who has to sign in, and the page."""

    def __init__(self, sentence: str, page: str = "") -> None:
        super().__init__(sentence)
        self.page = page


class ScopesMissing(CredentialMissing):
    """The credential opens less than the server wants: its sentence names the scopes."""


@dataclass(frozen=True, slots=True)
class OpenCredential:
    """A credential as a call carries it."""

    row: ServerCredential
    headers: dict[str, str] = field(repr=False)
    can_be_renewed: bool = False


@transaction.atomic
def connect_tokens(
    client: ServerClient, owner: CredentialOwner, tokens: ServerTokens, asked: list[str], *, by: By
) -> ServerCredential:
    """Takes the place of the credential before, if there was one."""
    values = {"access": tokens.access, "refresh": tokens.refresh}
    scopes = asked if tokens.scopes is None else tokens.scopes
    row = _anew(client, owner, expires_at=tokens.expires_at, scopes=scopes, issuer=client.issuer)
    return _connected(client, row, values, by=by)


@transaction.atomic
def connect_key(
    client: ServerClient, owner: CredentialOwner, key: str, *, by: By
) -> ServerCredential:
    """The owner's own key for the header that the operator chose."""
    return _connected(client, _anew(client, owner), {"key": key}, by=by)


def find(server_id: int, owner: CredentialOwner) -> OpenCredential:
    """The credential, whether it has expired or not. Raises CredentialMissing."""
    row = _usable(server_id, owner)
    if row is None:
        raise missing(server_id, owner)
    return _opened(row)


def is_due(found: OpenCredential) -> bool:
    """Whether it is to be renewed before it is used."""
    expires_at = found.row.expires_at
    is_old = expires_at is not None and expires_at - timezone.now() < EARLY
    return is_old and found.can_be_renewed


def current(server_id: int, owner: CredentialOwner) -> OpenCredential:
    """Renewed first if it is due. Raises CredentialMissing and SignInFailed."""
    found = find(server_id, owner)
    if not is_due(found):
        return found
    try:
        return renew(found.row.pk, found.row.generation)
    except TokenRejected:
        raise missing(server_id, owner) from None


def for_discovery(server: Server) -> OpenCredential:
    """The shared one, or the one of the server's owner; of teams and agents, the first connected.
    Raises CredentialMissing and SignInFailed."""
    owner = CredentialOwner(server.credential_of, server.owner_id if server.credential_of else None)
    if owner.kind in ("team", "agent"):
        rows = ServerCredential.objects.usable().filter(server=server).with_owners()
        first = rows.order_by("connected_at").first()
        owner = first.owner if first else owner._replace(pk=0)
    return current(server.pk, owner)


def facts(server_id: int, owner: CredentialOwner) -> dict[str, Any] | None:
    """Which credential a call would carry, for entries, and never its value; None: there is
    none."""
    row = _usable(server_id, owner)
    return None if row is None else facts_of(row)


def facts_of(row: ServerCredential) -> dict[str, Any]:
    said = {"id": row.pk, "generation": row.generation}
    return {**said, "issuer": row.issuer} if row.issuer else said


def renew(pk: int, generation: int) -> OpenCredential:
    """The credential after this generation: by one process at a time, and once for all who hold the
    old one. Raises TokenRejected, after which it is ended, SignInFailed and CredentialMissing."""
    with alone(RENEWAL, pk):
        row = (
            ServerCredential.objects.usable()
            .filter(pk=pk)
            .with_owners()
            .select_related("server")
            .first()
        )
        if row is None:
            raise CredentialMissing(_("The credential is gone."))
        if row.generation != generation:
            return _opened(row)
        client = _client_of(row)
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
def remove(rows: ServerCredentialQuerySet, *, by: By, reason: str = "") -> int:
    """Deletes credentials, and revokes them at their authorization servers after the commit."""
    locked = rows.select_for_update(of=("self",)).with_owners()
    gone = list(locked.select_related("server__client"))
    # They open what is sealed to the rows, which have no key once they are deleted.
    revocations = [_Revocation(row) for row in gone]
    transaction.on_commit(lambda: _run_together(revocations))
    for row in gone:
        row.delete()
        record(
            "credential.removed",
            actor=acting(by),
            reason=reason,
            server=row.server.slug,
            owner=owner_name(row),
        )
    return len(gone)


def missing(server_id: int, owner: CredentialOwner) -> CredentialMissing:
    server = Server.objects.get(pk=server_id)
    page = links.page_of(server, owner)
    if owner.pk == 0:
        said = {"server": server.slug}
        return CredentialMissing(_NO_OWNER.get(owner.kind, _NO_PERSON) % said)
    named = {"server": server.slug, "page": page, "name": owner.name}
    if owner.kind == "person" and owner.pk:
        named["person"] = User.objects.get(pk=owner.pk).username
    return CredentialMissing(_SIGN_IN[owner.kind] % named, page)


def lacks_scopes(row: ServerCredential, scope: str) -> ScopesMissing:
    """`scope`: as the server's challenge names them."""
    page = links.page_of(row.server, row.owner)
    said = {"server": row.server.slug, "scope": " ".join(scopes_in(scope)), "page": page}
    if row.person:
        said["person"] = row.person.username
        sentence = _("“%(server)s” asks for “%(scope)s”: %(person)s has to allow it at %(page)s.")
    else:
        sentence = _("“%(server)s” asks for “%(scope)s”: an operator has to allow it at %(page)s.")
    return ScopesMissing(sentence % said, page)


def wants_consent(server_id: int, owner: CredentialOwner) -> bool:
    """Whether there is no credential, or the server asked for more than it opens."""
    row = _usable(server_id, owner)
    return row is None or bool(row.wanted_scopes)


def owner_name(row: ServerCredential) -> str:
    """The name in entries, rules and cards; never the credential itself."""
    return row.owner.label or NOBODY


def _usable(server_id: int, owner: CredentialOwner) -> ServerCredential | None:
    rows = ServerCredential.objects.usable().of(server_id, owner)
    return rows.with_owners().select_related("server").first()


def _opened(row: ServerCredential) -> OpenCredential:
    """Raises CredentialMissing where it does not open here."""
    try:
        values = vault.open_values(row)
    except vault.NotOpened as error:
        said = missing(row.server_id, row.owner)
        raise CredentialMissing(f"{error} {said}", said.page) from error
    if "key" in values:
        return OpenCredential(row, {_client_of(row).header: values["key"]})
    headers = {"Authorization": f"Bearer {values['access']}"}
    return OpenCredential(row, headers, can_be_renewed=bool(values.get("refresh")))


def _client_of(row: ServerCredential) -> ServerClient:
    """Raises CredentialMissing where the sign-in was set anew at this moment."""
    client = ServerClient.objects.select_related("server").filter(server_id=row.server_id).first()
    if client is None:
        raise CredentialMissing(_("The credential is gone."))
    return client


def _anew(client: ServerClient, owner: CredentialOwner, **values: object) -> ServerCredential:
    """Raises SignInFailed where the sign-in was set anew, perhaps for another address, while
    somebody waited for the network."""
    Server.objects.select_for_update().get(pk=client.server_id)
    same = {"pk": client.pk, "issuer": client.issuer, "client_id": client.client_id}
    if not ServerClient.objects.filter(**same, server__enabled=True).exists():
        raise SignInFailed(CHANGED)
    ServerCredential.objects.of(client.server_id, owner).delete()
    owned = {f"{owner.kind}_id": owner.pk} if owner.kind else {}
    return ServerCredential.objects.create(server=client.server, **owned, **values)


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
    """Nothing, where it was disconnected meanwhile."""
    same = ServerCredential.objects.filter(pk=row.pk)
    if same.update(ended=why[:300], sealed=None):
        owner = owner_name(row)
        record("credential.ended", actor=SYSTEM, reason=why, server=row.server.slug, owner=owner)


def _run_together(revocations: Sequence[_Revocation]) -> None:
    """Some at once, and whoever deleted them waits for no server that hangs."""
    if not revocations:
        return
    release_connection()
    pool = ThreadPoolExecutor(REVOKED_AT_ONCE, thread_name_prefix="revocation")
    work = [pool.submit(one) for one in revocations]
    late = wait(work, timeout=REVOKED_WITHIN_S).not_done
    pool.shutdown(wait=False, cancel_futures=True)
    if late:
        slugs = ", ".join(sorted({one.slug for one in revocations}))
        log.warning("%s: %d credentials were not revoked in time", slugs, len(late))


class _Revocation:
    """Revokes what was deleted: with the tokens in memory alone, and without the database."""

    def __init__(self, row: ServerCredential) -> None:
        self._row, self.slug = row, row.server.slug
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
