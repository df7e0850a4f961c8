"""Terms of a standing approval by what its maker approved before: what varied stays within it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db.models import Exists, OuterRef
from django.utils import timezone

from accounts.models import User
from approvals.bounds import RANGE, SET, Path, at, leaves
from approvals.forms import FIRST, TermsForm, filled
from approvals.models import Approval, Vote
from calls.models import Call
from core import exact_json
from core.exact_json import Number

LOOKED_BACK = 50
OVER = timedelta(days=28)
# More values are no set that somebody reads.
VALUES_MAX = 20


def proposed(call: Call, by: User) -> TermsForm:
    """A form filled in with bounds that cover what `by` approved of this agent, tool and rule. An
    argument that varied in another way is as in the call."""
    document = exact_json.loads(call.to_send)
    past = _approved(call, document, by)
    data = dict(FIRST)
    for n, (path, value) in enumerate(leaves(document)):
        data |= _bound(n, value, [at(one, path) for one in past])
    return filled(call, data, [])


def _approved(call: Call, document: Any, by: User) -> list[Any]:
    """The arguments, as they were sent, of the calls with the same fields that `by` approved alone:
    a standing approval could be made from each of them (standing_approvals.why_not)."""
    yeses = Vote.objects.standing().filter(approve=True)
    others = yeses.filter(approval=OuterRef("approval")).exclude(person=by)
    votes = yeses.filter(
        ~Exists(others),
        person=by,
        approval__state=Approval.State.APPROVED,
        approval__break_glass=None,
        at__gt=timezone.now() - OVER,
        approval__call__agent=call.agent_id,
        approval__call__definition=call.definition_id,
        approval__call__rule_id=call.rule_id,
    )
    votes = votes.select_related("approval__call__amendment").order_by("-pk")[:LOOKED_BACK]
    found = [exact_json.loads(vote.approval.call.to_send) for vote in votes]
    paths = _paths(document)
    return [one for one in found if _paths(one) == paths]


def _paths(document: Any) -> list[Path]:
    return [path for path, _value in leaves(document)]


def _bound(n: int, value: Any, seen: Sequence[Any]) -> dict[str, str]:
    """Fields of the form; none where it never varied, or in no way that a bound can say."""
    given = [one for one in seen if type(one) is type(value)]
    if all(one == value for one in given) or isinstance(value, dict):
        return {}
    if isinstance(value, Number):
        return _range(n, given)
    items = [item for one in given for item in one] if isinstance(value, list) else given
    lines = list(dict.fromkeys(_line(item) for item in items))
    if len(lines) > VALUES_MAX or value == []:
        return {}
    return {f"is.{n}": SET, f"values.{n}": "\n".join(lines)}


def _range(n: int, given: Sequence[Number]) -> dict[str, str]:
    try:
        numbers = sorted(given, key=lambda one: Decimal(one.text))
    except InvalidOperation:
        # An exponent beyond all reckoning.
        return {}
    return {f"is.{n}": RANGE, f"least.{n}": numbers[0].text, f"most.{n}": numbers[-1].text}


def _line(item: Any) -> str:
    """One value as the form reads it back."""
    is_plain = isinstance(item, str) and item == item.strip() and item.isprintable()
    return item if is_plain and item and not item.startswith('"') else exact_json.dumps(item)
