"""One call as a page shows it: its row, its entries, and of its content what one may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.context_processors import PermWrapper
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from audit import display_names
from audit.erasure_ledger import ERASED, RESULT_ERASED
from audit.models import Entry
from calls.chain import ChainLink, chain_of, credential_name
from calls.content import progress_figures, results, retention
from calls.content.amendments import edited
from calls.content.received_results import is_kept
from calls.models import Call, LateReply, Rerun
from calls.queue import stale_leases
from calls.record.states import LIVE, State
from calls.running.cleaning import KEY
from calls.running.progress import is_cut
from calls.views import duration_estimate
from inspection.labels import label

_LONG = Call.Mode.BACKGROUND
VOTED = "approval.voted"


@dataclass(frozen=True)
class ViewerRights:
    """All that a picture may know of whoever looks at it; they who look alike share one."""

    time_zone: str
    may_read: bool
    may_resolve: bool
    may_see_received: bool


def of_call(call_id: UUID, person: User, find: str = "") -> dict[str, Any] | None:
    """None when there is no such call, or it is not this person's to see."""
    call = find_call(call_id)
    looking = eyes(call, person)
    if call is None or looking is None:
        return None
    return seen_with(looking, call, find) | {"user": person, "perms": PermWrapper(person)}


def find_call(call_id: UUID) -> Call | None:
    return Call.objects.for_page().filter(pk=call_id).first()


def eyes(call: Call | None, person: User) -> ViewerRights | None:
    if call is None or not person.has_perm("calls.view_call"):
        return None
    may_read = may_read_payload(call, person)
    may_see_received = may_read and person.has_perm("calls.view_received")
    may_resolve = person.has_perm("calls.cancel_call")
    return ViewerRights(person.time_zone, may_read, may_resolve, may_see_received)


def seen_with(looking: ViewerRights, call: Call, find: str = "") -> dict[str, Any]:
    """`find`: what to look for in long texts of its result."""
    may_read = looking.may_read
    shown = results.of_call(call, find) if may_read else None
    # Votes, and who was notified, are on the card.
    told = list(Entry.objects.of_call(call.pk).exclude(action__startswith="notification."))
    entries = [entry for entry in told if entry.action != VOTED]
    late = _late_replies(call)
    treated = _treated(entries, looking) if may_read else None
    return {
        # As parts of a page ask for them.
        "user": looking,
        "perms": {"calls": {"cancel_call": looking.may_resolve}},
        "call": call,
        "erased": _find(entries, ERASED),
        "result_erased": _find(entries, RESULT_ERASED),
        "kept_until": retention.ends_of(call),
        # A vote is told by the move that it made.
        "entries": entries,
        "people": display_names.of_entries(entries),
        "chain": _chain(call, told),
        "is_live": call.state in LIVE,
        "progress": _progress(call) if call.state == State.RUNNING else None,
        "took": _seconds(call),
        "may_read": may_read,
        "edited": edited(call) if may_read else None,
        "result": shown,
        "find": find,
        "treated": treated,
        "is_received_kept": bool(treated and looking.may_see_received) and is_kept(call),
        "result_gone": results.deleted_at(call) if call.result_size and not shown else None,
        "late": late,
        # It says by itself what happened: recording that by hand comes second.
        "late_decides": any(reply.is_decisive for reply in late),
        # Short calls are asked for none.
        "log": list(call.log_lines.all()) if may_read and call.mode == _LONG else [],
        # Few calls are asked anything, and then their entries say so.
        "credential_name": credential_name(_credential(entries).get("owner", "")),
        "questions": list(call.inputs.all()) if may_read and _had_input_requests(entries) else [],
        **_reruns(call),
    }


def _chain(call: Call, entries: list[Entry]) -> list[ChainLink]:
    asked = (entries[0].details if entries else None) or {}
    votes = {one.actor: one for one in entries if one.action in (VOTED, "approval.taken_back")}
    approvers = [
        (name, _proof_of(vote.details or {}))
        for name, vote in votes.items()
        if vote.action == VOTED and (vote.details or {}).get("approve")
    ]
    if granted_by := asked.get("granted_by"):
        approvers.append((granted_by, ""))
    return chain_of(call, asked.get("signed_in"), asked.get("credential"), approvers)


def _credential(entries: list[Entry]) -> Mapping[str, Any]:
    return ((entries[0].details if entries else None) or {}).get("credential") or {}


def _proof_of(vote: Mapping[str, Any]) -> str:
    """How a vote was confirmed, and the beginning of that proof's digest."""
    return " ".join(filter(None, (vote.get("step_up"), vote.get("proof", "")[:12])))


def _find(entries: list[Entry], action: str) -> Entry | None:
    return next((one for one in entries if one.action == action), None)


def _treated(entries: list[Entry], looking: ViewerRights) -> dict[str, Any] | None:
    """How the result was treated before anybody got it, as the call's last entry says."""
    found = [entry.details[KEY] for entry in entries if KEY in (entry.details or {})]
    if not found:
        return None
    treated = dict(found[-1])
    if not looking.may_see_received:
        # Beside the masked text, what was masked could be guessed from it.
        treated.pop("came", None)
    counted = [(label(kind), n) for kind, n in treated.get("found", {}).items()]
    return treated | {"counted": counted}


def _had_input_requests(entries: list[Entry]) -> bool:
    return any(entry.action == "call.input_asked" for entry in entries)


def _reruns(call: Call) -> dict[str, Any]:
    """The calls that retried this one, and those that it retried."""
    found = list(Rerun.objects.filter(Q(call=call) | Q(again=call)))
    return {
        "rerun": next((one for one in found if one.call_id == call.pk), None),
        "reruns_of": [one for one in found if one.call_id != call.pk],
    }


def _late_replies(call: Call) -> list[LateReply]:
    if call.state not in (State.UNKNOWN, State.RESOLVED):
        return []
    return list(call.late_replies.all())


def may_read_payload(call: Call, person: User) -> bool:
    """Arguments and results are for those who decide or audit, and for whom the agent works."""
    return call.person_id == person.pk or person.has_perm("calls.view_payload")


def may_cancel(call: Call, person: User) -> bool:
    return call.person_id == person.pk or person.has_perm("calls.cancel_call")


def may_resolve(call: Call, person: User) -> bool:
    return call.state in (*LIVE, State.UNKNOWN) and person.has_perm("calls.cancel_call")


def _seconds(call: Call) -> float | None:
    if call.sent_at is None:
        return None
    return ((call.finished_at or timezone.now()) - call.sent_at).total_seconds()


def _progress(call: Call) -> dict[str, Any]:
    figures = progress_figures.of(call.progress, call.progress_total, call.progress_rate)
    return {
        **figures._asdict(),
        "message": call.progress_message,
        "is_cut": is_cut(call.progress_message),
        "silent_since": stale_leases.since(call),
        **({} if figures.left_s else _as_usual(call)),
    }


def _as_usual(call: Call) -> dict[str, Any]:
    """When it ends if it takes as long as its tool's calls do; a server that is silent says nothing
    else."""
    usual_s = duration_estimate.seconds(call)
    if usual_s is None or call.sent_at is None:
        return {}
    expected = call.sent_at + timedelta(seconds=usual_s)
    return {"usual": round(usual_s), "expected": expected, "overdue": expected < timezone.now()}
