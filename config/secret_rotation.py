"""A new secret of the installation, in two steps that each may be cut off: first it is written
beside the old one, then everything in the database is sealed with it.

While processes run, it is announced before: those that start from then on read with it, and still
seal with the one before. Once all of them do, everything is sealed with the new one under them.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.conf import settings
from django.db import connection, transaction

from accounts import one_time_codes
from accounts.models import AgentToken
from approvals import decision_keys
from audit.models import Entry, Secret
from audit.services import Actor, record
from calls.content import received_results
from config import host
from config.secret import announce_secret, next_secret, old_secret_keys, open_kept, replace_secret
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


ANNOUNCED = "secret.announced"


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
        # One that was replaced here does not come back.
        and not Secret.objects.filter(fingerprint=seal.fingerprint()).exists()
    )


def announce(*, given: bool, by: Actor) -> None:
    """Lets processes that start from now on read what the next secret seals. `given` by the
    environment, it stands among the old ones there. Raises RotationRefused."""
    _check_begun()
    if is_unfinished():
        raise RotationRefused("A rotation is not finished: run rotate_secret without options.")
    if given and not settings.OLD_SECRET_KEYS:
        raise RotationRefused(
            "This installation's secret is COUNTERSIGN_SECRET_KEY: add the next one to "
            "COUNTERSIGN_OLD_SECRET_KEYS of all processes, and run this again."
        )
    if not given:
        announce_secret(settings.DATA_DIR)
    known = [fingerprint_of(open_kept(kept)) for kept in old_secret_keys(settings.DATA_DIR)]
    record(ANNOUNCED, actor=by, fingerprints=known, sessions=sorted(host.other_sessions()))


def unaware_sessions() -> set[int]:
    """The other sessions whose processes may not know the secret with which everything is to be
    sealed: those that there were before it was announced."""
    others, announced = host.other_sessions(), _announced()
    if announced is None or not _ran_since(announced.at):
        return others
    return others & set(announced.details["sessions"])


def _announced() -> Entry | None:
    following = next_secret(settings.DATA_DIR)
    if is_unfinished():
        wanted = seal.fingerprint()
    elif following:
        wanted = fingerprint_of(open_kept(following))
    else:
        return None
    found = Entry.objects.filter(action=ANNOUNCED).order_by("-id")
    return next(
        (one for one in found if wanted in (one.details or {}).get("fingerprints", ())), None
    )


def _ran_since(at: datetime) -> bool:
    """Whether the database did: after a start of it, every session is new, and not its process."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_postmaster_start_time() < %s", [at])
        (ran,) = cursor.fetchone()
    return bool(ran)


def begin(*, given: bool) -> bool:
    """Writes another secret; False if one is written already and the database has yet to follow.
    `given` by the environment, a secret is its keeper's to replace. Raises RotationRefused."""
    _check_begun()
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


def _check_begun() -> None:
    if not Secret.objects.exists():
        raise RotationRefused("This database has no secret yet: start Countersign on it once.")


@transaction.atomic
def reseal(*, by: Actor) -> Resealed:
    """Everything or nothing, and from then on only the present secret may start here."""
    done = _seal_anew()
    Secret.objects.create(fingerprint=seal.fingerprint())
    _record("secret.rotated", done, by)
    return done


@transaction.atomic
def reseal_again(*, by: Actor) -> Resealed:
    """For what processes sealed since then that knew the present secret only to read with. Raises
    RotationRefused."""
    if wrong := check_secret(settings.DATABASE_OWNER_URL, settings.SECRET_KEY):
        raise RotationRefused(wrong)
    done = _seal_anew()
    _record("secret.resealed", done, by)
    return done


def _seal_anew() -> Resealed:
    unopened = [place for field in SEALED for place in field.reseal()]
    values = sum(field.rows().count() for field in SEALED) - len(unopened)
    return Resealed(values, unopened, AgentToken.objects.valid().count())


def _record(action: str, done: Resealed, by: Actor) -> None:
    record(
        action,
        actor=by,
        fingerprint=seal.fingerprint(),
        resealed=done.values,
        unopened=done.unopened,
    )
