"""Clients that ask users to sign them in: by a document of theirs (CIMD), or registered (RFC 7591).

Source: draft-ietf-oauth-client-id-metadata-document; MCP 2026-07-28, basic/authorization.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils import timezone

from accounts.agent_sign_in import product_names
from accounts.agent_sign_in.client_keys import declared_keys
from accounts.agent_sign_in.redirects import is_allowed, is_of_host, is_plain
from accounts.models import SignInClient
from accounts.workloads.public_keys import KeysRefused
from audit.services import SYSTEM, record
from core import guarded_http, strict_json
from core.database_pool import release_connection
from core.english import gettext as _
from core.errors import CountersignError
from core.guarded_http import RequestFailed, WebLimits
from core.look_alikes import readings, skeleton
from core.outbound import AddressRefused
from core.text import of_kinds

ID_MAX, NAME_MAX, REDIRECTS_MAX = 255, 100, 20
# Shorter names stand in many others.
PART_MIN = 5
# Not kept of a name; and what no name has: it would be read backwards.
_UNSEEN = re.compile(f"[{of_kinds('unseen', 'tag')}]")
_TURNS = re.compile(f"[{of_kinds('bidi')}]")
# Source: draft-ietf-oauth-client-id-metadata-document-02, 4.
_JSON = re.compile(r"application/([a-z0-9._-]+\+)?json", re.ASCII).fullmatch
DOCUMENT_LIMITS = WebLimits(connect_s=3, idle_s=3, total_s=5, max_bytes=16 * 1024)
# A document is read anew after the first, and used without an answer until the second.
FRESH, OUTLIVES = timedelta(hours=1), timedelta(days=1)
# Begins the id of a client that registered itself.
REGISTERED = "csr_"
CODE_GRANT = "authorization_code"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
# Clients that no user has allowed anything are kept for so long. One that registered keeps its id
# for good and cannot be helped once we forgot it, so its time begins anew with each consent page.
UNUSED_FOR = {
    SignInClient.Kind.DOCUMENT: timedelta(hours=1),
    SignInClient.Kind.REGISTERED: timedelta(days=90),
}
# Where more wait, those whose page was opened longest ago make room: of the network that registered
# most, so that a flood displaces itself.
UNUSED_MAX = 1_000


class ClientRefused(CountersignError):
    """The client cannot be known, or what it says of itself cannot be used; says why."""


def find_client(client_id: str) -> SignInClient:
    """Reads its document where that is not known or old: for users who are signed in alone. Raises
    ClientRefused."""
    known = SignInClient.objects.filter(client_id=client_id[:ID_MAX]).first()
    if known and known.kind == SignInClient.Kind.REGISTERED:
        return known
    if client_id.startswith(REGISTERED):
        raise ClientRefused(
            _(
                "The registration of this client is not known here, or was removed. Sign out of "
                "this server in the client, or remove the server there and add it: the client then "
                "registers itself."
            )
        )
    _check_address(client_id)
    if known and known.read_at > timezone.now() - FRESH:
        return known
    try:
        return _read_anew(client_id)
    except RequestFailed as error:
        if known and known.read_at > timezone.now() - OUTLIVES:
            return known
        if isinstance(error.__cause__, AddressRefused):
            raise ClientRefused(_("The client's document is at no public address.")) from error
        raise ClientRefused(_("The client's document could not be read: %s") % error) from error


def renew(client: SignInClient) -> SignInClient:
    """Reads its document at once, which may name another key now. Raises ClientRefused, and
    RequestFailed where there is no answer."""
    is_document = client.kind == SignInClient.Kind.DOCUMENT
    return _read_anew(client.client_id) if is_document else client


def check(said: Any) -> dict[str, Any]:
    """The stored columns of a client, by what it says of itself. Raises ClientRefused."""
    if not isinstance(said, dict):
        raise ClientRefused(_("Send a JSON object."))
    _check_kind(said)
    return _names(said)


def register(said: Any, *, network: str = "") -> SignInClient:
    """Registers a client by what it says of itself. `network`: which it came from. Raises
    ClientRefused."""
    names = check(said)
    with transaction.atomic():
        _make_room()
        client = SignInClient.objects.create(
            client_id=f"{REGISTERED}{secrets.token_urlsafe(18)}",
            kind=SignInClient.Kind.REGISTERED,
            network=network,
            **names,
        )
        record(
            "agent_client.registered", actor=SYSTEM, client_id=client.client_id, name=client.name
        )
    return client


def check_device_client(client_id: str) -> None:
    """Whether a device may ask by this id; its document is read later. Raises ClientRefused."""
    known = SignInClient.objects.filter(client_id=client_id[:ID_MAX]).first()
    if known is None:
        _check_address(client_id)
    elif not known.device_flow:
        raise ClientRefused(_("The client is none for devices."))


def look_alike(client: SignInClient) -> SignInClient | None:
    """Another client that users allowed something and whose name reads like this one's, or stands
    in the name of one that no host vouches for."""
    looks = readings(client.name)
    used = SignInClient.objects.exclude(used_at=None)
    used = used.exclude(client_id__in=registrations_of(client))
    names = [(skeleton(one.name), one) for one in used]
    if found := next((one for name, one in names if name and name in looks), None):
        return found
    if client.kind == SignInClient.Kind.DOCUMENT:
        return None
    parts = ((name, one) for name, one in names if len(name) >= PART_MIN)
    return next((one for name, one in parts if any(name in look for look in looks)), None)


def product_named(client: SignInClient) -> str:
    """The well-known product that it passes for, whose hosts do not vouch for it; else empty."""
    return product_names.product_named(client.name, host_of(client).partition(":")[0])


def is_known(client_id: str) -> bool:
    return SignInClient.objects.filter(client_id=client_id).exists()


def host_of(client: SignInClient) -> str:
    """The host that vouches for it; empty for a registered one."""
    is_document = client.kind == SignInClient.Kind.DOCUMENT
    return urlsplit(client.client_id).netloc if is_document else ""


def registrations_of(client: SignInClient) -> list[str]:
    """The ids under which one client registered itself: each time anew, under the same name and for
    the same addresses. Where all of them are of hosts, nobody but these hosts gets the codes.

    A program on a user's computer is known by its id alone: any other program could register its
    name and its address, and would then act as an agent for which users approved calls in advance.
    So could a device, which gets no code at an address.
    """
    if client.kind != SignInClient.Kind.REGISTERED or not _is_of_hosts(client):
        return [client.client_id]
    same = SignInClient.objects.filter(
        kind=client.kind, name=client.name, redirect_uris=client.redirect_uris, device_flow=False
    )
    return list(same.values_list("client_id", flat=True))


def _is_of_hosts(client: SignInClient) -> bool:
    places = client.redirect_uris
    return bool(places) and not client.device_flow and all(map(is_of_host, places))


def note_page(client: SignInClient) -> None:
    """A user sees its consent page, and may answer another day."""
    if client.kind == SignInClient.Kind.REGISTERED:
        SignInClient.objects.filter(pk=client.pk).update(read_at=timezone.now())


def forget_unused() -> None:
    for kind, kept_for in UNUSED_FOR.items():
        old = SignInClient.objects.filter(kind=kind, read_at__lt=timezone.now() - kept_for)
        old.filter(used_at=None).delete()


def _make_room() -> None:
    forget_unused()
    unused = SignInClient.objects.filter(kind=SignInClient.Kind.REGISTERED, used_at=None)
    displace(unused, beyond=unused.count() + 1 - UNUSED_MAX, by="read_at")


def displace(rows: QuerySet[Any], *, beyond: int, by: str = "created_at") -> None:
    """Deletes so many: the oldest of the network that has most, so that a flood displaces
    itself."""
    if beyond > 0:
        by_network = rows.values("network").annotate(n=Count("pk")).order_by("-n", "network")
        most = rows.filter(network=by_network[0]["network"]).order_by(by)
        rows.model._default_manager.filter(pk__in=most.values("pk")[:beyond]).delete()


def _check_address(client_id: str) -> None:
    """The form that a document's address has, before anything is asked there."""
    try:
        parts = urlsplit(client_id)
        is_whole = bool(parts.hostname) and parts.username is None and parts.password is None
    except ValueError:
        raise ClientRefused(_("The client is not known here.")) from None
    segments = unquote(parts.path).split("/")
    if parts.scheme not in ("https", "http") or len(client_id) > ID_MAX:
        raise ClientRefused(_("The client is not known here."))
    is_whole = is_whole and is_plain(client_id) and "#" not in client_id
    if not is_whole or len(parts.path) < 2 or {".", ".."} & set(segments):
        raise ClientRefused(_("The client's id is no address that a document may have."))


def _read_anew(client_id: str) -> SignInClient:
    """Raises RequestFailed where there is no answer, else ClientRefused."""
    names = _names(_read_document(client_id))
    forget_unused()
    client, _made = SignInClient.objects.update_or_create(
        client_id=client_id,
        defaults={**names, "kind": SignInClient.Kind.DOCUMENT, "read_at": timezone.now()},
    )
    return client


def _read_document(client_id: str) -> dict[str, Any]:
    """Raises RequestFailed where there is no answer, else ClientRefused."""
    release_connection()
    answer = guarded_http.fetch(
        "GET", client_id, {}, networks=settings.CLIENT_NETWORKS, limits=DOCUMENT_LIMITS
    )
    if answer.status != 200:
        raise RequestFailed(_("The answer was HTTP %d.") % answer.status)
    # A host that keeps files of its users vouches for none of them.
    kind = answer.headers.get(b"content-type")
    if kind and not _JSON(kind.partition(";")[0].strip().lower()):
        raise ClientRefused(_("The client's document is served as “%s”, not as JSON.") % kind[:100])
    try:
        said = strict_json.loads(answer.body)
    except strict_json.Ambiguous as error:
        raise ClientRefused(_("The client's document is no JSON that can be used.")) from error
    # Compared as text: an address that is only equivalent may be somebody else's.
    if not isinstance(said, dict) or said.get("client_id") != client_id:
        raise ClientRefused(_("The client's document is for another client."))
    _check_kind(said)
    return said


def _check_kind(said: Mapping[str, Any]) -> None:
    """A client has a key or nothing: what wants a secret is given none."""
    grant_types = said.get("grant_types", [CODE_GRANT])
    if not isinstance(grant_types, list) or not any(
        one in grant_types for one in (CODE_GRANT, DEVICE_GRANT)
    ):
        raise ClientRefused(_("The client does not use authorization codes."))
    response_types = said.get("response_types", ["code"])
    if CODE_GRANT in grant_types and (
        not isinstance(response_types, list) or "code" not in response_types
    ):
        raise ClientRefused(_("The client does not use authorization codes."))


def _names(said: Mapping[str, Any]) -> dict[str, Any]:
    """Reads what is stored of a client whose kind was checked. Raises ClientRefused."""
    grant_types = said.get("grant_types", [CODE_GRANT])
    is_device_alone = CODE_GRANT not in grant_types and not said.get("redirect_uris")
    return {
        "name": _name(said),
        "redirect_uris": [] if is_device_alone else _redirect_uris(said),
        "device_flow": DEVICE_GRANT in grant_types,
        **_keys(said),
    }


def _keys(said: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return declared_keys(said)
    except KeysRefused as error:
        raise ClientRefused(str(error)) from error


def _redirect_uris(said: Mapping[str, Any]) -> list[str]:
    given = said.get("redirect_uris")
    if not isinstance(given, list) or not 0 < len(given) <= REDIRECTS_MAX:
        raise ClientRefused(
            _("The client names no redirect address, or more than %d.") % REDIRECTS_MAX
        )
    if not all(map(is_allowed, given)):
        raise ClientRefused(
            _(
                "A redirect address is not allowed: use https, http to the user's own computer, or "
                "an app's own scheme."
            )
        )
    return given


def _name(said: Mapping[str, Any]) -> str:
    name = said.get("client_name", "")
    if not isinstance(name, str):
        raise ClientRefused(_("The client's name is no text."))
    storable = name.encode(errors="replace").decode().replace("\0", "�")
    kept = " ".join(_UNSEEN.sub("", storable).split())[:NAME_MAX]
    if _TURNS.search(storable) or (name and not kept):
        raise ClientRefused(
            _("The client's name cannot be read: it is blank, or turns the direction of writing.")
        )
    return kept
