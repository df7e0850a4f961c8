"""Approved calls that wait until their user has signed in at the server, or allowed it more.

What was approved is what is sent then: the claim after the consent judges it as every other.
"""

from __future__ import annotations

from datetime import timedelta

from audit.models import ClockTime, Entry
from calls.content.answers import CONSENT_PAGE, LACKED_SCOPES
from calls.models import Call
from policies.models import Effect
from registry.credentials import credential_store
from registry.credentials.owners import owner_for
from registry.publishing.published_tools import PublishedTool

# So soon after the consent it is sent. Its time to start goes on meanwhile.
LOOK_EVERY = timedelta(seconds=1)


def is_postponed(call: Call, tool: PublishedTool) -> bool:
    """Whether its last attempt ended for want of a consent that is still wanted: that costs no
    attempt. Within the transaction that has locked the row."""
    is_approved = call.effect == Effect.ASK
    if not (is_approved and call.fence and tool.connection.signs_in and _lacked_consent(call)):
        return False
    owner = owner_for(call.agent, tool.connection)
    if not credential_store.wants_consent(tool.connection.signs_in, owner):
        return False
    Call.objects.filter(pk=call.pk).update(start_after=ClockTime() + LOOK_EVERY)
    return True


def lacked_scopes(call: Call, tool: PublishedTool) -> bool:
    """Whether its server had the call once and asked for more scopes."""
    if not (call.fence and tool.connection.signs_in):
        return False
    return Entry.objects.filter(call_id=call.pk, details__has_key=LACKED_SCOPES).exists()


def _lacked_consent(call: Call) -> bool:
    last = Entry.objects.filter(call_id=call.pk, seq=call.seq).values_list("details", flat=True)
    return CONSENT_PAGE in (last.first() or {})
