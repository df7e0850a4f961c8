"""Erasing what is past its retention period, in batches.

A batch is one transaction: its calls, their entries, the place up to which the tool's calls are
done, and before it commits one append to the ledger of erasures. Killed anywhere, the next run
begins where the last batch ended. Calls that cannot be erased yet are postponed, so that they keep
no others from being erased, and are looked at again in turns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from approvals import payload_erasure
from audit import holds
from audit.erasure_ledger import ERASED, RESULT_ERASED, LedgerUnusable
from audit.services import SYSTEM
from calls.content.retention import (
    DUE_CALLS,
    FIRST,
    EffectivePeriod,
    RetainedTool,
    RetentionRules,
    all_tools,
    cutoffs,
    due_values,
    lengths,
)
from calls.models import (
    Call,
    PostponedErasure,
    RetainedContent,
    RetentionProgress,
    RetentionScope,
)
from calls.record.states import LIVE, State
from core.english import gettext as _

log = logging.getLogger(__name__)

# Calls of one transaction, and of one run.
BATCH, MOST = 200, 5_000

# Tools that have calls which are due.
BUSY = f"SELECT t.tool FROM {DUE_CALLS}"
DUE = f"SELECT c.id FROM {DUE_CALLS} ORDER BY c.id"
# Of these calls those that have nothing left of it, and those that have to wait.
SORTED = """
    SELECT c.id,
        EXISTS (
            SELECT FROM audit_entryrow e JOIN audit_name a ON a.id = e.action
            WHERE e.call_id = c.id AND e.seq IS NULL AND a.kind = 'action'
              AND a.text = ANY(%(done)s)) AS is_done,
        c.state = ANY(%(unfinished)s) OR calls_hold_of(c.id) IS NOT NULL OR EXISTS (
            SELECT FROM approvals_grant g
            WHERE g.call_id = c.id AND g.revoked_at IS NULL
              AND g.expires_at > clock_timestamp() AND g.uses < g.max_uses) AS has_to_wait,
        EXISTS (SELECT FROM calls_result r WHERE r.call_id = c.id) AS has_result
    FROM calls_call c
    WHERE c.id BETWEEN %(first)s AND %(last)s AND c.id = ANY(%(ids)s) ORDER BY c.id
"""
# Whoever finds out how a call ended needs its arguments.
UNFINISHED = [*(state.value for state in LIVE), State.UNKNOWN.value]
DONE = {
    RetainedContent.PAYLOAD: [ERASED],
    RetainedContent.RESULT: [ERASED, RESULT_ERASED],
}
# English, as entries are. By what the period was set for.
REASONS = {
    RetentionScope.ALL: _("Retention period of %(days)s days for all calls."),
    RetentionScope.SERVER: _("Retention period of %(days)s days for server “%(target)s”."),
    RetentionScope.LABEL: _("Retention period of %(days)s days for label “%(target)s”."),
    RetentionScope.TAG: _("Retention period of %(days)s days for tag “%(target)s”."),
    RetentionScope.TOOL: _("Retention period of %(days)s days for tool “%(target)s”."),
}


def reason_of(period: EffectivePeriod) -> str:
    return REASONS[period.scope] % {"days": period.days, "target": period.target}


def erase_due(*, most: int = MOST) -> int:
    """Returns how many calls were looked at: when it is `most`, more may be due."""
    if any(hold.kind == holds.EVERYTHING for hold in holds.in_force()):
        return 0
    looked = 0
    for content in RetainedContent:
        rules = RetentionRules.load(content)
        if rules.has_end():
            looked += _erase_content(rules, most - looked)
    return looked


def begin_again(first: UUID) -> None:
    """Calls from `first` on came back, from an archive: they are looked at again."""
    before = UUID(int=first.int - 1)
    RetentionProgress.objects.filter(passed__gt=before).update(passed=before)


def _erase_content(rules: RetentionRules, most: int) -> int:
    tools = {tool.pk: tool for tool in all_tools()}
    looked = _each(lambda: _retry(rules, tools, most // 4 or 1))
    ends = cutoffs(lengths(rules, tools.values()))
    for (pk,) in _rows(BUSY, due_values(rules, ends) | {"each": 1}):
        looked += _erase_tool(rules, tools[pk], ends[pk], most - looked)
    return looked


def _erase_tool(rules: RetentionRules, tool: RetainedTool, cutoff: datetime, most: int) -> int:
    period = rules.period_of(tool)
    assert period
    looked = 0
    while looked < most:
        size = min(BATCH, most - looked)
        count = _each(lambda: _erase_batch(rules, tool, period, cutoff, size))  # noqa: B023
        looked += count
        if count < size:
            break
    return looked


def _each(batch: Callable[[], int]) -> int:
    """A batch that fails keeps no other from its turn; the next run repeats it."""
    try:
        return batch()
    except (DatabaseError, LedgerUnusable, OSError) as error:
        log.warning("retention: a batch was not erased: %s", error)
        return 0


@transaction.atomic
def _erase_batch(
    rules: RetentionRules,
    tool: RetainedTool,
    period: EffectivePeriod,
    cutoff: datetime,
    size: int,
) -> int:
    place = {"content": rules.content, "tool_id": tool.pk}
    RetentionProgress.objects.get_or_create(**place, defaults={"passed": FIRST})
    rows = RetentionProgress.objects.select_for_update(skip_locked=True)
    # Another worker has it.
    if (progress := rows.filter(**place).first()) is None:
        return 0
    values = due_values(rules, {tool.pk: cutoff}) | {"each": size}
    ids = [pk for (pk,) in _rows(DUE, values)]
    if ids:
        late = _erase(rules.content, ids, reason_of(period))
        PostponedErasure.objects.bulk_create(
            [PostponedErasure(content=rules.content, call_id=one) for one in late],
            ignore_conflicts=True,
        )
        progress.passed = ids[-1]
        progress.save()
    return len(ids)


def _erase(content: RetainedContent, ids: Sequence[UUID], reason: str) -> list[UUID]:
    """Erases what can be erased of these; returns those that have to wait."""
    ready, late = _sort(content, ids)
    calls = Call.objects.select_related("agent", "server").filter(pk__in=ready).order_by("pk")
    match content:
        case RetainedContent.PAYLOAD:
            payload_erasure.erase_all(list(calls), by=SYSTEM, reason=reason)
        case RetainedContent.RESULT:
            payload_erasure.erase_results(list(calls), by=SYSTEM, reason=reason)
    return late


def _sort(content: RetainedContent, ids: Sequence[UUID]) -> tuple[list[UUID], list[UUID]]:
    values: dict[str, Any] = {
        "ids": list(ids),
        "first": min(ids),
        "last": max(ids),
        "done": DONE[content],
        "unfinished": UNFINISHED,
    }
    rows = _rows(SORTED, values)
    late = [pk for pk, is_done, has_to_wait, _ in rows if has_to_wait and not is_done]
    needs_result = content == RetainedContent.RESULT
    ready = [
        pk
        for pk, is_done, has_to_wait, has_result in rows
        if not is_done and not has_to_wait and (has_result or not needs_result)
    ]
    return ready, late


@transaction.atomic
def _retry(rules: RetentionRules, tools: dict[int, RetainedTool], most: int) -> int:
    """Postponed calls, those first that were not looked at for the longest time."""
    rows = PostponedErasure.objects.select_for_update(skip_locked=True)
    turn = rows.filter(content=rules.content).order_by("tried_at", "pk")[: min(BATCH, most)]
    ids = [row.call_id for row in turn]
    if not ids:
        return 0
    late = [*_erase_postponed(rules, tools, ids)]
    waiting = PostponedErasure.objects.filter(content=rules.content, call_id__in=ids)
    waiting.exclude(call_id__in=late).delete()
    waiting.update(tried_at=timezone.now())
    return len(ids)


def _erase_postponed(
    rules: RetentionRules, tools: dict[int, RetainedTool], ids: Sequence[UUID]
) -> Iterable[UUID]:
    """Yields those that go on waiting: also where a longer period counts by now."""
    due: dict[str, list[UUID]] = {}
    for pk, tool_id, asked_at in Call.objects.filter(pk__in=ids).values_list(
        "pk", "tool_id", "asked_at"
    ):
        period = rules.period_of(tools.get(tool_id or 0, RetainedTool(0)))
        cutoff = period.cutoff() if period else None
        if period and cutoff and asked_at < cutoff:
            due.setdefault(reason_of(period), []).append(pk)
        else:
            yield pk
    for reason, some in due.items():
        yield from _erase(rules.content, some, reason)


def _rows(query: str, values: dict[str, Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall())
