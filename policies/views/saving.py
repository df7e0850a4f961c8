"""Saves what a form of a rule or limit says."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import ValidationError

from audit.services import Actor
from policies.forms.limits import LimitForm
from policies.forms.rules import RuleForm


def save_form(form: RuleForm | LimitForm, save: Callable[..., object], *, by: Actor) -> bool:
    """False where it could not be right; the form then says why."""
    given = form.cleaned_data
    try:
        save(
            form.save(commit=False),
            by=by,
            agents=list(given["agents"]),
            owner_groups=list(given["owner_groups"]),
        )
    except ValidationError as error:
        form.add_error(None, error)
        return False
    return True
