"""Changes past the file in use since it was applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from django.core.exceptions import ValidationError

from core.errors import CountersignError
from policies.as_code.differences import PolicyChange, changes
from policies.as_code.documents import read_file
from policies.as_code.sections import mistakes_of
from policies.models import PolicyPlan
from registry.models import ManagedPart


class PolicyDrift(NamedTuple):
    """`plan`: the last that was applied, of the file in use. `changes`: what applying it once more
    would do. `error`: why that cannot be said."""

    plan: PolicyPlan
    changes: Sequence[PolicyChange] = ()
    error: str = ""


def read() -> PolicyDrift | None:
    """None where no file manages anything."""
    if not ManagedPart.objects.exists():
        return None
    plan = PolicyPlan.objects.exclude(applied_at=None).order_by("-applied_at").first()
    if plan is None:
        return None
    try:
        file = read_file(plan.proposal)
    except (CountersignError, ValidationError) as error:
        return PolicyDrift(plan, error=" ".join(said for _path, said in mistakes_of(error)))
    return PolicyDrift(plan, changes(file.present, file.wanted))
