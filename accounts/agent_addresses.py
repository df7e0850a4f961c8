"""Addresses from which agents come: since when each was seen, and for how long it is remembered."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection
from django.utils import timezone

from accounts.models import AgentAddress
from core.client_address import host_network

# Of one agent; more are not kept.
KEPT_MAX = 1_000
FORGOTTEN_AFTER = timedelta(days=90)

_NOTE = f"""
    INSERT INTO accounts_agentaddress AS a (agent_id, address, first_at, last_at)
    SELECT %s, %s, clock_timestamp(), clock_timestamp()
    WHERE (SELECT count(*) FROM accounts_agentaddress k WHERE k.agent_id = %s) < {KEPT_MAX}
        OR EXISTS (SELECT FROM accounts_agentaddress k WHERE k.agent_id = %s AND k.address = %s)
    ON CONFLICT (agent_id, address) DO UPDATE SET last_at = clock_timestamp()
"""


def note_address(agent_id: int, address: str) -> None:
    known = host_network(address)
    with connection.cursor() as cursor:
        cursor.execute(_NOTE, [agent_id, known, agent_id, agent_id, known])


def forget_old() -> None:
    AgentAddress.objects.filter(last_at__lt=timezone.now() - FORGOTTEN_AFTER).delete()
