"""Escalation policies: who is notified of pending calls, step by step."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from core.ids import uuid7
from core.messages.localizing import localized
from notifications.schedule_models import OnCallSchedule
from policies.models import Rule


class EscalationPolicy(models.Model):
    """The steps in which approvers are notified: of calls of one rule, or of all rules that ask a
    group. Without one all are notified at once."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Of calls that this rule decides to hold, before any policy of a group. It goes with the rule.
    rule = models.OneToOneField(Rule, models.CASCADE, null=True, related_name="+")
    # Without a rule: of rules that ask this group; none: of rules that ask whoever may decide.
    group = models.ForeignKey(Group, models.CASCADE, null=True, related_name="escalation_policies")
    changed_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        default_permissions = ("change",)
        ordering = ["rule__name", "group__name"]
        constraints = [
            models.UniqueConstraint(
                name="notifications_one_policy_a_group",
                fields=["group"],
                nulls_distinct=False,
                condition=Q(rule=None),
            ),
            models.CheckConstraint(
                name="notifications_policy_of_rule_or_group",
                condition=Q(rule=None) | Q(group=None),
            ),
        ]

    def __str__(self) -> str:
        return f"escalation policy of {self.words}"

    @property
    def words(self) -> str:
        """The calls that it is for."""
        if self.rule:
            return _("Rule: %(name)s") % {"name": self.rule.name}
        return localized(self.group.name) if self.group else _("Whoever may decide")


class EscalationStep(models.Model):
    """One step: people who are notified when a call has been pending for so long."""

    class Target(models.TextChoices):
        EVERYBODY = "everybody", gettext_lazy("The whole group")
        ROUND_ROBIN = "turn", gettext_lazy("Round robin")
        ON_CALL = "on_call", gettext_lazy("Whoever is on call")
        GROUP = "group", gettext_lazy("Another group")

    policy = models.ForeignKey(EscalationPolicy, models.CASCADE, related_name="steps")
    after_min = models.PositiveSmallIntegerField()
    target = models.CharField(max_length=9, choices=Target)
    # Of a round robin: how many people.
    people = models.PositiveSmallIntegerField(null=True)
    group = models.ForeignKey(Group, models.CASCADE, null=True, related_name="+")
    schedule = models.ForeignKey(OnCallSchedule, models.PROTECT, null=True, related_name="+")

    class Meta:
        default_permissions = ()
        ordering = ["after_min"]
        constraints = [
            models.UniqueConstraint(
                name="notifications_one_step_a_time", fields=["policy", "after_min"]
            ),
            models.CheckConstraint(
                name="notifications_target_of_step",
                condition=Q(target="everybody", people=None, group=None, schedule=None)
                | Q(target="turn", people__gte=1, group=None, schedule=None)
                | Q(target="on_call", people=None, group=None, schedule__isnull=False)
                | Q(target="group", people=None, group__isnull=False, schedule=None),
            ),
        ]

    def __str__(self) -> str:
        return f"after {self.after_min} min: {self.target}"

    @property
    def words(self) -> str:
        match self.target:
            case self.Target.ROUND_ROBIN:
                return in_turn(self.people or 1)
            case self.Target.GROUP if self.group:
                return _("Group: %(name)s") % {"name": self.group.name}
            case self.Target.ON_CALL if self.schedule:
                return _("On call: %(name)s") % {"name": self.schedule.name}
        return str(self.Target(self.target).label)


def in_turn(people: int) -> str:
    return ngettext("%(n)d person in turn", "%(n)d people in turn", people) % {"n": people}


class Escalation(models.Model):
    """A pending call of which further people are notified later; gone after the last step."""

    call_id = models.UUIDField()
    # The entry that asked.
    entry_id = models.BigIntegerField()
    # Whom the rule asks: "" or "group:NAME".
    source = models.CharField(max_length=160, blank=True)
    # Up to which minute its steps are done.
    done_min = models.PositiveSmallIntegerField()
    next_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="notifications_one_escalation", fields=["call_id", "source"]
            )
        ]
        indexes = [models.Index(name="notifications_escalates", fields=["next_at"])]

    def __str__(self) -> str:
        return f"escalation of {self.call_id}"
