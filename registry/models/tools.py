"""The tools that there are, and every version of what their servers said of them."""

from __future__ import annotations

from functools import partial
from typing import Self

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from core.triggers import OnlyColumns, Refuse, append_only, configuration
from inspection.results import ResultRules
from registry.labels import Label, LabelChoice
from registry.models.servers import Server
from registry.models.versioned import Version
from registry.schemas import definitions

NAME = RegexValidator(r"^[A-Za-z0-9_.-]{1,64}\Z", _("Use 1 to 64 of: letters, digits, _ . -"))
# And of a server's name before that.
EXPOSED = RegexValidator(r"^[A-Za-z0-9_./-]{1,200}\Z", _("Use letters, digits, _ . - and /"))


# In the order of inspection.results.ResultRules.
RESULT_FIELDS = tuple(f"result_{name}" for name in ResultRules._fields)


def all_labels() -> list[str]:
    return [label.value for label in Label]


# The field of an operator's word on one label.
_LabelField = partial(
    models.CharField,
    max_length=3,
    choices=LabelChoice,
    default=LabelChoice.HINTED,
    db_default="",
    blank=True,
)


class Tag(models.Model):
    """A word of ours that tools are found by."""

    name = models.SlugField(_("name"), max_length=32, unique=True)

    class Meta:
        ordering = ["name"]
        triggers = configuration("name")

    def __str__(self) -> str:
        return self.name


# Methods beside tools/call (registry/methods.py) have a slash in their names, and no tool has one.
# Where tools are counted, methods are not among them.
IS_METHOD = models.Q(name__contains="/")
# The same, asked of a server about each of its tools.
HAS_METHOD = models.Q(tools__name__contains="/")


class ToolQuerySet(models.QuerySet["Tool"]):
    def for_catalogue(self) -> Self:
        return self.select_related("server", "published", "latest")

    def without_methods(self) -> Self:
        return self.exclude(IS_METHOD)

    def waiting(self) -> Self:
        return self.filter(state__in=[Tool.State.NEW, Tool.State.CHANGED])

    def for_list(self) -> Self:
        """Definitions are read when the page's tools are known: joined, all of them may be."""
        return self.prefetch_related("latest")

    def for_change(self) -> Self:
        """Locks the rows: nobody publishes them until this transaction ends."""
        bodies = ("published__body", "latest__body", "published__scan", "latest__scan")
        return self.for_catalogue().defer(*bodies).select_for_update(of=("self",))


class Tool(models.Model):
    """A tool of a server, offered to agents once a definition is published."""

    class State(models.TextChoices):
        NEW = "new", _("Unpublished")
        PUBLISHED = "published", _("Published")
        CHANGED = "changed", _("Changed, needs review")
        RETIRED = "retired", _("Removed upstream")

    class Mode(models.TextChoices):
        AUTO = "auto", _("Automatic")
        INLINE = "inline", _("Short: answered at once")
        BACKGROUND = "background", _("Long: run by a worker")

    class Repeats(models.TextChoices):
        AUTO = "auto", _("Block until resolved")
        GUARD = "guard", _("Block")
        ALLOW = "allow", _("Allow")

    class SchemaCheck(models.TextChoices):
        OFF = "", pgettext_lazy("a setting", "Off")
        NOTE = "note", _("Note in the record")
        BLOCK = "block", _("Block")

    class HiddenText(models.TextChoices):
        KEEP = "", _("Pass on")
        REMOVE = "remove", _("Remove")
        SHOW = "show", _("Write out as ⟦U+XXXX⟧")

    class Marking(models.TextChoices):
        OFF = "", pgettext_lazy("a setting", "Off")
        FOUND = "found", _("What reads like instructions")
        ALL = "all", _("All texts")

    class Risk(models.TextChoices):
        DESTROYS = "destroys", _("Destructive")
        UNSAID = "unsaid", _("Not declared")
        CHANGES = "changes", _("Adds or changes")
        READS = "reads", _("Read-only")

    server = models.ForeignKey(Server, models.PROTECT, related_name="tools")
    # As its server calls it, and as people and rules do. What agents see is made of it
    # (registry/publishing/agent_names.py).
    name = models.CharField(max_length=200)
    exposed_name = models.CharField(max_length=200, unique=True, validators=[EXPOSED])
    state = models.CharField(max_length=9, choices=State, default=State.NEW)
    published = models.ForeignKey(
        "Definition", models.PROTECT, null=True, blank=True, related_name="+"
    )
    latest = models.ForeignKey(
        "Definition", models.PROTECT, null=True, blank=True, related_name="+"
    )
    mode = models.CharField(max_length=10, choices=Mode, default=Mode.AUTO)
    # For the automatic mode, measured now and then from its last calls: how long all but the
    # slowest twentieth of them took, how many they were, and whether that makes it a long one.
    p95_ms = models.PositiveIntegerField(null=True, editable=False)
    measured = models.PositiveIntegerField(default=0, editable=False)
    is_long = models.BooleanField(default=False, editable=False)
    # An operator's word, never the server's: repeating a call does no harm.
    safe_to_repeat = models.BooleanField(_("retry-safe"), default=False)
    # An operator's word too, where its server says that it is read-only: it changes nothing.
    confirmed_read_only = models.BooleanField(
        _("read-only, confirmed"), default=False, db_default=False
    )
    # And theirs: nobody has to find out whether a cancelled call was executed after all.
    cancel_is_final = models.BooleanField(
        _("cancelled calls need nobody"), default=False, db_default=False
    )
    # The same call of the same agent once more, where the tool is not safe to repeat.
    repeats = models.CharField(
        _("duplicates"),
        max_length=5,
        choices=Repeats,
        default=Repeats.AUTO,
        db_default=Repeats.AUTO,
    )
    timeout_s = models.PositiveIntegerField(_("time limit in seconds"), default=120)
    # What is done to its results before agents get them (inspection/results.py). Off: they pass
    # byte for byte.
    result_schema = models.CharField(
        _("results that do not fit the output schema"),
        max_length=5,
        choices=SchemaCheck,
        default=SchemaCheck.OFF,
        db_default="",
        blank=True,
    )
    result_hidden = models.CharField(
        _("hidden characters in results"),
        max_length=6,
        choices=HiddenText,
        default=HiddenText.KEEP,
        db_default="",
        blank=True,
    )
    result_secrets = models.BooleanField(_("mask secrets"), default=False, db_default=False)
    result_personal = models.BooleanField(_("mask personal data"), default=False, db_default=False)
    result_tracebacks = models.BooleanField(
        _("leave out tracebacks"), default=False, db_default=False
    )
    result_max_bytes = models.PositiveIntegerField(
        _("most bytes of a result"), null=True, blank=True
    )
    result_links = models.BooleanField(
        _("deactivate links and images"), default=False, db_default=False
    )
    result_hosts = models.CharField(
        _("except those of these hosts"), max_length=1000, blank=True, default="", db_default=""
    )
    result_marking = models.CharField(
        _("mark as data for the model"),
        max_length=5,
        choices=Marking,
        default=Marking.OFF,
        db_default="",
        blank=True,
    )
    result_patterns = models.TextField(
        _("mask by patterns of your own"), blank=True, default="", db_default=""
    )
    # What counts for information flow (registry/labels.py), and where an operator says otherwise
    # than its definitions' hints. Of a tool that nobody saw yet, the worst.
    labels = ArrayField(
        models.CharField(max_length=9), default=all_labels, db_default=[*Label], editable=False
    )
    label_untrusted = _LabelField(_("untrusted source"))
    label_sensitive = _LabelField(_("sensitive source"))
    label_sink = _LabelField(_("sends outside"))
    icon = models.ForeignKey("Icon", models.SET_NULL, null=True, editable=False, related_name="+")
    tags = models.ManyToManyField(Tag, blank=True, related_name="tools")
    # What its latest definition claims, and the day of its last answered call, measured now and
    # then: for the catalogue's filters.
    hints = ArrayField(models.CharField(max_length=40), default=list, editable=False)
    risk = models.CharField(max_length=8, choices=Risk, default=Risk.UNSAID, editable=False)
    used_on = models.DateField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ToolQuerySet.as_manager()

    class Meta:
        ordering = ["exposed_name"]
        constraints = [
            models.UniqueConstraint(name="registry_tool_once_a_server", fields=["server", "name"]),
            models.UniqueConstraint(Lower("exposed_name"), name="registry_exposed_in_any_case"),
            # What is offered is what the server said last, and nothing held is ever offered.
            models.CheckConstraint(
                name="registry_published_is_latest",
                condition=~models.Q(state="published")
                | models.Q(published__isnull=False, published=models.F("latest")),
            ),
        ]
        indexes = [
            models.Index(name="registry_tool_state", fields=["state", "exposed_name"]),
            models.Index(name="registry_tool_used", fields=["used_on"]),
            GinIndex(name="registry_tool_hints", fields=["hints"]),
            models.Index(name="registry_tool_risk", fields=["risk", "exposed_name"]),
            models.Index(name="registry_tool_of_server", fields=["server", "exposed_name"]),
        ]
        triggers = [
            *configuration(
                "server_id",
                "name",
                "exposed_name",
                "state",
                "published_id",
                "mode",
                "is_long",
                "safe_to_repeat",
                "confirmed_read_only",
                "cancel_is_final",
                "repeats",
                "timeout_s",
                *RESULT_FIELDS,
                "labels",
            ),
            # Retired, never removed: old calls and entries speak of it.
            Refuse(name="no_delete", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return self.exposed_name

    @property
    def is_method(self) -> bool:
        """Whether it is a method beside tools/call, whose texts are ours (registry/methods.py)."""
        return "/" in self.name

    @property
    def result_rules(self) -> ResultRules:
        return ResultRules(*(getattr(self, name) for name in RESULT_FIELDS))

    @property
    def label_choices(self) -> dict[Label, str]:
        return {label: getattr(self, f"label_{label}") for label in Label}

    @property
    def shown_labels(self) -> list[str]:
        return [str(Label(label).label) for label in self.labels]

    @property
    def p95_s(self) -> float | None:
        return None if self.p95_ms is None else self.p95_ms / 1000


class Listing(models.Model):
    """The words that the catalogue finds a tool by, of its latest definition
    (registry/versions/search_index.py).

    Apart from the tool, which many pages read and few search.
    """

    tool = models.OneToOneField(Tool, models.CASCADE, primary_key=True, related_name="listing")
    # Names, title and arguments, which people mistype; the description is in the lexemes alone.
    words = models.TextField()
    lexemes = SearchVectorField()
    # Of texts without spaces between words: each character, and each with the next one.
    # PostgreSQL's parser and trigrams see none of them where the database has the C locale.
    bigrams = ArrayField(models.CharField(max_length=2), default=list)

    class Meta:
        default_permissions = ()
        indexes = [
            # Written when a definition is first seen, read at each key: no list of what is still to
            # be put in, which every search would walk through.
            GinIndex(name="registry_listing_lexemes", fields=["lexemes"], fastupdate=False),
            GinIndex(
                name="registry_listing_words",
                fields=["words"],
                opclasses=["gin_trgm_ops"],
                fastupdate=False,
            ),
            GinIndex(name="registry_listing_bigrams", fields=["bigrams"], fastupdate=False),
        ]

    def __str__(self) -> str:
        return self.words[:80]


class Definition(Version):
    """One immutable version of what a server says a tool is."""

    tool = models.ForeignKey(Tool, models.PROTECT, related_name="definitions")

    class Meta:
        ordering = ["-version"]
        get_latest_by = "version"
        constraints = [
            models.UniqueConstraint(name="registry_version_once", fields=["tool", "version"]),
        ]
        indexes = [models.Index(name="registry_definition_digest", fields=["tool", "digest"])]
        triggers = append_only(OnlyColumns("scan"))

    def __str__(self) -> str:
        return f"{self.tool} v{self.version}"

    @property
    def title(self) -> str:
        content = self.content
        annotations = content.get("annotations")
        hinted = annotations.get("title") if isinstance(annotations, dict) else None
        return str(content.get("title") or hinted or content.get("name") or "")

    @property
    def hints(self) -> dict[str, bool]:
        """The server's claims about the tool: readOnlyHint, destructiveHint and their like."""
        return definitions.hints(self.content)

    @property
    def problems(self) -> list[str]:
        """Why it cannot be published, in sentences."""
        return definitions.problems(self.content)

    @property
    def notes(self) -> list[str]:
        """Notes for the person who publishes it."""
        return definitions.notes(self.content)


class Publication(models.Model):
    """A record of who published which definition, and when."""

    definition = models.ForeignKey(Definition, models.PROTECT, related_name="publications")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-at"]
