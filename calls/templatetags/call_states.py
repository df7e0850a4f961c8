"""The words for states of calls, from the one table that has them (calls/record/states.py)."""

from collections.abc import Collection

from django import template
from django.utils.functional import Promise

from calls.models import Freeze
from calls.record.states import State

register = template.Library()


@register.filter
def state_label(state: str) -> str | Promise:
    """The state's word in the reader's language; what is no state of a call stays as it is."""
    return State(state).label if state in State.values else state


@register.filter
def suspend_server(stops: Collection[Freeze], server_id: int) -> bool:
    """Whether one of these emergency stops covers the server."""
    return any(not stop.agent_id and stop.server_id in (None, server_id) for stop in stops)


@register.filter
def suspend_agent(stops: Collection[Freeze], agent_id: int) -> bool:
    """Whether one of these emergency stops covers the agent."""
    return any(not stop.server_id and stop.agent_id in (None, agent_id) for stop in stops)
