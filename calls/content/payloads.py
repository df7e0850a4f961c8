"""Access log of payloads: reading a call's arguments or result is an audit entry itself."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.db import connection
from django.utils import timezone

from accounts.models import User
from audit.models import Entry
from audit.services import record
from calls.models import Call

# Reloading the page is no other look.
SAME_LOOK = timedelta(minutes=10)
LOOKED = "payload.viewed"

CONTAINING = """
    SELECT DISTINCT id FROM (
        SELECT id, arguments FROM calls_call WHERE id = ANY(%(ids)s)
        UNION ALL
        SELECT call_id, arguments FROM calls_amendment WHERE call_id = ANY(%(ids)s)
    ) AS written
    WHERE position(lower(%(text)s) IN lower(convert_from(arguments, 'UTF8'))) > 0
       OR position(lower(%(escaped)s) IN lower(convert_from(arguments, 'UTF8'))) > 0
"""


def note_look(call: Call, *, by: User) -> None:
    """Records that a user read a call's payload, once for each user and call."""
    looked = Entry.objects.of_call(call.pk).filter(action=LOOKED, actor_id=by.pk)
    if looked.filter(at__gt=timezone.now() - SAME_LOOK).exists():
        return
    record(
        LOOKED,
        actor=by.actor,
        call_id=call.pk,
        agent=(call.agent_id, call.agent.name),
        server=call.server.slug if call.server else "",
        tool=call.tool_name,
    )


def containing(call_ids: Collection[UUID], text: str) -> set[UUID]:
    """Filters calls whose arguments contain the text, as the agent wrote or people edited them,
    plainly or JSON-escaped."""
    if not call_ids:
        return set()
    spelled = {"text": text, "escaped": json.dumps(text)[1:-1]}
    with connection.cursor() as cursor:
        cursor.execute(CONTAINING, {"ids": list(call_ids), **spelled})
        return {pk for (pk,) in cursor.fetchall()}
