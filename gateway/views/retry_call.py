"""Asking once more for a call whose outcome nobody knows: a new call, which people decide on."""

from __future__ import annotations

from uuid import UUID

from accounts.models import Agent, User
from accounts.tokens import Bearer
from approvals import services as approvals
from calls import services
from calls.models import Call
from calls.record.states import State
from core.english import gettext as _
from core.errors import CountersignError
from gateway.submit import sync
from gateway.submit.bearers import speaking_for
from gateway.submit.sync import SyncCallRequest


class RetryRefused(CountersignError):
    """It cannot be asked for again; the sentence says why."""


def run_again(call: Call, *, by: User) -> UUID:
    """The new call. Raises RetryRefused and what `asking.ask` raises."""
    submitted = sync.ask(_question(call, by), seconds=0)
    if submitted.refusal:
        raise RetryRefused(submitted.reason)
    try:
        services.ran_again(call.pk, retry_id=submitted.call_id, by=by)
    except services.NotResolvable as error:
        # Somebody else was first: one new call is enough, and theirs may be this very one.
        if not submitted.joined:
            approvals.cancel(submitted.call_id, by=by.actor)
        raise RetryRefused(str(error)) from error
    return submitted.call_id


def _question(call: Call, by: User) -> SyncCallRequest:
    if call.state != State.UNKNOWN or call.tool is None:
        raise RetryRefused(_("The outcome of this call is not unknown, or no longer."))
    why = _("%(who)s retries the call %(id)s, whose outcome is unknown.")
    return SyncCallRequest(
        bearer=_bearer(call.agent),
        toolset=call.toolset,
        tool=call.tool.exposed_name,
        tool_id=call.tool.pk,
        arguments=call.to_send,
        parsed=call.parsed_arguments,
        origin=Call.Origin.CONSOLE,
        background=True,
        hold_for=why % {"who": by.username, "id": call.pk},
        allow_duplicate=True,
    )


def _bearer(agent: Agent) -> Bearer:
    """The agent's identity without its token, on behalf of the signed-in user."""
    bearer = speaking_for(agent)
    if bearer is None:
        raise RetryRefused(_("The agent or its owner was disabled."))
    return bearer
