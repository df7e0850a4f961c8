"""OpenAPI documents of servers that are HTTP APIs."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class ApiDocument(models.Model):
    """The document that a server's definitions are made of, and which operations are offered."""

    server = models.OneToOneField(
        "Server", models.CASCADE, related_name="api_document", editable=False
    )
    # JSON, whatever it was written in.
    body = models.TextField()
    digest = models.CharField(max_length=64)
    # Where it was fetched; "": pasted or uploaded.
    source = models.URLField(max_length=2000, blank=True)
    # Those that it refers to, by URL, where it was permitted to fetch them.
    others = models.JSONField(default=dict)
    # By "METHOD /path": of every operation that it ever had, so that no name changes.
    names = models.JSONField(default=dict)
    # The operations that are offered, by the same, and their effect where an operator chose it.
    chosen = models.JSONField(default=dict)
    # What became of each operation, at the API's address then.
    base = models.URLField(max_length=2000)
    coverage = models.JSONField(default=list)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"OpenAPI document of {self.server}"
