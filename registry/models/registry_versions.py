"""Toolsets' servers as an MCP registry lists them."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils import timezone


class RegistryVersionQuerySet(models.QuerySet["RegistryVersion"]):
    def with_latest(self) -> Self:
        """Each with `latest`, the highest number of its server."""
        others = type(self)(self.model).filter(
            toolset=models.OuterRef("toolset"), server=models.OuterRef("server")
        )
        highest = others.order_by("-number").values("number")[:1]
        return self.annotate(latest=models.Subquery(highest))


class RegistryVersion(models.Model):
    """One version of a server's entry in a toolset's registry. Its body never changes."""

    toolset = models.ForeignKey(
        "Toolset", models.CASCADE, related_name="registry_versions", editable=False
    )
    server = models.ForeignKey("Server", models.CASCADE, related_name="+", editable=False)
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    # server.json, as clients get it.
    body = models.JSONField()
    # Of the body without its version, and of the tools that were published.
    digest = models.CharField(max_length=64)
    published_at = models.DateTimeField(default=timezone.now)
    # When the server was no longer offered.
    deleted_at = models.DateTimeField(null=True)

    objects = RegistryVersionQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="registry_served_once", fields=["toolset", "server", "number"]
            )
        ]
        indexes = [models.Index(name="registry_served_name", fields=["toolset", "name"])]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def version(self) -> str:
        return str(self.body["version"])
