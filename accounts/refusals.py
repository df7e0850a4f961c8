"""Entries of refused forms, redirects, answers, tokens and links at sign-in, and of changes that a
provider may not make: one of each kind for each user, address and window.

Nobody can tell them from mistakes, so they count towards no limit, and a flood writes a bounded
number of entries.
"""

from __future__ import annotations

import logging
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.csrf import csrf_failure

from accounts.attempts import WINDOW
from accounts.models import Attempt, User
from audit.services import SYSTEM, Actor, record
from core.client_address import client_address
from core.english import gettext as _
from core.errors import CountersignError

log = logging.getLogger(__name__)
# In a window, of all addresses together: for each user, and for all who are not signed in.
MOST = 200
# Begins the kind of an attempt whose user is known.
BY = "by "
HOST_MAX = 100
# Pages that sign somebody in, or connect an account that does.
PLACES = ("/sign-in/", "/sign-out/", "/password-reset/", "/profile/", "/oauth/")


def form_without_token(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The answer to a form that another site sent, or that is too old (CSRF)."""
    if request.path.startswith(PLACES):
        said = _("Rejected form without a valid CSRF token: %s") % request.path[:HOST_MAX]
        _note(request, "sign_in.form_rejected", said)
    return csrf_failure(request, reason)


def local_page(request: HttpRequest, there: str) -> str:
    """The page to go to, if it is ours; else empty, and an entry says so."""
    here = {request.get_host()}
    secure = request.is_secure()
    if not there or url_has_allowed_host_and_scheme(there, here, require_https=secure):
        return there
    said = _("Rejected redirect to another site: %s") % _host(there)
    _note(request, "sign_in.redirect_rejected", said)
    return ""


def answer_without_sign_in(request: HttpRequest, provider: str, error: CountersignError) -> None:
    """A provider's answer that this browser did not begin, or that was used before."""
    _note(request, "sign_in.answer_rejected", str(error), provider=provider)


def logout_token(request: HttpRequest, provider: str, error: CountersignError) -> None:
    """A logout token that signs nobody out: forged, used before, or of another provider."""
    _note(request, "sign_in.logout_token_rejected", str(error), provider=provider[:HOST_MAX])


def link(request: HttpRequest, error: CountersignError) -> None:
    """A sign-in link or one for a new password: invented, used before, or too old."""
    _note(request, "sign_in.link_rejected", str(error))


def connection(request: HttpRequest, server: str, error: CountersignError) -> None:
    """Another user's link to connect an account at a server, or an answer that this user did not
    begin."""
    # Each reason and server by itself, as with tokens.
    kind = f"credential.rejected {_mark(server, str(error))}"
    _note(request, "credential.rejected", str(error), kind=kind, server=server)


def scim_change(request: HttpRequest, by: Actor, detail: str) -> None:
    """A change that a provider may not make here, such as a second group of one name."""
    _note(request, "scim.refused", detail, by=by)


def confirmation(request: HttpRequest, confirmed: Model, error: CountersignError) -> None:
    """A confirmation by a user who may not be the second person, such as who asked for it."""
    kind = f"confirmation.rejected {confirmed._meta.model_name} {confirmed.pk}"
    _note(request, "confirmation.rejected", str(error), kind=kind, confirmed=str(confirmed))


def access_token(address: str, reason: str, **details: Any) -> None:
    """A token that opens nothing as an agent. `token`: which of ours it is, never its text;
    `agent`: of which, as entries have it."""
    cut = {name: value[:HOST_MAX] for name, value in details.items() if isinstance(value, str)}
    # Each reason and token of ours by itself: one that matters is not hidden behind junk that was
    # sent before.
    kind = f"agent.token_rejected {_mark(reason, details.get('token', ''))}"
    _write("agent.token_rejected", address, SYSTEM, reason, kind=kind, **(details | cut))


def agent_sign_in(
    request: HttpRequest, reason: str, *, by: User | None = None, **details: str
) -> None:
    """A client's request at our authorization server that is answered with an error."""
    told = {name: value[:HOST_MAX].replace("\0", "�") for name, value in details.items()}
    kind = f"agent_sign_in.rejected {_mark(reason)}"
    actor = by.actor if by else None
    _note(request, "agent_sign_in.rejected", reason, by=actor, kind=kind, **told)


def _mark(*texts: str) -> str:
    return sha256(" ".join(texts).encode()).hexdigest()[:16]


def _host(there: str) -> str:
    """Without its path and query, which may have secrets."""
    try:
        return (urlsplit(there).hostname or "?")[:HOST_MAX]
    except ValueError:
        return "?"


def _note(
    request: HttpRequest,
    action: str,
    reason: str,
    *,
    by: Actor | None = None,
    kind: str = "",
    **details: str,
) -> None:
    _write(action, client_address(request), by or _actor(request), reason, kind=kind, **details)


def _write(
    action: str, address: str, actor: Actor, reason: str, *, kind: str = "", **details: Any
) -> None:
    try:
        with transaction.atomic():
            if _is_first(kind or action, address, actor):
                record(action, actor=actor, reason=reason, address=address, **details)
    except (DatabaseError, InterfaceError) as error:
        # It is refused all the same.
        log.warning("a refusal was not written down: %s", error)


def _is_first(kind: str, address: str, actor: Actor) -> bool:
    """Each user has their own entries, and their own limit: what others send hides none of them."""
    recent = Attempt.objects.filter(kind=Attempt.Kind.REJECTED, at__gt=timezone.now() - WINDOW)
    prefix = f"{BY}{actor.id} " if actor.id else ""
    alike = recent.filter(who__startswith=prefix) if prefix else recent.exclude(who__startswith=BY)
    who = prefix + kind
    if recent.filter(who=who, address=address).exists() or alike.count() >= MOST:
        return False
    Attempt.objects.create(kind=Attempt.Kind.REJECTED, who=who, address=address)
    return True


def _actor(request: HttpRequest) -> Actor:
    person = getattr(request, "user", None)
    return person.actor if isinstance(person, User) else SYSTEM
