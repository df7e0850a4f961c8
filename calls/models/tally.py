"""How often calls came to each state, in one row."""

from __future__ import annotations

from django.db import models


class MoveTally(models.Model):
    """Moves of calls, counted up to an entry (calls/tally.py). Behind it are entries that nobody
    need read again for the sum."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    # By the state that was moved to.
    counts = models.JSONField(default=dict)
    # Every entry up to here that will ever be there was counted.
    reached = models.BigIntegerField(default=0)
    # How far `reached` may move once every transaction below the horizon has ended.
    ahead = models.BigIntegerField(default=0)
    horizon = models.BigIntegerField(default=0)

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(name="calls_one_tally", condition=models.Q(id=1))]

    def __str__(self) -> str:
        return f"up to entry {self.reached}"
