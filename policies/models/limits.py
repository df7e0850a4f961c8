"""How much: rates, concurrency, bytes, budgets, and when to stop a loop."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Self

from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Agent
from core.triggers import configuration
from policies.models.rules import Effect, Rule

SMALLEST = Decimal("0.000001")
# Of what is counted one by one.
AMOUNT_MAX = Decimal(1_000_000_000_000)
MOST_MINUTES = 7 * 24 * 60


class LimitEffect(models.TextChoices):
    """The effect of a limit on a call that is too much; never allow."""

    # It runs, and its agent is told.
    WARN = "warn", _("Warn")
    ASK = Effect.ASK.value, Effect.ASK.label
    DENY = Effect.DENY.value, Effect.DENY.label


class LimitQuerySet(models.QuerySet["Limit"]):
    def in_use(self) -> Self:
        return self.exclude(mode=Rule.Mode.OFF)


class Limit(models.Model):
    """How much of something may be asked for, and what becomes of a call that is too much."""

    class Kind(models.TextChoices):
        CALLS = "calls", _("Calls")
        BYTES = "bytes", _("Bytes of arguments")
        CONCURRENCY = "concurrency", _("Calls at the same time")
        COST = "cost", _("Cost")
        # Loop breakers: so many in a row.
        REPEATS = "repeats", _("Identical calls in a row")
        FAILURES = "failures", _("Failures in a row")

    class Period(models.TextChoices):
        SECOND = "second", _("second")
        MINUTE = "minute", _("minute")
        HOUR = "hour", _("hour")
        DAY = "day", _("day")
        MONTH = "month", _("month")

    class Per(models.TextChoices):
        AGENT = "agent", _("agent")
        PERSON = "person", _("person (the agent's owner)")
        TOOLSET = "toolset", _("toolset")
        SERVER = "server", _("server")
        TOOL = "tool", _("tool")
        RISK = "risk", _("risk")

    RATES = (Kind.CALLS, Kind.BYTES)
    BREAKERS = (Kind.REPEATS, Kind.FAILURES)
    PERIODIC = (*RATES, Kind.COST)

    name = models.CharField(_("name"), max_length=100, unique=True)
    mode = models.CharField(
        _("mode"), max_length=7, choices=Rule.Mode.choices, default=Rule.Mode.ENFORCE
    )
    effect = models.CharField(_("effect"), max_length=5, choices=LimitEffect)
    kind = models.CharField(_("what is counted"), max_length=11, choices=Kind)
    amount = models.DecimalField(
        _("at most"),
        max_digits=20,
        decimal_places=6,
        validators=[MinValueValidator(SMALLEST), MaxValueValidator(AMOUNT_MAX)],
    )
    period = models.CharField(_("per"), max_length=6, choices=Period, blank=True, default="")
    # Of rates: so many at once after a pause; None: as many as `amount`.
    burst = models.PositiveBigIntegerField(
        _("at once"), null=True, blank=True, validators=[MinValueValidator(1)]
    )
    # Of costs: either the same for each call, or an argument that says it (names joined by dots).
    cost = models.DecimalField(
        _("cost of a call"),
        max_digits=20,
        decimal_places=6,
        null=True,
        blank=True,
        validators=[MinValueValidator(SMALLEST)],
    )
    cost_argument = models.CharField(
        _("argument with the cost"), max_length=200, blank=True, default=""
    )
    # Of costs: a member of the result that says what was spent, instead of what was reserved.
    cost_result = models.CharField(
        _("result field with the cost"), max_length=200, blank=True, default="", db_default=""
    )
    unit = models.CharField(_("unit"), max_length=20, blank=True, default="")
    # Of loop breakers: for so long its next calls are too much.
    minutes = models.PositiveIntegerField(
        _("for minutes"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_MINUTES)],
    )
    # Each has a count of its own; none chosen: all that the limit covers share one.
    per = ArrayField(
        models.CharField(max_length=7, choices=Per),
        verbose_name=_("counted for each"),
        blank=True,
        default=list,
    )

    # Which calls it covers: as of rules.
    server = models.CharField(_("server"), max_length=100, default="*")
    tool = models.CharField(_("tool"), max_length=200, default="*")
    hint = models.CharField(
        _("tool says"), max_length=12, choices=Rule.Hint, blank=True, default=""
    )
    agents = models.ManyToManyField(Agent, blank=True, related_name="+")
    owner_groups = models.ManyToManyField(Group, blank=True, related_name="+")
    # Shown to agents and approvers: written for people.
    reason = models.CharField(_("reason"), max_length=300, blank=True, default="")

    objects = LimitQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="policies_limit_never_allows",
                condition=models.Q(effect__in=["warn", "ask", "deny"]),
            ),
            models.CheckConstraint(name="policies_limit_amount", condition=models.Q(amount__gt=0)),
            models.CheckConstraint(
                name="policies_limit_period",
                condition=models.Q(kind__in=["calls", "bytes", "cost"], period__gt="")
                | models.Q(kind__in=["concurrency", "repeats", "failures"], period=""),
                violation_error_message=_("It is counted per second, minute, hour, day or month."),
            ),
        ]
        triggers = configuration()

    def __str__(self) -> str:
        return self.name

    @property
    def per_labels(self) -> list[str]:
        return [str(self.Per(one).label) for one in self.per]

    @property
    def most_at_once(self) -> int:
        """The burst of a rate, after a pause."""
        return self.burst or max(int(self.amount), 1)

    def clean(self) -> None:
        """Drops fields of other kinds, and requires those of this kind."""
        wrong: dict[str, Any] = {}
        self._clean_amount(wrong)
        self._clean_cost(wrong)
        if self.kind in self.BREAKERS:
            self.minutes = self.minutes or 10
        else:
            self.minutes = None
        self.per = [one for one in self.Per.values if one in self.per]
        if wrong:
            raise ValidationError(wrong)

    def _clean_amount(self, wrong: dict[str, Any]) -> None:
        if self.kind not in self.PERIODIC:
            self.period = ""
        elif not self.period:
            wrong["period"] = _("Choose a period.")
        if self.kind not in self.RATES:
            self.burst = None
        whole = self.kind != self.Kind.COST
        if whole and self.amount is not None and self.amount != int(self.amount):
            wrong["amount"] = _("Give a whole number.")

    def _clean_cost(self, wrong: dict[str, Any]) -> None:
        if self.kind != self.Kind.COST:
            self.cost, self.cost_argument, self.cost_result, self.unit = None, "", "", ""
            return
        if (self.cost is None) == (not self.cost_argument):
            wrong["cost"] = _("Give either the cost of a call, or the argument that says it.")
        for name in ("cost_argument", "cost_result"):
            if getattr(self, name) and not all(getattr(self, name).split(".")):
                wrong[name] = _("Give names joined by dots, for example: order.total")
        if not self.unit:
            wrong["unit"] = _("Give a unit, for example: EUR")


class LimitCounter(models.Model):
    """A counter of one limit: its usage by one agent, tool or whatever it counts for."""

    limit = models.ForeignKey(Limit, models.CASCADE, related_name="counters", db_constraint=False)
    # For whom or what: "agent:5 tool:7"; empty: for all.
    key = models.CharField(max_length=300)
    # The same in names, as of the last use.
    label = models.CharField(max_length=500)
    agent_id = models.BigIntegerField(null=True)
    person_id = models.BigIntegerField(null=True)
    # Of rates: the theoretical arrival time (GCRA). What lies ahead of now is used.
    tat = models.DateTimeField(null=True)
    # Of budgets: what was spent since `since`; of concurrency: how many run; of loop breakers:
    # how many in a row, of which arguments.
    spent = models.DecimalField(max_digits=26, decimal_places=6, default=Decimal(0), db_default=0)
    since = models.DateTimeField(null=True)
    last = models.CharField(max_length=100, default="", db_default="")
    # Of loop breakers: calls are too much until then.
    until = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="policies_counter_of", fields=["limit", "key"]),
        ]
        indexes = [
            models.Index(
                name="policies_counter_agent",
                fields=["agent_id"],
                condition=models.Q(agent_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.limit_id} {self.key}"


class LimitUse(models.Model):
    """A call's reservation, from the commit that opened it until its outcome is known."""

    counter = models.ForeignKey(
        LimitCounter, models.CASCADE, related_name="uses", db_constraint=False
    )
    call_id = models.UUIDField()
    amount = models.DecimalField(max_digits=26, decimal_places=6)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="policies_use_once", fields=["call_id", "counter"]),
        ]

    def __str__(self) -> str:
        return f"{self.amount} by {self.call_id}"
