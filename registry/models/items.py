"""Resources, prompts and other items of servers, with every version."""

from __future__ import annotations

from typing import Self

import pgtrigger
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from core.triggers import OnlyColumns, Refuse, append_only, configuration
from registry.models.versioned import Version


class ItemQuerySet(models.QuerySet["Item"]):
    def waiting(self) -> Self:
        return self.filter(state__in=[Item.State.NEW, Item.State.CHANGED])

    def for_list(self) -> Self:
        return self.select_related("latest")

    def for_change(self) -> Self:
        """Locks the rows: nobody publishes them until this transaction ends."""
        return self.select_related("published", "latest").select_for_update(of=("self",))


class Item(models.Model):
    """A resource, template or prompt of a server, or its instructions: offered once published."""

    class Kind(models.TextChoices):
        RESOURCE = "resource", _("Resource")
        TEMPLATE = "template", _("Resource template")
        PROMPT = "prompt", _("Prompt")
        # One a server: models read it, so somebody reads it first.
        INSTRUCTIONS = "instructions", _("Instructions")

    class State(models.TextChoices):
        NEW = "new", _("Unpublished")
        PUBLISHED = "published", _("Published")
        CHANGED = "changed", _("Changed, needs review")
        RETIRED = "retired", _("Removed upstream")

    server = models.ForeignKey("registry.Server", models.PROTECT, related_name="items")
    kind = models.CharField(max_length=12, choices=Kind)
    # Its URI, its URI template or its name; of instructions, the word.
    key = models.TextField()
    state = models.CharField(max_length=9, choices=State, default=State.NEW)
    published = models.ForeignKey(
        "ItemVersion", models.PROTECT, null=True, blank=True, related_name="+"
    )
    latest = models.ForeignKey(
        "ItemVersion", models.PROTECT, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ItemQuerySet.as_manager()

    class Meta:
        ordering = ["kind", "key"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="registry_item_once_a_server", fields=["server", "kind", "key"]
            ),
            # What is offered is what the server said last, and nothing held is ever offered.
            models.CheckConstraint(
                name="registry_item_published_is_latest",
                condition=~models.Q(state="published")
                | models.Q(published__isnull=False, published=models.F("latest")),
            ),
        ]
        triggers = [
            *configuration("state", "published_id"),
            Refuse(name="no_delete", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


class ItemVersion(Version):
    """One immutable version of what a server says of an item."""

    item = models.ForeignKey(Item, models.PROTECT, related_name="versions")

    class Meta:
        ordering = ["-version"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="registry_item_version_once", fields=["item", "version"]),
        ]
        indexes = [models.Index(name="registry_item_digest", fields=["item", "digest"])]
        triggers = append_only(OnlyColumns("scan"))

    def __str__(self) -> str:
        return f"{self.item} v{self.version}"

    @property
    def title(self) -> str:
        return str(self.content.get("title") or self.content.get("name") or "")


class Subscription(models.Model):
    """A client of an earlier revision wants to hear when a resource changes: a row, because the
    stream on which it hears may hang on another process."""

    # The digest of its session, which ends within a day.
    session = models.CharField(max_length=64)
    agent = models.ForeignKey("accounts.Agent", models.CASCADE, related_name="+")
    uri = models.TextField()
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="registry_subscribed_once", fields=["session", "uri"])
        ]

    def __str__(self) -> str:
        return self.uri
