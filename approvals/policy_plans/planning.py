"""Makes plans: what a policy file changes, and what that would have done to recorded calls."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.core.exceptions import ValidationError
from django.db import connection, transaction
from django.utils import timezone

from accounts.actors import By, ServiceCaller, account_of, acting
from accounts.models import User
from approvals.policy_plans.reviewer_time import reviewer_time
from audit.services import SYSTEM, record
from calls.replay import recorded_calls
from calls.replay.recorded_calls import SubjectReader
from calls.replay.replaying import CallReplay, ReplayResult
from core.english import gettext as _
from core.errors import CountersignError
from policies import decide
from policies.as_code import writing
from policies.as_code.differences import PolicyChange, all_changes, base_digest, digest_of
from policies.as_code.documents import PolicyFile, read_file
from policies.as_code.sections import mistakes_of
from policies.as_code.yaml_reader import BadPolicyFile
from policies.decide import RuleBook
from policies.models import PolicyPlan
from registry.models import Tool

# What an export shows.
EXPORT = (
    "policies.view_rule",
    "policies.view_limit",
    "registry.view_server",
    "registry.view_tool",
    "registry.view_toolset",
    "accounts.view_agent",
    "notifications.view_oncallschedule",
)
# A plan has that before and after, and names calls.
VIEW = ("policies.view_policyplan", "calls.view_call", *EXPORT)
DAYS = 30
# Where there are more, about so many are drawn.
CALLS, CALLS_MAX = 20_000, 100_000
# Who proposes a plan does not choose that it shows next to nothing.
CALLS_MIN = 1_000
ORIGIN_MAX = 500
# Sections that decisions depend on.
DECIDING = ("rules", "tools")
DAY_S, WEEK_S = 24 * 3600, 7 * 24 * 3600


class PlanningBusy(CountersignError):
    """Another plan is being made: each reads many calls."""


class NothingToPlan(CountersignError):
    """The file is what there is."""


def make_plan(text: str, *, by: By, origin: str = "", calls: int = CALLS) -> PolicyPlan:
    """`calls`: 0 for none, where the plan is applied at once. Raises BadPolicyFile and
    NothingToPlan."""
    if len(origin) > ORIGIN_MAX:
        raise CountersignError(_("The origin has at most %d characters.") % ORIGIN_MAX)
    file = read_file(text)
    found = all_changes(file)
    if not found:
        raise NothingToPlan(_("The file changes nothing."))
    base = base_digest(file)
    return _keep(file, base, found, replay(file, found, calls=calls), by=by, origin=origin)


def replay(file: PolicyFile, found: list[PolicyChange], *, calls: int) -> dict[str, Any]:
    """The decisions by the file on calls of the last 30 days, or on about so many of them; empty
    where it changes nothing that decisions depend on. Raises BadPolicyFile and PlanningBusy."""
    trial = _try_out(file)
    if not calls or not any(one.section in DECIDING for one in found):
        return {}
    with transaction.atomic():
        one_at_a_time()
        taken = recorded_calls.sample(
            days=DAYS, most=max(CALLS_MIN, min(calls, CALLS_MAX)), until=timezone.now()
        )
        reader = SubjectReader(taken.since)
        replayed = CallReplay(decide.load(), trial.book, reader, trial.labels).run(taken)
    return {**replayed.plain(), **minutes(replayed)}


def one_at_a_time() -> None:
    """Until the transaction ends. Raises PlanningBusy."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtext('policy plan'))")
        if not cursor.fetchone()[0]:
            raise PlanningBusy(_("Another plan is being created. Try again in a minute."))


class _Trial(NamedTuple):
    """Rules and labels as they would be."""

    book: RuleBook
    labels: dict[str, tuple[str, ...]]


def _try_out(file: PolicyFile) -> _Trial:
    """Writes it all, reads what decides, and takes everything back."""
    try:
        with transaction.atomic():
            writing.lock(file.wanted)
            writing.write(file.present, file.wanted, by=SYSTEM)
            tools = Tool.objects.filter(exposed_name__in=file.wanted.get("tools", {}))
            labels = {name: tuple(of) for name, of in tools.values_list("exposed_name", "labels")}
            trial = _Trial(decide.load(), labels)
            transaction.set_rollback(True)
    except (ValidationError, CountersignError) as error:
        raise BadPolicyFile(" ".join(said for _path, said in mistakes_of(error))) from error
    return trial


def minutes(replayed: ReplayResult) -> dict[str, Any]:
    """Reviewer minutes a week, added or saved; None where no decision was ever timed,
    or where too little was judged."""
    timed = reviewer_time()
    known = {"timed_votes": timed.votes, "median_vote_s": timed.all_s}
    votes = replayed.all_votes()
    if timed.all_s is None or votes is None or replayed.first_at is None:
        return {**known, "minutes_a_week": None}
    seconds = sum(n * timed.seconds(tool) for tool, n in votes.items())
    lasted = max(DAY_S, (replayed.sample.until - replayed.first_at).total_seconds())
    return {**known, "minutes_a_week": round(seconds / 60 * WEEK_S / lasted, 1)}


def _keep(
    file: PolicyFile,
    base: str,
    found: list[PolicyChange],
    result: dict[str, Any],
    *,
    by: By,
    origin: str,
) -> PolicyPlan:
    plain = [one.plain() for one in found]
    plan = PolicyPlan(
        base_digest=base,
        proposal=file.text,
        managed_by=file.managed_by,
        origin=origin,
        changes=plain,
        result=result,
        account=by.account if isinstance(by, ServiceCaller) else None,
        person=by if isinstance(by, User) else None,
    )
    plan.digest = digest_of_plan(plan)
    with transaction.atomic():
        plan.save(force_insert=True)
        record(
            "policy.planned",
            actor=acting(by),
            plan=plan.digest,
            changes=len(plain),
            origin=origin,
            answers_for=_name_of(by),
        )
    return plan


def _name_of(by: By) -> str:
    person = account_of(by)
    return person.username if person else ""


def digest_of_plan(plan: PolicyPlan) -> str:
    """Over base, proposal and result: another plan has another digest."""
    return digest_of(
        {
            "base": plan.base_digest,
            "proposal": plan.proposal,
            "managed_by": plan.managed_by,
            "changes": plan.changes,
            "result": plan.result,
            "at": plan.created_at.isoformat(),
        }
    )
