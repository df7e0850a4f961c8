"""Sessions of people: begun, seen, listed and ended. Each is Django's session row, with a row
beside it that says where it is used."""

from __future__ import annotations

import logging
import time
from dataclasses import asdict, dataclass

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, login
from django.contrib.sessions.models import Session
from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.translation import override

from accounts import attempts
from accounts.actors import AccountRefused
from accounts.models import BrowserSession, User
from accounts.session_store import SessionStore, expires
from accounts.user_agents import device
from audit.services import Actor, record
from core.client_address import client_address
from core.english import gettext as _
from core.http import is_htmx

log = logging.getLogger(__name__)

# In which a session counts as seen: written at most so often by each process.
SEEN_EVERY_S = 60.0
_seen: dict[str, float] = {}
SEEN_MAX = 10_000


# In the session: where the provider's session is, for signing out there.
AT_PROVIDER = "at_provider"


@dataclass(frozen=True, slots=True)
class ProviderSession:
    """A session at an identity provider, behind one of ours."""

    provider: str
    identity: int
    # The provider's id of its session; empty where it has none.
    sid: str
    id_token: str


def begin(
    request: HttpRequest, person: User, provider_session: ProviderSession | None = None
) -> None:
    """Signs in; a browser that this person did not sign in with before is an entry, and a mail."""
    before = request.session.session_key
    is_new = bool(person.last_login) and not attempts.is_known_browser(request, person)
    login(request, person)
    request.session.pop(AT_PROVIDER, None)
    if request.session.session_key is None:
        # Another person's ended: a new one, whose key is wanted below.
        request.session.save()
    if before != request.session.session_key:
        BrowserSession.objects.filter(key=before).delete()
    if provider_session:
        request.session[AT_PROVIDER] = asdict(provider_session)
        note_provider_session(request, person, provider_session)
    if is_new:
        _record("person.new_device", person, _described(request, person))


def note_provider_session(request: HttpRequest, person: User, session: ProviderSession) -> None:
    """Writes down what the provider can end: a session, or a sign-in before its second step."""
    row = _described(request, person)
    said = {"person": person, "address": row.address, "user_agent": row.user_agent}
    said |= {"identity_id": session.identity, "provider_sid": session.sid}
    BrowserSession.objects.update_or_create(key=request.session.session_key, defaults=said)


def note_seen(request: HttpRequest) -> None:
    """Called with each answer whose request read its session. Pages that refresh themselves do so
    by htmx: they keep nobody signed in."""
    key = request.session.session_key
    is_refresh = is_htmx(request) and request.method == "GET"
    if key is None or SESSION_KEY not in request.session or is_refresh or not _is_due(key):
        return
    try:
        _write_seen(request, key)
    except (DatabaseError, InterfaceError) as error:
        # The answer is there; the next request says it again.
        _seen.pop(key, None)
        log.warning("a session's use was not written down: %s", error)


def list_open(person: User) -> list[BrowserSession]:
    """Those that are good now, the last used first."""
    rows = BrowserSession.objects.filter(person=person).order_by("-last_seen_at")
    good = _good_keys(person, [row.key for row in rows])
    return [row for row in rows if row.key in good]


@transaction.atomic
def end(session: BrowserSession) -> None:
    _end([session])
    _record("sessions.ended", session.person, session, count=1)


@transaction.atomic
def end_others(person: User, key: str | None) -> int:
    """All but the one with this key; returns how many."""
    others = [one for one in list_open(person) if one.key != key]
    _end(others)
    if others:
        record("sessions.ended", actor=person.actor, person=person.username, count=len(others))
    return len(others)


def end_by(actor: Actor, found: QuerySet[BrowserSession], *, reason: str) -> int:
    """Ends sessions for somebody other than their person, in the caller's transaction; returns how
    many."""
    rows = list(found.select_related("person").order_by("pk"))
    _end(rows)
    for person in {row.person_id: row.person for row in rows}.values():
        count = sum(row.person_id == person.pk for row in rows)
        record("sessions.ended", actor=actor, reason=reason, person=person.username, count=count)
    return len(rows)


def check_open(key: str | None) -> None:
    """Raises AccountRefused if the session was ended meanwhile. In the caller's transaction, after
    its lock on the user; None: nobody's session, as in a command."""
    if key is not None and not Session.objects.filter(session_key=key).exists():
        raise AccountRefused(_("Your session ended. Sign in, then begin again."))


def move(before: str | None, after: str | None) -> None:
    """A session has another key."""
    BrowserSession.objects.filter(key=before).update(key=after)


def remove_ended() -> None:
    """Removes rows of sessions that nobody uses any more, signed in or not."""
    Session.objects.filter(expire_date__lt=timezone.now()).delete()
    is_there = Session.objects.filter(session_key=OuterRef("key"))
    BrowserSession.objects.filter(~Exists(is_there)).delete()


def _is_due(key: str) -> bool:
    now = time.monotonic()
    if now - _seen.get(key, -SEEN_EVERY_S) < min(SEEN_EVERY_S, settings.SESSION_IDLE_S / 4):
        return False
    if len(_seen) >= SEEN_MAX:
        _seen.clear()
    _seen[key] = now
    return True


def _write_seen(request: HttpRequest, key: str) -> None:
    row = _described(request, User(pk=int(request.session[SESSION_KEY])))
    row.key = key
    BrowserSession.objects.bulk_create(
        [row],
        update_conflicts=True,
        unique_fields=["key"],
        update_fields=["address", "user_agent", "last_seen_at"],
    )
    Session.objects.filter(session_key=key).update(
        expire_date=expires(dict(request.session.items()))
    )


def _described(request: HttpRequest, person: User) -> BrowserSession:
    return BrowserSession(
        person=person,
        address=client_address(request),
        user_agent=request.headers.get("User-Agent", "")[:300],
    )


def _good_keys(person: User, keys: list[str]) -> set[str]:
    """Keys that Django takes: not expired, and begun since the last new password."""
    rows = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    wanted = person.get_session_auth_hash()
    return {
        row.session_key
        for row in rows
        if constant_time_compare(
            SessionStore().decode(row.session_data).get(HASH_SESSION_KEY, ""), wanted
        )
    }


def _end(sessions: list[BrowserSession]) -> None:
    # A request that is under way saves no session that is gone.
    Session.objects.filter(session_key__in=[one.key for one in sessions]).delete()
    BrowserSession.objects.filter(pk__in=[one.pk for one in sessions]).delete()


def _record(action: str, person: User, of: BrowserSession, **details: int) -> None:
    names = {"person": person.username, "address": of.address, "device": _english_device(of)}
    record(action, actor=person.actor, **names, **details)


def _english_device(of: BrowserSession) -> str:
    with override("en"):
        return device(of.user_agent)
