"""Delegates are notified of the calls that are pending as their delegation begins.

Of later calls they are notified as each becomes pending. A row remembers which delegations were
looked at, so that it happens once, whichever worker sees first that one began.
"""

from __future__ import annotations

from uuid import UUID

from django.db import connection

from approvals.models import Delegation
from audit.models import Entry
from notifications.events import Event
from notifications.recipients import Audience, Receiver, deciders

# By the clock that approvals_delegations has, too.
CLAIM = """
    INSERT INTO notifications_begundelegation (delegation_id)
    SELECT d.id FROM approvals_delegation d
    WHERE d.begins_at <= now() AND d.ends_at > now()
      AND NOT EXISTS (SELECT FROM notifications_begundelegation b WHERE b.delegation_id = d.id)
    ON CONFLICT DO NOTHING RETURNING delegation_id
"""
# Pending calls that the delegator was notified of and the delegate was not, each with the entry
# that asked last.
PENDING = """
    WITH asked (call_id, entry_id, person_id) AS MATERIALIZED (
        SELECT d.call_id, d.entry_id, COALESCE(d.person_id, p.person_id)
        FROM notifications_delivery d
        JOIN approvals_approval a ON a.call_id = d.call_id AND a.state = 'waiting'
        LEFT JOIN notifications_pushdevice p ON p.id = d.device_id
        WHERE d.event = 'approval.needed' AND d.webhook_id IS NULL)
    SELECT asked.call_id, max(asked.entry_id) FROM asked
    WHERE asked.person_id = %(delegator)s
      AND NOT EXISTS (SELECT FROM asked other
        WHERE other.call_id = asked.call_id AND other.person_id = %(delegate)s)
      AND EXISTS (SELECT FROM approvals_delegations(asked.call_id) held
        WHERE held.delegator_id = %(delegator)s AND held.delegate_id = %(delegate)s)
    GROUP BY asked.call_id ORDER BY max(asked.entry_id)
"""


def claim() -> list[Delegation]:
    """Those that began since the last look. In the caller's transaction, which also notifies."""
    with connection.cursor() as cursor:
        cursor.execute(CLAIM)
        begun = [pk for (pk,) in cursor.fetchall()]
    return list(Delegation.objects.filter(pk__in=begun).select_related("delegate"))


def receivers(delegation: Delegation, audience: Audience) -> list[tuple[Entry, Receiver]]:
    """Where the delegate is notified, of each call by the entry that asked."""
    delegate = delegation.delegate
    if delegate not in audience.people(Event.APPROVAL_NEEDED):
        return []
    calls = [(call, entry) for call, entry in _pending(delegation) if [*deciders(call, [delegate])]]
    entries = Entry.objects.in_bulk([entry for _call, entry in calls])
    places = audience.of({delegate.pk}, Event.APPROVAL_NEEDED)
    # The month of an entry may have been detached meanwhile.
    asked = [entries[entry] for _call, entry in calls if entry in entries]
    return [(entry, place) for entry in asked for place in places]


def _pending(delegation: Delegation) -> list[tuple[UUID, int]]:
    people = {"delegator": delegation.delegator_id, "delegate": delegation.delegate_id}
    with connection.cursor() as cursor:
        cursor.execute(PENDING, people)
        return list(cursor.fetchall())
