"""Changes of escalation policies, each with its entry, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from audit.services import Actor, record
from notifications.models import EscalationPolicy, EscalationStep
from policies.models import Rule


@transaction.atomic
def save(policy: EscalationPolicy, steps: Sequence[EscalationStep], *, by: User) -> None:
    """Stores the policy with these steps. Pending calls go on by them."""
    policy.changed_at = timezone.now()
    policy.save()
    policy.steps.all().delete()
    for step in steps:
        step.policy = policy
    EscalationStep.objects.bulk_create(steps)
    _record("escalation_policy.saved", policy, by.actor, steps)


@transaction.atomic
def remove(policy: EscalationPolicy, *, by: User) -> None:
    """Further steps of pending calls then notify everybody."""
    _remove(policy, by.actor)


def remove_of_rule(rule: Rule, by: Actor) -> None:
    """In the transaction that removes the rule."""
    for policy in EscalationPolicy.objects.filter(rule=rule):
        _remove(policy, by)


def _remove(policy: EscalationPolicy, by: Actor) -> None:
    _record("escalation_policy.removed", policy, by, list(policy.steps.all()))
    policy.delete()


def _record(
    action: str, policy: EscalationPolicy, by: Actor, steps: Sequence[EscalationStep]
) -> None:
    record(
        action,
        actor=by,
        group=policy.group.name if policy.group else "",
        **({"rule": policy.rule.name} if policy.rule else {}),
        steps=[_plain(step) for step in steps],
    )


def _plain(step: EscalationStep) -> dict[str, object]:
    plain: dict[str, object] = {"after_min": step.after_min, "notify": step.target}
    if step.people:
        plain["people"] = step.people
    if step.group:
        plain["group"] = step.group.name
    if step.schedule:
        plain["schedule"] = step.schedule.name
    return plain
