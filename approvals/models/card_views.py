"""When the card of a pending call was first shown to a person."""

from __future__ import annotations

from django.db import models

from accounts.models import User
from audit.models import ClockTime


class CardView(models.Model):
    """A page with the card of a pending call was sent to somebody who decides: a measurement for
    the workload page, and no proof that anybody read it."""

    id = models.BigAutoField(primary_key=True)
    # No key of the database, as nowhere of calls.
    call_id = models.UUIDField()
    person = models.ForeignKey(User, models.CASCADE, related_name="+")
    at = models.DateTimeField(db_default=ClockTime())

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="approvals_card_view_once", fields=["call_id", "person"])
        ]
        indexes = [models.Index(name="approvals_card_view_at", fields=["at"])]

    def __str__(self) -> str:
        return f"{self.call_id} shown to {self.person_id}"
