"""Single-person mode: whoever is alone in an installation decides on calls of their own agents.

It begins with the first administrator of a new installation (unless the host says
COUNTERSIGN_SINGLE_PERSON=0), and the database ends it, for good and with an entry, as soon as a
second person's votes count (approvals/sql/single_person_mode.sql).
"""

from __future__ import annotations

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.models import SinglePersonMode
from audit.services import SYSTEM, record
from core.english import gettext as _

# As the database writes it.
ENDED = _("There is a second approver: from now on nobody decides alone on calls of their own.")


@transaction.atomic
def begin() -> None:
    if not settings.SINGLE_PERSON or SinglePersonMode.objects.exists():
        return
    SinglePersonMode.objects.create()
    record(
        "single_person_mode.began",
        actor=SYSTEM,
        reason=_("There is one person, who decides on calls of their own agents too."),
    )


def is_on() -> bool:
    return SinglePersonMode.objects.filter(ended_at=None).exists()


@transaction.atomic
def end_if_refused() -> None:
    """The host may end it at any time; nobody begins it again."""
    if settings.SINGLE_PERSON:
        return
    running = SinglePersonMode.objects.filter(ended_at=None)
    if running.update(ended_at=timezone.now()):
        why = _("The host does not allow it (COUNTERSIGN_SINGLE_PERSON=0).")
        record("single_person_mode.ended", actor=SYSTEM, reason=why)
