"""Objects that a policy file manages: read-only wherever else it could be changed."""

from __future__ import annotations

from django.db import models


class ManagedPart(models.Model):
    """A section of the file in use, or one object that it names; `source`: where the file is."""

    # As in the file: rules, limits, toolsets, servers, tools, schedules.
    section = models.CharField(max_length=20)
    # Empty: the section lists all that there are.
    name = models.CharField(max_length=200, blank=True)
    source = models.CharField(max_length=500)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="registry_managed_once", fields=["section", "name"])
        ]

    def __str__(self) -> str:
        return f"{self.section} {self.name}".strip()
