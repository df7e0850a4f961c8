"""Rules and limits: which calls run, need approval, or are denied; and how many."""

from policies.models.limits import Limit, LimitCounter, LimitEffect, LimitQuerySet, LimitUse
from policies.models.plans import PlanConfirmation, PolicyPlan
from policies.models.rules import Effect, Rule, RuleQuerySet
from policies.models.unusual import UnusualUse

__all__ = [
    "Effect",
    "Limit",
    "LimitCounter",
    "LimitEffect",
    "LimitQuerySet",
    "LimitUse",
    "PlanConfirmation",
    "PolicyPlan",
    "Rule",
    "RuleQuerySet",
    "UnusualUse",
]
