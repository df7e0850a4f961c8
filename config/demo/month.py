"""Draws the demo's calls with their times and outcomes, the same every time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random

from config.demo.work import JOBS, Arguments, Job

DAYS = 30
DAY_S = 24 * 3600.0
# Shares of a day's calls by the hour.
HOURS: dict[str, list[int]] = {
    "always": [1] * 24,
    "office": [0] * 7 + [1, 5, 9, 10, 9, 6, 7, 10, 9, 7, 3, 1] + [0] * 5,
    "morning": [0] * 5 + [1, 4, 9, 12, 10, 7, 4, 2, 2, 1] + [0] * 9,
    "late": [0] * 9 + [1, 3, 4, 3, 6, 9, 10, 9, 7, 5, 4, 3, 2, 1, 0],
    "desk": [0] * 6 + [2, 5, 7, 8, 7, 6, 5, 6, 7, 8, 7, 5, 3, 1] + [0] * 4,
}
# From Monday; a watch knows no weekend, and a desk is open on Saturday.
WEEK: dict[str, list[float]] = {
    "always": [1] * 7,
    "desk": [1.1, 1, 1, 1, 1.25, 0.6, 0.15],
}
OFFICE_WEEK = [1, 1.1, 1.05, 1, 0.8, 0.06, 0.03]
# Of each tool the newest calls, if they need approval.
PENDING = {"mailer.send_mail": 6, "file-writer.write_file": 3, "file-writer.delete_file": 2}
# Days before the end, hour, hours: a server whose connections fail.
OUTAGES = {"weather": (9, 13, 4), "code-search": (17, 14, 3)}


class PlannedOutcome(StrEnum):
    SUCCEEDED = "succeeded"
    TOOL_ERROR = "tool_error"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    UNKNOWN = "unknown"


class PlannedDecision(StrEnum):
    """The end of a call that needs approval."""

    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    PENDING = "held"


@dataclass
class PlannedCall:
    job: Job
    at: datetime
    arguments: Arguments
    fate: PlannedOutcome
    # Of one that needs approval, and how long it takes until then.
    verdict: PlannedDecision
    decided_s: float
    ran_s: float
    text: str = field(default="", repr=False)


def draw(now: datetime, days: int = DAYS, seed: int = 17) -> list[PlannedCall]:
    """All calls up to `now`, in the order of asking."""
    dice = Random(seed)  # noqa: S311 no secret
    # Whole days: what is before them is empty, and no chart compares with it.
    start = (now - timedelta(days=days - 1)).replace(hour=0, minute=0, second=0, microsecond=0)
    found = [
        _plan(dice, job, at, now)
        for job in JOBS
        for at in _moments(dice, job, start, now)
        if start < at < now
    ]
    for tool, count in PENDING.items():
        newest = [one for one in sorted(found, key=_asked_at) if one.job.tool == tool][-count:]
        for call in newest:
            # Whatever the hour, the queue has something to decide.
            call.verdict, call.decided_s = PlannedDecision.PENDING, 0.0
            call.at = now - timedelta(minutes=dice.uniform(2, 170))
    return sorted(found, key=_asked_at)


def _asked_at(call: PlannedCall) -> datetime:
    return call.at


def _moments(dice: Random, job: Job, start: datetime, now: datetime) -> Iterator[datetime]:
    shares = HOURS[job.hours]
    week = WEEK.get(job.hours, OFFICE_WEEK)
    hour = start.replace(minute=0, second=0, microsecond=0)
    while hour < now:
        # A little more each week: a team gets used to its agents.
        growth = 0.75 + 0.35 * (hour - start) / (now - start)
        mean = job.per_day * shares[hour.hour] / sum(shares) * week[hour.weekday()] * growth
        for _ in range(_poisson(dice, mean)):
            yield hour + timedelta(seconds=dice.uniform(0, 3600))
        hour += timedelta(hours=1)


def _poisson(dice: Random, mean: float) -> int:
    count, left = 0, dice.random()
    limit = math.exp(-mean)
    while left > limit:
        count += 1
        left *= dice.random()
    return count


def _plan(dice: Random, job: Job, at: datetime, now: datetime) -> PlannedCall:
    arguments = job.make(dice)
    fate = _fate(dice, job, at, now)
    slow = 30.0 if fate == PlannedOutcome.TIMED_OUT else 1.0
    verdict, decided_s = _verdict(dice, at, now)
    return PlannedCall(
        job,
        at,
        arguments,
        fate,
        verdict,
        decided_s,
        ran_s=max(0.004, job.seconds * slow * dice.lognormvariate(0, 0.55)),
        text=job.answer(dice, arguments),
    )


def _fate(dice: Random, job: Job, at: datetime, now: datetime) -> PlannedOutcome:
    server = job.tool.partition(".")[0]
    if server in OUTAGES:
        days, hour, hours = OUTAGES[server]
        began = (now - timedelta(days=days)).replace(hour=hour, minute=0)
        if began < at < began + timedelta(hours=hours):
            return PlannedOutcome.FAILED if dice.random() < 0.7 else PlannedOutcome.TIMED_OUT
    drawn = dice.random()
    for fate, most in (
        (PlannedOutcome.TOOL_ERROR, 0.021),
        (PlannedOutcome.FAILED, 0.027),
        (PlannedOutcome.TIMED_OUT, 0.031),
        (PlannedOutcome.UNKNOWN, 0.0313),
    ):
        if drawn < most:
            return fate
    return PlannedOutcome.SUCCEEDED


def _verdict(dice: Random, at: datetime, now: datetime) -> tuple[PlannedDecision, float]:
    """People answer within minutes by day; what is asked in the evening may expire."""
    decided_s = min(60 * dice.lognormvariate(1.6, 0.9), (now - at).total_seconds() / 2)
    drawn = dice.random()
    is_forgotten = drawn < (0.25 if at.hour >= 18 else 0.04)
    if is_forgotten and at + timedelta(seconds=DAY_S) < now:
        return PlannedDecision.EXPIRED, DAY_S
    if drawn > 0.98:
        return PlannedDecision.WITHDRAWN, decided_s
    return (PlannedDecision.DENIED if drawn > 0.88 else PlannedDecision.APPROVED), decided_s
