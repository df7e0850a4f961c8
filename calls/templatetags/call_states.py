"""The words for states of calls, from the one table that has them (calls/record/states.py)."""

from collections.abc import Collection

from django import template
from django.utils.functional import Promise

from audit.models import Entry
from calls.models import Freeze
from calls.record.states import State

register = template.Library()


@register.filter
def state_label(state: str) -> str | Promise:
    """The state's word in the reader's language; what is no state of a call stays as it is."""
    return State(state).label if state in State.values else state


@register.filter
def adds_reason(entry: Entry) -> bool:
    """Whether the entry's reason says more than its state and its actor, which stand beside it."""
    repeated = f"{State(entry.to_state).name} by {entry.actor}." if entry.to_state else ""
    return bool(entry.reason) and entry.reason.casefold() != repeated.casefold()


@register.filter
def suspend_server(stops: Collection[Freeze], server_id: int) -> bool:
    """Whether one of these emergency stops covers the server."""
    return any(not stop.agent_id and stop.server_id in (None, server_id) for stop in stops)


@register.filter
def suspend_agent(stops: Collection[Freeze], agent_id: int) -> bool:
    """Whether one of these emergency stops covers the agent."""
    return any(not stop.server_id and stop.agent_id in (None, agent_id) for stop in stops)
