"""Figures of the whole installation, queried when somebody scrapes them, and never otherwise.

Whichever console answers, they are the same. Cheap ones come first: what a slow or hung database
does not answer in time is left out, and `countersign_record_readable` says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db import DatabaseError, InterfaceError, connection, transaction
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from calls.record.states import State
from calls.tally import count_all
from core import listen
from core.connections import each_within

# Of all statements together, and of one.
WITHIN_S = 1.5
# Of what can grow without an end so many are counted: an alert needs no more.
COUNTED = 100_000
READABLE = "countersign_record_readable"
CALLS = "countersign_calls"


class Gauge(NamedTuple):
    """`sql` gives rows of (label's value, number), or a number alone where there is no label."""

    name: str
    help: str
    sql: str
    label: str = ""


GAUGES = [
    Gauge(
        "countersign_calls_open",
        "Calls that have not ended, by state.",
        """
        SELECT s.state, count(c.id) FROM unnest(ARRAY['held', 'approved', 'queued', 'running'])
            AS s (state) LEFT JOIN calls_call c ON c.state = s.state
            AND c.state IN ('held', 'approved', 'queued', 'running')
        GROUP BY s.state
        """,
        "state",
    ),
    Gauge(
        "countersign_queue_oldest_seconds",
        "Age of the oldest queued call that may start now.",
        """
        SELECT coalesce(max(extract(epoch FROM
            clock_timestamp() - coalesce(start_after, asked_at))), 0) FROM calls_call
        WHERE state = 'queued' AND start_by > clock_timestamp()
          AND (start_after IS NULL OR start_after <= clock_timestamp())
        """,
    ),
    Gauge(
        "countersign_approvals_pending",
        "Approvals that wait for people.",
        "SELECT count(*) FROM approvals_approval WHERE state = 'waiting'",
    ),
    Gauge(
        "countersign_approvals_oldest_seconds",
        "Age of the oldest pending approval.",
        """
        SELECT coalesce(extract(epoch FROM clock_timestamp() - min(asked_at)), 0)
        FROM approvals_approval WHERE state = 'waiting'
        """,
    ),
    Gauge(
        "countersign_calls_unresolved",
        "Calls of unknown outcome that nobody has resolved.",
        f"""
        SELECT count(*) FROM (
            SELECT FROM calls_call WHERE state = 'unknown' LIMIT {COUNTED}) c
        """,
    ),
    Gauge(
        "countersign_leases_overdue",
        "Running calls whose process has not renewed its lease in time.",
        """
        SELECT count(*) FROM calls_call
        WHERE state = 'running' AND lease_until < clock_timestamp()
        """,
    ),
    Gauge(
        "countersign_record_unsealed",
        f"Entries behind the last one sealed; at most {COUNTED}.",
        f"""
        SELECT count(*) FROM (SELECT FROM audit_entryrow WHERE id > coalesce((
            SELECT upper(ids) - 1 FROM audit_batch ORDER BY first_index DESC LIMIT 1), 0)
            LIMIT {COUNTED}) e
        """,
    ),
    Gauge(
        "countersign_record_unsealed_seconds",
        "Age of the oldest entry behind the last one sealed.",
        """
        SELECT coalesce((SELECT extract(epoch FROM clock_timestamp() - at) FROM audit_entryrow
            WHERE id > coalesce((
                SELECT upper(ids) - 1 FROM audit_batch ORDER BY first_index DESC LIMIT 1), 0)
            ORDER BY id LIMIT 1), 0)
        """,
    ),
    Gauge(
        "countersign_restore_checked_seconds",
        "Since a backup was last restored and verified aside; if none was, since the first entry.",
        """
        SELECT coalesce(extract(epoch FROM clock_timestamp() - coalesce((
            SELECT max(e.at) FROM audit_name n CROSS JOIN LATERAL (
                SELECT at FROM audit_entryrow WHERE action = n.id AND action > 2
                ORDER BY action DESC, id DESC LIMIT 1) e
            WHERE n.kind = 'action' AND left(n.text, 500) = 'backup.checked'),
            (SELECT at FROM audit_entryrow ORDER BY id LIMIT 1))), 0)
        """,
    ),
    Gauge(
        "countersign_wal_archive_failing_seconds",
        "While the last attempt to archive WAL failed: since the last that did not; otherwise 0.",
        """
        SELECT coalesce(extract(epoch FROM clock_timestamp() - (
            SELECT coalesce(last_archived_time, stats_reset) FROM pg_stat_archiver
            WHERE last_failed_time > coalesce(last_archived_time, '-infinity'))), 0)
        """,
    ),
    Gauge(
        "countersign_deliveries_pending",
        "Notifications on their way.",
        "SELECT count(*) FROM notifications_delivery WHERE state = 'pending'",
    ),
    Gauge(
        "countersign_deliveries_overdue_seconds",
        "How long the notification that is due first has been due.",
        """
        SELECT greatest(coalesce(extract(epoch FROM clock_timestamp() - min(next_at)), 0), 0)
        FROM notifications_delivery WHERE state = 'pending'
        """,
    ),
    Gauge(
        "countersign_deliveries_given_up",
        "Notifications that were given up and are still kept.",
        f"""
        SELECT count(*) FROM (
            SELECT FROM notifications_delivery WHERE state = 'dead' LIMIT {COUNTED}) d
        """,
    ),
    Gauge(
        "countersign_servers",
        "Enabled servers, by what discovery found last.",
        """
        SELECT h.health, count(s.id) FROM unnest(ARRAY['ok', 'down', 'unknown']) AS h (health)
        LEFT JOIN registry_server s ON s.enabled AND s.health = h.health
        GROUP BY h.health
        """,
        "health",
    ),
    Gauge(
        "countersign_emergency_stops",
        "Emergency stops in force.",
        "SELECT count(*) FROM calls_freeze WHERE ended_at IS NULL",
    ),
    Gauge(
        "countersign_break_glass",
        "Calls that one person let run alone, by whether somebody has reviewed it.",
        """
        SELECT r.reviewed, count(b.id) FROM unnest(ARRAY['no', 'yes']) AS r (reviewed)
        LEFT JOIN approvals_breakglass b ON (b.reviewed_at IS NOT NULL) = (r.reviewed = 'yes')
        GROUP BY r.reviewed
        """,
        "reviewed",
    ),
    Gauge(
        "countersign_paused",
        "1 while the installation is paused.",
        "SELECT count(*) FROM calls_pause WHERE ended_at IS NULL",
    ),
    Gauge(
        "countersign_processes",
        "Processes of the agents' endpoint and workers that listen to the database.",
        f"""
        SELECT r.role, count(DISTINCT a.application_name)
        FROM unnest(ARRAY['agents', 'worker']) AS r (role)
        LEFT JOIN pg_stat_activity a ON a.datname = current_database()
            AND starts_with(a.application_name, '{listen.NAME} ' || r.role || ' ')
        GROUP BY r.role
        """,
        "role",
    ),
    Gauge(
        "countersign_database_connections",
        "Connections to the database server.",
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'",
    ),
    Gauge(
        "countersign_database_connections_max",
        "Connections that the database server takes.",
        "SELECT setting::int FROM pg_settings WHERE name = 'max_connections'",
    ),
]


def read_figures(found: list[Metric]) -> None:
    """Adds to `found` one after the other what the database answers."""
    readable = GaugeMetricFamily(READABLE, "1 if the database answered all of this in time.")
    try:
        with each_within(WITHIN_S), transaction.atomic():
            for family in _read(time.monotonic() + WITHIN_S):
                # What was read before the database falls silent counts.
                found.append(family)
        readable.add_metric([], 1)
    except (DatabaseError, InterfaceError, TimeoutError):
        readable.add_metric([], 0)
    finally:
        connection.close()
    found.append(readable)


def _read(until: float) -> Iterator[Metric]:
    _execute(
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;"
        f"SET LOCAL statement_timeout = {1000 * WITHIN_S:.0f}"
    )
    for gauge in GAUGES:
        if time.monotonic() > until:
            raise TimeoutError
        yield _gauge(gauge)
    yield _calls()


def _gauge(gauge: Gauge) -> Metric:
    family = GaugeMetricFamily(gauge.name, gauge.help, labels=[gauge.label] if gauge.label else [])
    for *labels, value in _execute(gauge.sql):
        family.add_metric(labels, float(value))
    return family


def _calls() -> Metric:
    family = CounterMetricFamily(CALLS, "Calls that ever came to this state.", labels=["state"])
    # Those at zero too: what appears with its first call has no growth that one could see.
    counts = count_all()
    for state in State:
        family.add_metric([state.value], counts.get(state, 0))
    return family


def _execute(sql: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall() if cursor.description else []
