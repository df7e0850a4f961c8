"""A new secret of the installation, in two steps that each may be cut off: first it is written
beside the old one, then everything in the database is sealed with it."""

from __future__ import annotations

from typing import NamedTuple

from django.conf import settings
from django.db import transaction

from accounts import one_time_codes
from accounts.models import AgentToken
from approvals import decision_keys
from audit.models import Secret
from audit.services import Actor, record
from calls.content import received_results
from config.secret import replace_secret
from config.secret_check import check_secret
from core import seal
from core.errors import CountersignError
from core.secrets import fingerprint_of
from notifications import (
    calendars,
    push_keys,
    slack_secrets,
    subscriptions,
    webhook_requests,
)
from registry import connections
from registry.credentials import vault

SEALED = (
    *connections.SEALED,
    *vault.SEALED,
    *webhook_requests.SEALED,
    *slack_secrets.SEALED,
    *push_keys.SEALED,
    *calendars.SEALED,
    *subscriptions.SEALED,
    *one_time_codes.SEALED,
    *decision_keys.SEALED,
    *received_results.SEALED,
)


class RotationRefused(CountersignError):
    """Nothing was changed; says why and what to do."""


class Resealed(NamedTuple):
    values: int
    # Where no secret opened one: they were useless before.
    unopened: list[str]
    # Issued under another secret, and recognised by it.
    tokens: int


def is_unfinished() -> bool:
    """Whether the database is still sealed with an old secret."""
    newest = Secret.objects.order_by("-pk").first()
    old = map(fingerprint_of, settings.OLD_SECRET_KEYS)
    return (
        newest is not None
        and newest.fingerprint != seal.fingerprint()
        and newest.fingerprint in old
    )


def begin(*, given: bool) -> bool:
    """Writes another secret; False if one is written already and the database has yet to follow.
    `given` by the environment, a secret is its keeper's to replace. Raises RotationRefused."""
    if not Secret.objects.exists():
        raise RotationRefused("This database has no secret yet: start Countersign on it once.")
    if is_unfinished():
        return False
    if wrong := check_secret(settings.DATABASE_OWNER_URL, settings.SECRET_KEY):
        raise RotationRefused(wrong)
    if given:
        raise RotationRefused(
            "This installation's secret is COUNTERSIGN_SECRET_KEY: set another there, and the "
            "present one as COUNTERSIGN_OLD_SECRET_KEYS, then run this again."
        )
    replace_secret(settings.DATA_DIR)
    return True


@transaction.atomic
def reseal(*, by: Actor) -> Resealed:
    """Everything or nothing, and from then on only the present secret may start here."""
    unopened = [place for field in SEALED for place in field.reseal()]
    values = sum(field.rows().count() for field in SEALED) - len(unopened)
    tokens = AgentToken.objects.valid().count()
    Secret.objects.create(fingerprint=seal.fingerprint())
    record(
        "secret.rotated",
        actor=by,
        fingerprint=seal.fingerprint(),
        resealed=values,
        unopened=unopened,
    )
    return Resealed(values, unopened, tokens)
