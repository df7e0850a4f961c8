"""How often a password or a code may be tried.

A try is written down before it is looked at, so that many at once gain nothing, and taken away
again when it was right. Nobody can keep somebody else out: browsers where a person signed in
before are counted by themselves, and what was tried is forgotten after a quarter of an hour.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from accounts.models import Attempt, User
from audit.services import SYSTEM, record
from core import seal
from core.client_address import client_address
from core.english import gettext as _
from core.errors import CountersignError

WINDOW = timedelta(minutes=15)
KEPT_S = timedelta(days=1)
# Of one browser that knows the person; else of one address for one name, of all for one name,
# and of one address for all names: behind a proxy that nobody trusts that is everybody.
OF_BROWSER, OF_PAIR, OF_NAME, OF_ADDRESS = 10, 10, 50, 200
# Of somebody who is signed in: only that session can use them up.
OF_PERSON = 8
# Links for a new password: to one mailbox, and asked for by one address.
OF_MAILBOX, OF_ASKER = 3, 20
_OF_ADDRESS_ALONE = (
    Attempt.Kind.PASSKEY,
    Attempt.Kind.PROVIDER,
    Attempt.Kind.SCIM,
    Attempt.Kind.SLACK,
)
# Visits of the address for Slack by other methods than Slack's, of all addresses together.
OF_VISITS = 100
KNOWN = "known"
WRONG = _("A wrong password or code, or nobody's name.")
_REASONS: dict[str, str] = {
    Attempt.Kind.PASSKEY: _("The passkey is not known here, or its answer is for another sign-in."),
    Attempt.Kind.SCIM: _("No valid SCIM token."),
    Attempt.Kind.DEVICE: _("No device waits with this code."),
}
KNOWN_DAYS = 365


class TooManyAttempts(CountersignError):
    """Says for how long."""


def begin_sign_in(request: HttpRequest, name: str) -> Attempt:
    """Raises TooManyAttempts. `right` or `wrong` is to be called with what is returned."""
    attempt = Attempt(
        kind=Attempt.Kind.SIGN_IN,
        who=_digest(name.strip().casefold()),
        address=client_address(request),
        browser=_known_browser(request, name),
    )
    return _begin(attempt)


def begin(kind: Attempt.Kind, person: User) -> Attempt:
    """Starts an attempt of a signed-in person, as above."""
    return _begin(Attempt(kind=kind, who=_digest(str(person.pk))))


def begin_second_factor(request: HttpRequest, person: User) -> Attempt:
    """Starts the second step of a sign-in, as above."""
    attempt = Attempt(
        kind=Attempt.Kind.FACTOR,
        who=_digest(str(person.pk)),
        address=client_address(request),
        browser=_known_browser(request, person.username),
    )
    return _begin(attempt)


def count_reset(request: HttpRequest, mailbox: str) -> None:
    """Counts a link that is asked for; each counts, whoever has the mailbox. Raises
    TooManyAttempts."""
    attempt = Attempt(
        kind=Attempt.Kind.RESET,
        who=_digest(mailbox.strip().casefold()),
        address=client_address(request),
    )
    _begin(attempt)


def begin_passkey(request: HttpRequest) -> Attempt:
    """Starts a sign-in by passkey alone, which names nobody, as above."""
    return _begin(Attempt(kind=Attempt.Kind.PASSKEY, who="", address=client_address(request)))


def begin_provider(request: HttpRequest) -> Attempt:
    """Starts reading an identity provider's answer, as above."""
    return _begin(Attempt(kind=Attempt.Kind.PROVIDER, who="", address=client_address(request)))


def begin_scim(request: HttpRequest) -> Attempt:
    """Starts a refusal of a SCIM token, as above."""
    return _begin(Attempt(kind=Attempt.Kind.SCIM, who="", address=client_address(request)))


def begin_slack(request: HttpRequest) -> Attempt:
    """Starts a refusal of a request that Slack did not sign, as above."""
    return _begin(Attempt(kind=Attempt.Kind.SLACK, who="", address=client_address(request)))


@transaction.atomic
def note_slack_visit(request: HttpRequest, reason: str = "") -> None:
    """An entry for a request that is no POST, or for that reason: the first of its address within
    WINDOW, of so many addresses, so that nobody floods the record."""
    who = _digest(f"visit {reason}".strip())
    visit = Attempt(kind=Attempt.Kind.SLACK, who=who, address=client_address(request))
    recent = Attempt.objects.filter(
        kind=visit.kind, who=visit.who, at__gt=timezone.now() - WINDOW
    ).values_list("address", flat=True)
    if visit.address in recent or len(recent) >= OF_VISITS:
        return
    _forget_old()
    visit.save()
    why = _("Slack sends its requests by POST, and signs them: this was %(method)s.")
    said = reason or why % {"method": (request.method or "")[:20]}
    record("slack.failed", actor=SYSTEM, reason=said, address=visit.address)


def is_first_visit(request: HttpRequest, link: str) -> bool:
    """Whether nobody followed this link without a sign-in before, since yesterday."""
    visit = Attempt(kind=Attempt.Kind.LINK, who=_digest(link), address=client_address(request))
    if Attempt.objects.filter(kind=visit.kind, who=visit.who).exists():
        return False
    _forget_old()
    visit.save()
    return True


def right(attempt: Attempt) -> None:
    attempt.delete()


def wrong(attempt: Attempt, name: str, reason: str = "") -> None:
    """`name` as it was typed; only that of a person who exists is written down. `reason`: where
    it was not looked at whether it was wrong."""
    person = User.objects.filter(username=name).values_list("username", flat=True).first() or ""
    record(
        f"{attempt.kind}.failed",
        actor=SYSTEM,
        reason=reason or _REASONS.get(attempt.kind, WRONG),
        person=person,
        address=attempt.address,
        known_browser=bool(attempt.browser),
    )
    if any(count >= most for count, most in _counts(attempt)):
        said = _("Too many wrong ones: no more are looked at for %d minutes.") % _minutes()
        record(f"{attempt.kind}.limited", actor=SYSTEM, reason=said, person=person)


def remember_browser(request: HttpRequest, response: HttpResponse, person: User) -> None:
    response.set_cookie(
        KNOWN,
        _cookie(person.pk, secrets.token_urlsafe(16)),
        max_age=KNOWN_DAYS * 86400,
        httponly=True,
        samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
    )


def is_known_browser(request: HttpRequest, person: User) -> bool:
    return bool(_known_browser(request, person.username))


def _begin(attempt: Attempt) -> Attempt:
    _forget_old()
    attempt.save()
    if any(count > most for count, most in _counts(attempt)):
        # What is not looked at does not count: the door opens again by itself.
        attempt.delete()
        raise TooManyAttempts(
            _("Too many wrong tries. Wait %d minutes, then try again.") % _minutes()
        )
    return attempt


def _counts(attempt: Attempt) -> Iterator[tuple[int, int]]:
    """How many there were lately, and how many there may be."""
    recent = Attempt.objects.filter(kind=attempt.kind, at__gt=timezone.now() - WINDOW)
    of_name = recent.filter(who=attempt.who)
    if attempt.kind == Attempt.Kind.FACTOR:
        # Of whoever knows the password: in a known browser the person is let try all the same.
        yield of_name.filter(browser=attempt.browser).count(), OF_PERSON
        yield recent.filter(address=attempt.address).count(), OF_ADDRESS
    elif attempt.kind in _OF_ADDRESS_ALONE:
        # Neither a signature nor a token is guessed; nobody keeps everybody else out.
        yield recent.filter(address=attempt.address).count(), OF_ADDRESS
    elif attempt.kind == Attempt.Kind.RESET:
        yield of_name.count(), OF_MAILBOX
        yield recent.filter(address=attempt.address).count(), OF_ASKER
    elif attempt.kind != Attempt.Kind.SIGN_IN:
        yield of_name.count(), OF_PERSON
    elif attempt.browser:
        yield of_name.filter(browser=attempt.browser).count(), OF_BROWSER
    else:
        strange = of_name.filter(browser="")
        yield strange.filter(address=attempt.address).count(), OF_PAIR
        yield strange.count(), OF_NAME
        yield recent.filter(browser="", address=attempt.address).count(), OF_ADDRESS


def _forget_old() -> None:
    old = Attempt.objects.filter(at__lt=timezone.now() - KEPT_S).values("pk")[:100]
    Attempt.objects.filter(pk__in=old).delete()


def _known_browser(request: HttpRequest, name: str) -> str:
    given = request.COOKIES.get(KNOWN, "")
    pk, _dot, rest = given.partition(".")
    token = rest.partition(".")[0]
    if not (pk.isascii() and pk.isdecimal() and len(pk) < 19) or not secrets.compare_digest(
        given.encode(), _cookie(int(pk), token).encode()
    ):
        return ""
    is_theirs = User.objects.filter(pk=int(pk), username=name.strip()).exists()
    return _digest(token) if is_theirs else ""


def _cookie(pk: int, token: str) -> str:
    signature = seal.to_text(seal.sign("known browser", f"{pk}.{token}".encode()))
    return f"{pk}.{token}.{signature}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _minutes() -> int:
    return int(WINDOW.total_seconds() // 60)
