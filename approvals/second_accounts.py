"""Accounts that may still be one person's although they count as two: cards name them.

For COUNTERSIGN_INVITE_DAYS the database refuses the votes of an invited account where its inviter
has a part in the call (accounts/independence.py). Afterwards nobody need have confirmed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from accounts.independence import Inviters, holders, unconfirmed_inviters
from accounts.models import User
from approvals.eligibility import EligibilityFacts
from policies.thresholds import people


def second_accounts(facts: Mapping[UUID, EligibilityFacts]) -> dict[UUID, list[str]]:
    """Deciders, by call, who may be the same person as somebody with a part in it."""
    if not any(of_call.has_guests for of_call in facts.values()):
        return {}
    known = unconfirmed_inviters(however_old=True)
    deciding = User.objects.filter(pk__in=people("")).order_by("username")
    names = {person.pk: person.shown_name for person in deciding}
    return {call_id: _names(names, of_call, known) for call_id, of_call in facts.items()}


def _names(deciding: Mapping[int, str], of_call: EligibilityFacts, known: Inviters) -> list[str]:
    theirs = holders(of_call.parties, known)
    apart = of_call.parties | set(of_call.excluded)
    return [
        name
        for pk, name in deciding.items()
        if pk not in apart and not theirs.isdisjoint(holders([pk], known))
    ]
