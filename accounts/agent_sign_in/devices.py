"""Devices without a browser: their user types a code into a page elsewhere.

Source: RFC 8628.
"""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from accounts.agent_sign_in import grants
from accounts.agent_sign_in.client_assertions import UNSIGNED, ShownClient
from accounts.agent_sign_in.clients import displace
from accounts.agent_sign_in.grants import IsOpen, Issued, TokenRefused
from accounts.models import Agent, DeviceCode, SignInClient, User
from audit.services import SYSTEM, record
from core import seal
from core.english import gettext as _

LASTS, INTERVAL_S, INTERVAL_MAX_S = timedelta(minutes=10), 5, 60
# Questions that wait at once: beyond that, the oldest of whoever asks most go first.
WAITING_MAX = 500
_DEVICE, _USER = "device code", "device's user code"
# Without vowels, digits and letters that look alike: no words come of it. Source: RFC 8628, 6.1.
_ALPHABET, LENGTH = "BCDFGHJKLMNPQRSTVWXZ", 8


class DeviceWaits(Exception):
    """The device gets no token yet, or never; `error` as RFC 8628, 3.5 has it."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class DeviceStart(NamedTuple):
    device_code: str
    user_code: str


@transaction.atomic
def begin(client_id: str, resource: str, network: str) -> DeviceStart:
    """The client and the address were checked."""
    waiting = DeviceCode.objects.filter(decided_at=None, expires_at__gt=timezone.now())
    displace(waiting, beyond=waiting.count() + 1 - WAITING_MAX)
    start = DeviceStart(secrets.token_urlsafe(32), _user_code())
    DeviceCode.objects.create(
        digest=seal.sign(_DEVICE, start.device_code.encode()),
        user_digest=_user_digest(start.user_code),
        client_id=client_id,
        resource=resource,
        network=network,
        expires_at=timezone.now() + LASTS,
        interval_s=INTERVAL_S,
    )
    record(
        "agent_sign_in.device_asked",
        actor=SYSTEM,
        client_id=client_id,
        resource=resource,
        address=network,
    )
    return start


def find(user_code: str) -> DeviceCode | None:
    """The question that waits with this code, however it is typed."""
    waiting = DeviceCode.objects.filter(decided_at=None, expires_at__gt=timezone.now())
    return waiting.filter(user_digest=_user_digest(user_code)).first()


@transaction.atomic
def decide(
    row: DeviceCode, client: SignInClient, *, person: User, agent: Agent | None = None
) -> bool:
    """Writes the answer down; without an agent it is no. False where it was answered before, or
    too late."""
    now = timezone.now()
    waiting = DeviceCode.objects.filter(pk=row.pk, decided_at=None, expires_at__gt=now)
    answer = {"person": person, "agent": agent} if agent else {}
    if not waiting.update(decided_at=now, **answer):
        return False
    if agent:
        SignInClient.objects.filter(pk=client.pk).update(used_at=now)
    record(
        "agent_sign_in.allowed" if agent else "agent_sign_in.denied",
        actor=person.actor,
        **({"agent": (agent.pk, agent.name)} if agent else {}),
        client=client.name,
        client_id=client.client_id,
        resource=row.resource,
        device=row.network,
        **(grants.look_alike_details(client) if agent else {}),
    )
    return True


def redeem(device_code: str, *, shown: ShownClient, is_open: IsOpen, jkt: str = "") -> Issued:
    """Raises TokenRefused, and DeviceWaits where there is no answer, or it is no."""
    with transaction.atomic():
        row = _locked(device_code)
        if row is None or row.client_id != shown.client_id:
            raise TokenRefused(_("The device code is not known, or of another client."))
        if row.used_at is not None:
            if row.token is not None:
                grants.revoke_grant(row.token, _("Its device code was shown twice."))
            why, issued, error = _("The device code was used before."), None, ""
        elif error := _why_waiting(row):
            why, issued = "", None
        else:
            why, issued = _redeem(row, shown, is_open, jkt)
    if error:
        raise DeviceWaits(error)
    if issued is None:
        raise TokenRefused(why, row.person)
    return issued


def _redeem(
    row: DeviceCode, shown: ShownClient, is_open: IsOpen, jkt: str
) -> tuple[str, Issued | None]:
    """Uses the answer up; why there is no token, if there is none."""
    person, agent = row.person, row.agent
    client = SignInClient.objects.filter(client_id=row.client_id).first()
    row.used_at = timezone.now()
    why = grants.why_unbound(agent, jkt) if agent else ""
    if client and client.signs_requests and not shown.is_signed:
        # Its user answered after the client was looked at.
        why = UNSIGNED
    if (
        not why
        and person
        and agent
        and client
        and grants.is_active(person, agent)
        and is_open(row.resource, agent)
    ):
        row.token = grants.make_grant(client, person, agent, row.resource, jkt)
    row.save(update_fields=["used_at", "token"])
    if row.token is None:
        return why or _("Agents are no longer signed in there."), None
    return "", grants.issue(row.token)


def _locked(device_code: str) -> DeviceCode | None:
    digest = seal.sign(_DEVICE, device_code.encode(errors="replace"))
    # Not `token`: a request that waited for the lock would see none.
    rows = DeviceCode.objects.select_for_update(of=("self",)).select_related("person", "agent")
    return rows.filter(digest=digest).first()


def _why_waiting(row: DeviceCode) -> str:
    """The error of RFC 8628 while there is no yes; counts how often the device asks."""
    now = timezone.now()
    if row.expires_at <= now:
        return "expired_token"
    if row.decided_at is not None:
        return "" if row.agent_id else "access_denied"
    before, row.polled_at = row.polled_at, now
    is_early = before is not None and now - before < timedelta(seconds=row.interval_s)
    if is_early:
        row.interval_s = min(row.interval_s + INTERVAL_S, INTERVAL_MAX_S)
    row.save(update_fields=["polled_at", "interval_s"])
    return "slow_down" if is_early else "authorization_pending"


def _user_code() -> str:
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(LENGTH))
    return f"{letters[:4]}-{letters[4:]}"


def _user_digest(user_code: str) -> bytes:
    letters = "".join(one for one in user_code.upper() if one in _ALPHABET)
    return seal.sign(_USER, letters.encode())
