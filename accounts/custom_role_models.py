"""Custom roles: permissions that administrators put together, everywhere or for some tags."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.triggers import Keep


def tags() -> ArrayField[list[str], list[str]]:
    """Names by which roles are limited to some servers, toolsets and agents."""
    return ArrayField(models.CharField(max_length=40), default=list, db_default=[], blank=True)


class CustomRole(models.Model):
    """A group with permissions that an administrator chose.

    Its name is the group's, and stays: rules and mappings name it.

    The group itself holds what the role permits everywhere. What it permits for some tags alone
    stands here, where no question without an object finds it (accounts/scopes.py).
    """

    group = models.OneToOneField(
        Group, models.PROTECT, primary_key=True, related_name="custom_role"
    )
    description = models.CharField(_("description"), max_length=200)
    scoped_permissions = ArrayField(models.CharField(max_length=60), default=list)
    server_tags = tags()
    toolset_tags = tags()
    agent_tags = tags()
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    created_by = models.ForeignKey(
        "accounts.User", models.PROTECT, editable=False, related_name="+"
    )
    # Since then nobody has it or gets it.
    retired_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        triggers = [
            Keep(name="keep_maker", columns=["group_id", "created_by_id", "created_at"]),
        ]

    def __str__(self) -> str:
        return self.group.name

    @property
    def is_scoped(self) -> bool:
        return bool(self.server_tags or self.toolset_tags or self.agent_tags)
