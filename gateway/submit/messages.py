"""Sentences for agents about how a call stands, where its record has none."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings

from calls.content import progress_figures
from calls.content.answers import CallStatus
from calls.record.states import LIVE, State
from core.english import gettext
from core.english import gettext as _
from gateway.submit.lookups import AgentCall
from registry.models import OwnTool
from registry.publishing.published_tools import PublishedToolset

# Of calls whose result says the rest.
_ENDED = {
    State.SUCCEEDED: gettext("It succeeded: the tool's result says what came of it."),
    State.TOOL_ERROR: gettext("The tool ended with an error; see its result."),
}


def page_of(call_id: UUID) -> str:
    return f"{settings.PUBLIC_URL}/calls/{call_id}/"


def stands(
    state: State, call_id: UUID, fingerprint: str, how_far: str = "", *, stopped: str = ""
) -> str:
    """`stopped`: the emergency stop or pause that keeps it from starting."""
    if stopped:
        return f"{stands(state, call_id, fingerprint)} {_suspended(state, stopped)}"
    page = {"page": page_of(call_id), "fingerprint": fingerprint, "how_far": how_far}
    if state == State.HELD:
        said = _(
            "Not executed: pending approval. A person decides at %(page)s "
            "(fingerprint %(fingerprint)s)."
        )
        return said % page
    if state == State.RUNNING and how_far:
        return _("Running now: %(how_far)s; see %(page)s.") % page
    if state == State.RUNNING:
        return _("Running now; see %(page)s.") % page
    if state in LIVE:
        return _("It may run, and waits for a worker; see %(page)s.") % page
    return str(_ENDED.get(state, state.label))


def _suspended(state: State, stopped: str) -> str:
    if state == State.HELD:
        return _("Suspended: %(why)s Until that has ended nobody can approve it.") % {
            "why": stopped
        }
    return _("Suspended: %(why)s Until that has ended it does not start.") % {"why": stopped}


def asks_a_person(call_id: UUID, stopped: str = "") -> str:
    said = _("A person has to approve this call before it runs, at %(page)s.")
    asks = said % {"page": page_of(call_id)}
    return f"{asks} {_suspended(State.HELD, stopped)}" if stopped else asks


def of(found: AgentCall, toolset: PublishedToolset) -> str:
    """How a call stands, and what people want to hear of its agent, if it can answer here."""
    said = stands(
        found.seen.state,
        found.call_id,
        found.fingerprint,
        how_far(found.seen),
        stopped=found.stopped,
    )
    if found.seen.consent_page:
        said = f"{said} {found.seen.reason}"
    if not found.questions or OwnTool.JUSTIFY not in toolset.own_tools:
        return said
    asked = _('A person asks: “%(asked)s” Answer by %(tool)s with {"call_id": "%(id)s"}.')
    told = {
        "asked": " · ".join(found.questions),
        "tool": toolset.own_name(OwnTool.JUSTIFY),
        "id": found.call_id,
    }
    return f"{said} {asked % told}"


def how_far(seen: CallStatus) -> str:
    """In figures and in the server's own words, as far as it said anything."""
    figures = progress_figures.of(seen.progress, seen.total)
    said = f"“{seen.message}”" if seen.message else ""
    if figures.done is not None and figures.total is not None:
        numbers = _("%(done)s of %(total)s") % {
            "done": f"{figures.done:.12g}",
            "total": f"{figures.total:.12g}",
        }
    else:
        numbers = f"{figures.percent} %" if figures.percent is not None else ""
    return ", ".join(part for part in (numbers, said) if part)


def come_back(call_id: UUID, toolset: PublishedToolset) -> str:
    said = _('To get the outcome, call %(tool)s with {"call_id": "%(id)s"}.')
    return said % {"tool": toolset.own_name(OwnTool.AWAIT), "id": call_id}
