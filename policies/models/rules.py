"""Rules: which calls run, need approval, or are denied."""

from __future__ import annotations

from typing import Self

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Agent
from core.triggers import configuration
from inspection.results import PASS_ALL, rules_of, stored_rules
from inspection.words import result_sentences
from policies import thresholds
from policies.checking import check, schema_of
from policies.conditions import BadCondition, compiled
from policies.thresholds import BadThresholds
from registry.result_rules import check_result_rules
from registry.services import RegistrationRefused

LONGEST = [MinValueValidator(1), MaxValueValidator(30 * 24 * 3600)]


class Effect(models.TextChoices):
    ALLOW = "allow", _("Allow")
    ASK = "ask", _("Require approval")
    DENY = "deny", _("Deny")


class RuleQuerySet(models.QuerySet["Rule"]):
    def speaking(self) -> Self:
        return self.exclude(mode=Rule.Mode.OFF)

    def in_order(self) -> Self:
        return self.order_by("position", "id")


class Rule(models.Model):
    """One line of policy. Deny beats ask beats allow; what no rule covers asks."""

    class Mode(models.TextChoices):
        ENFORCE = "enforce", _("On")
        # Changes nothing, and entries say what it would have done.
        SHADOW = "shadow", _("Monitor only")
        OFF = "off", _("Off")

    class Hint(models.TextChoices):
        ANY = "", _("whatever it says")
        DESTRUCTIVE = "destructive", _("destructive (or not declared)")
        WRITES = "writes", _("not read-only (or not declared)")
        OPEN_WORLD = "open_world", _("open-world (or not declared)")

    position = models.PositiveIntegerField(default=100)
    name = models.CharField(_("name"), max_length=100, unique=True)
    mode = models.CharField(_("mode"), max_length=7, choices=Mode, default=Mode.ENFORCE)
    effect = models.CharField(_("effect"), max_length=5, choices=Effect)
    # Shell patterns: * ? [abc]
    server = models.CharField(_("server"), max_length=100, default="*")
    tool = models.CharField(_("tool"), max_length=200, default="*")
    hint = models.CharField(_("tool says"), max_length=12, choices=Hint, blank=True, default="")
    # Nobody named means everybody.
    agents = models.ManyToManyField(Agent, blank=True, related_name="+")
    owner_groups = models.ManyToManyField(Group, blank=True, related_name="+")
    # CEL; see docs/en/guides/write-rules.md. Empty means always.
    when = models.TextField(_("condition"), blank=True)
    # Shown to agents and approvers: written for people.
    reason = models.CharField(_("reason"), max_length=300, blank=True)
    # For agents that it refuses, so that they need not guess.
    instead = models.CharField(
        _("allowed instead"), max_length=300, blank=True, default="", db_default=""
    )
    unnamed = models.BooleanField(_("agents do not see its name"), default=False, db_default=False)
    # Where it asks: see policies/thresholds.py. Empty means one person's yes or no.
    thresholds = models.JSONField(_("who decides"), default=list, blank=True)
    # Seconds. Empty means as the installation is set; what is over never means yes.
    decide_within = models.PositiveIntegerField(
        _("decide within"), null=True, blank=True, validators=LONGEST
    )
    start_within = models.PositiveIntegerField(
        _("start within"), null=True, blank=True, validators=LONGEST
    )

    # Standing approvals are then only for those who confirmed theirs with a passkey or a code.
    confirm_grants = models.BooleanField(
        _("standing approvals need a passkey or code"), default=False, db_default=False
    )

    # Mails and chats then have them too, with secrets masked (notifications/shown_arguments.py).
    shows_arguments = models.BooleanField(
        _("messages show the arguments"), default=False, db_default=False
    )

    # For results of the calls that it covers: those of inspection/results.py that are not as by
    # default. The strictest of all rules, the tool and its server apply.
    results = models.JSONField(_("results"), default=dict, db_default={}, blank=True)

    objects = RuleQuerySet.as_manager()

    class Meta:
        ordering = ["position", "id"]
        constraints = [
            # What a server says of itself may add a check, never remove one.
            models.CheckConstraint(
                name="policies_hints_only_tighten",
                condition=models.Q(hint="") | ~models.Q(effect="allow"),
                violation_error_message=_("A rule that allows cannot rest on a server's hints."),
            )
        ]
        triggers = configuration()

    def __str__(self) -> str:
        return self.name

    @property
    def who_decides(self) -> str:
        return thresholds.describe(thresholds.parse(self.thresholds))

    @property
    def result_sentences(self) -> list[str]:
        return result_sentences(rules_of(self.results))

    def clean(self) -> None:
        self._clean_condition()
        self._clean_results()
        try:
            parsed = thresholds.parse(self.thresholds)
        except BadThresholds as error:
            raise ValidationError({"thresholds": str(error)}) from error
        if why := thresholds.unmeetable(parsed):
            raise ValidationError({"thresholds": why})

    def _clean_results(self) -> None:
        # Of a denied call there are none.
        rules = PASS_ALL if self.effect == Effect.DENY else rules_of(self.results)
        self.results = stored_rules(rules)
        try:
            check_result_rules(rules)
        except RegistrationRefused as error:
            raise ValidationError({"results": str(error)}) from error

    def _clean_condition(self) -> None:
        if not self.when:
            return
        try:
            compiled(self.when, hints=self.effect != Effect.ALLOW)
            schema = schema_of(self.server, self.tool)
            if schema is not None:
                check(self.when, schema)
        except BadCondition as error:
            raise ValidationError({"when": str(error)}) from error
