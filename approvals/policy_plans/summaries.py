"""A plan in Markdown, for pull requests. In English, as all that programs read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from core.text import revealed
from policies.models import PolicyPlan

WORDS = {"allow": "allow", "ask": "require approval", "deny": "deny"}
ROWS = 20
LONGEST = 120


def markdown(plan: PolicyPlan, address: str = "") -> str:
    return "\n".join([*_head(plan, address), *_changes(plan.changes), *_result(plan.result)]) + "\n"


def _head(plan: PolicyPlan, address: str) -> Iterator[str]:
    yield f"## Policy plan `{plan.digest[:12]}`"
    yield ""
    if address:
        yield f"[Open and confirm it in Countersign]({address})"
        yield ""
    yield f"Digest: `{plan.digest}`"
    yield ""


def _changes(changes: list[Mapping[str, Any]]) -> Iterator[str]:
    yield f"### {len(changes)} change{'' if len(changes) == 1 else 's'}"
    yield ""
    yield "| section | name | change |"
    yield "| --- | --- | --- |"
    for one in changes:
        yield f"| {one['section']} | {cell(one['name'])} | {_change_text(one)} |"
    yield ""


def _change_text(one: Mapping[str, Any]) -> str:
    if one["kind"] == "moved":
        return f"place {one['before']['place']} → {one['after']['place']}"
    if one["kind"] != "changed":
        return str(one["kind"])
    before, after = one["before"], one["after"]
    parts = (
        f"{name}: {_value(before.get(name))} → {_value(after.get(name))}" for name in one["members"]
    )
    return cell("; ".join(parts))


def _value(value: Any) -> str:
    """The value in the form of a file; a long one is cut."""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _result(result: Mapping[str, Any]) -> Iterator[str]:
    yield "### What it would have done"
    yield ""
    if not result:
        yield "No calls were replayed: the file changes neither rules nor labels."
        yield "Limits, toolsets and servers are not replayed."
        return
    yield _scope(result)
    yield ""
    yield f"**{result['changed']:,} decisions would have been different.** {_minutes(result)}"
    yield ""
    yield from _table(result["effects"], "before", "after", "calls")
    yield from _table(result["by_rule"], "rule_before", "rule_after", "before", "after", "calls")
    yield from _table(result["by_agent"], "agent", "before", "after", "calls")
    yield from _table(result["by_tool"], "tool", "before", "after", "calls")
    yield from _table(result["asked"], "who", "calls")
    yield from _would_run(result)


def _scope(result: Mapping[str, Any]) -> str:
    said = f"{result['replayed']:,} of {result['calls']:,} calls of 30 days were judged again"
    if result["is_sample"] and result["bound_points"] is not None:
        said += f", drawn by chance: a share is within ±{result['bound_points']} points (95 %)"
    said += f"; {result['as_recorded']:,} of them are decided today as they were recorded."
    if result["approximate"]:
        said += f" {result['approximate']:,} by labels or tags that changed since."
    if result["unread"]:
        said += f" {result['unread']:,} could not be judged; shares have no bound."
    return f"{said} Limits are not replayed."


def _minutes(result: Mapping[str, Any]) -> str:
    minutes = result["minutes_a_week"]
    if minutes is None and result["timed_votes"]:
        return "Reviewers' time is unknown: too few calls could be judged."
    if minutes is None:
        return "Reviewers' time is unknown: no decision was timed yet."
    verb = "adds" if minutes >= 0 else "saves"
    return (
        f"It {verb} about {abs(minutes):,} reviewer minutes a week "
        f"(median {result['median_vote_s']:.0f} s of {result['timed_votes']:,} timed votes)."
    )


def _table(rows: list[Mapping[str, Any]], *names: str) -> Iterator[str]:
    if not rows:
        return
    yield f"| {' | '.join(name.replace('_', ' ') for name in names)} |"
    yield f"|{' --- |' * len(names)}"
    for row in rows[:ROWS]:
        values = (WORDS.get(str(row[name]), row[name]) for name in names)
        yield f"| {' | '.join(cell(value) for value in values)} |"
    if len(rows) > ROWS:
        yield ""
        yield f"… and {len(rows) - ROWS} more rows."
    yield ""


def _would_run(result: Mapping[str, Any]) -> Iterator[str]:
    total = result["would_run_total"]
    yield f"### {total:,} denied calls would have run"
    yield ""
    for one in result["would_run"]:
        yield (
            f"- `{one['call']}` {cell(one['agent'])}: {cell(one['tool'])}, {one['at'][:16]}, "
            f"denied by {one['denied_by']}"
        )
    if total > len(result["would_run"]):
        yield f"- … and {total - len(result['would_run']):,} more"


def cell(value: Any) -> str:
    """Text of others inside a table: no markup, nothing hidden."""
    text = revealed(str(value)).replace("\\", "\\\\")
    for mark in "|`*_[]<>#":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ") or "–"
