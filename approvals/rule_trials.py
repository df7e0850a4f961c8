"""A rule tried on recorded calls as if it were in force: what it would decide, and what people did
with those calls. Nothing is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from approvals.policy_plans import planning
from audit.services import SYSTEM
from calls.replay import recorded_calls
from calls.replay.recorded_calls import SubjectReader
from calls.replay.replaying import CallReplay
from policies import decide, services
from policies.decide import RuleBook
from policies.forms.rules import RuleForm
from policies.models import Effect, Rule
from policies.views.saving import save_form
from registry.managed import PolicyApplier

DAYS = 7
# Where there are more, about so many are drawn: a page waits for it.
CALLS = 5_000


@dataclass(frozen=True, slots=True)
class RuleTrial:
    """`matched`: calls that the rule is about, whatever others decide. `denied`: of those, the ones
    that people denied. `result`: as a plan has it."""

    name: str
    effect: Effect
    matched: int
    denied: int
    result: dict[str, Any]


def try_form(form: RuleForm) -> RuleTrial:
    """The rule as a valid form has it. Raises ValidationError and PlanningBusy."""

    def save() -> Rule:
        if not save_form(form, services.save_rule, by=PolicyApplier.of(SYSTEM)):
            raise ValidationError([str(one) for one in form.non_field_errors()])
        saved: Rule = form.instance
        return saved

    return _try(save)


def try_rule(rule: Rule) -> RuleTrial:
    """A rule that is there, whatever its mode. Raises PlanningBusy."""
    return _try(lambda: rule)


def _try(save: Callable[[], Rule]) -> RuleTrial:
    with transaction.atomic():
        planning.one_at_a_time()
        rule, book = _in_force(save)
        taken = recorded_calls.sample(days=DAYS, most=CALLS, until=timezone.now())
        alone = RuleBook(tuple(one for one in book.rules if one.id == rule.pk), book.backward)
        reader = SubjectReader(taken.since)
        replayed = CallReplay(decide.load(), book, reader, alone=alone).run(taken)
    return RuleTrial(
        name=rule.name,
        effect=Effect(rule.effect),
        matched=replayed.matched,
        denied=replayed.people_denied,
        result={**replayed.plain(), **planning.minutes(replayed)},
    )


def _in_force(save: Callable[[], Rule]) -> tuple[Rule, RuleBook]:
    """Saves it, reads what decides, and takes everything back."""
    with transaction.atomic():
        rule = save()
        Rule.objects.filter(pk=rule.pk).update(mode=Rule.Mode.ENFORCE)
        book = decide.load()
        transaction.set_rollback(True)
    return rule, book
