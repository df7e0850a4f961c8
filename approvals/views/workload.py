"""The workload of approvers by week: their group's figures, and their own; everybody's for those
who may see users."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from accounts.http import ConsoleRequest
from approvals import workload
from approvals.workload import RuleProposal
from core.http import page
from policies.thresholds import DECIDE

# Weeks that can be looked at.
WEEKS = 12


@page("")
def show(request: ConsoleRequest) -> HttpResponse:
    sees_all = workload.sees_all(request.user)
    if not sees_all and not request.user.has_perm(DECIDE):
        raise PermissionDenied
    # As in the mail, whose link leads here.
    with timezone.override(request.user.time_zone):
        return _show(request, sees_all)


def _show(request: ConsoleRequest, sees_all: bool) -> HttpResponse:
    since, ago = _week(request.GET.get("week", ""))
    found = workload.read_for(request.user, since)
    context = {
        "section": "workload",
        "found": found,
        "since": since,
        "until": since + workload.WEEK - timedelta(days=1),
        "earlier": ago + 1 if ago < WEEKS else None,
        "later": ago - 1 if ago > 0 else None,
        "proposals": _proposals(request, found.proposals, since + workload.WEEK),
        "sees_all": sees_all,
    }
    return render(request, "approvals/workload.html", context)


def _week(text: str) -> tuple[datetime, int]:
    """The Monday on which the week begins in the reader's time zone, and how many weeks ago.
    `text`: so many weeks, or a day of the week, as mails have it."""
    today = timezone.localdate()
    this_monday = today - timedelta(days=today.weekday())
    ago = max(0, min(_weeks_ago(text, this_monday), WEEKS))
    monday = this_monday - timedelta(weeks=ago)
    return timezone.make_aware(datetime.combine(monday, time.min)), ago


def _weeks_ago(text: str, this_monday: date) -> int:
    if text.isdecimal() and len(text) < 4:
        return int(text)
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return 0
    return -((day - this_monday).days // 7)


class ShownProposal(NamedTuple):
    """A proposal with the pages that are filled in with it."""

    proposal: RuleProposal
    rule_editor: str
    # Empty where the reader has no call of it that they approved alone.
    standing_approval: str


def _proposals(
    request: ConsoleRequest, proposals: list[RuleProposal], until: datetime
) -> list[ShownProposal]:
    decides = request.user.has_perm(DECIDE)
    calls = workload.approved_alone(proposals, request.user, until) if decides else {}
    return [
        ShownProposal(one, _address(one), _standing_approval(calls.get((one.rule.pk, one.tool))))
        for one in proposals
    ]


def _standing_approval(call: UUID | None) -> str:
    return f"{reverse('approvals:new_grant', args=[call])}?bounds=past" if call else ""


def _address(proposal: RuleProposal) -> str:
    return f"{reverse('policies:add_rule')}?{urlencode(proposal.query)}"
