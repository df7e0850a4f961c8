"""Icons that servers declare, as pages show them."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from registry.models.servers import Server


class Icon(models.Model):
    """A picture that a server declares for itself or for tools, drawn anew by us."""

    server = models.ForeignKey(Server, models.CASCADE, related_name="icons")
    # An https: or data: URL, and its SHA-256.
    source = models.TextField()
    digest = models.CharField(max_length=64)
    # As PNG; NULL: none could be made, and why.
    content = models.BinaryField(null=True)
    problem = models.TextField(blank=True)
    fetched_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="registry_icon_once", fields=["server", "digest"])
        ]

    def __str__(self) -> str:
        return f"icon of {self.server}"
