"""Views of the queue that people saved for themselves."""

from __future__ import annotations

from urllib.parse import urlencode

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import User


class QueueView(models.Model):
    """Filters, order and grouping of the queue under a name; only its owner sees it."""

    owner = models.ForeignKey(User, models.CASCADE, related_name="queue_views")
    name = models.CharField(_("name"), max_length=60)
    # What the queue's address has (approvals/queue_list.py).
    query = models.JSONField(default=dict)

    class Meta:
        default_permissions = ()
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(name="approvals_queue_view_once", fields=["owner", "name"])
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def address(self) -> str:
        return f"?{urlencode(sorted(self.query.items()))}"
