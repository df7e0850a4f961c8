"""What is kept of servers' words: version by version, none ever changed."""

from __future__ import annotations

from typing import Any

import orjson
from django.db import models
from django.utils import timezone


class Version(models.Model):
    """One immutable version of what a server says of something."""

    version = models.PositiveIntegerField()
    # SHA-256 over the canonical form of all that reaches a model, and of the server's identity.
    digest = models.CharField(max_length=64)
    # As the server wrote it, as JSON text.
    body = models.TextField()
    first_seen_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        abstract = True

    @property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = orjson.loads(self.body)
        return content

    @property
    def description(self) -> str:
        return str(self.content.get("description") or "")
