"""The words for states of calls, from the one table that has them (calls/record/states.py)."""

from django import template
from django.utils.functional import Promise

from calls.record.states import State

register = template.Library()


@register.filter
def state_label(state: str) -> str | Promise:
    """The state's word in the reader's language; what is no state of a call stays as it is."""
    return State(state).label if state in State.values else state
