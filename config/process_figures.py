"""Figures of this process, read from its memory; the database is not asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from django.conf import settings
from prometheus_client import ProcessCollector
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from calls.running.runtime import CallRuntime, all_runtimes
from core import figures
from core.figures import Durations
from core.postgresql.base import all_pools
from core.process import role
from core.spool import ASIDE, SUFFIX
from gateway.process import current

# Why this process does not do its work, where it has such a look at itself.
_find_fault: Callable[[], str] | None = None
_of_the_system = ProcessCollector(registry=None)


def set_find_fault(find_fault: Callable[[], str]) -> None:
    global _find_fault  # noqa: PLW0603 one per process is the point
    _find_fault = find_fault


def read_figures() -> Iterator[Metric]:
    """Blocks on nothing but a look into the spool's folder."""
    yield _info()
    if _find_fault is not None:
        yield GaugeMetricFamily(
            "countersign_process_ready",
            "1 while this process does its work, 0 while something keeps it from that.",
            value=not _find_fault(),
        )
    yield from _of_the_system.collect()
    stages = ((stage, durations) for stage, durations in figures.STAGES.items())
    yield _histogram("countersign_stage_seconds", "Stages of a call.", stages, "stage")
    commits = [("", figures.COMMIT)]
    yield _histogram("countersign_journal_commit_seconds", "Commits of the journal.", commits)
    yield _refused()
    if role() == "seal":
        yield _sealing_failures()
    runtimes = list(all_runtimes())
    for name, text, read in _OF_RUNTIMES:
        yield GaugeMetricFamily(name, text, value=sum(map(read, runtimes)))
    yield from _connections(runtimes)
    yield from _snapshots()
    yield from _spool()


_OF_RUNTIMES: list[tuple[str, str, Callable[[CallRuntime], float]]] = [
    (
        "countersign_journal_waiting",
        "Writes that no commit has taken yet.",
        lambda it: it.journal.waiting,
    ),
    (
        "countersign_journal_down",
        "Journals of this process whose last attempt found no database.",
        lambda it: it.journal.database_down,
    ),
    (
        "countersign_calls_in_flight",
        "Calls that this process sent and whose end is not yet recorded.",
        lambda it: len(it.engine.flights),
    ),
    (
        "countersign_upstream_connections",
        "Open HTTP connections of this process to tool servers.",
        lambda it: it.engine.connection_count,
    ),
    (
        "countersign_listeners_deaf",
        "Listeners of this process that do not hear the database.",
        lambda it: not it.listener.is_listening,
    ),
]


def _info() -> Metric:
    family = GaugeMetricFamily("countersign_process", "Which process this is.", labels=["role"])
    family.add_metric([role()], 1)
    return family


def _histogram(
    name: str, text: str, found: Iterable[tuple[str, Durations]], label: str = ""
) -> Metric:
    family = HistogramMetricFamily(name, text, labels=[label] if label else [])
    bounds = [*map(floatToGoString, figures.BOUNDS), "+Inf"]
    for value, durations in found:
        durations.sort()
        buckets = list(zip(bounds, accumulate(durations.counts), strict=True))
        family.add_metric([value] if label else [], buckets, durations.total_s)
    return family


def _refused() -> Metric:
    family = CounterMetricFamily(
        "countersign_requests_refused",
        "Requests to the agents' endpoint that were refused with this status.",
        labels=["status"],
    )
    for status, n in sorted(figures.refused.items()):
        family.add_metric([str(status)], n)
    return family


def _sealing_failures() -> Metric:
    family = CounterMetricFamily(
        "countersign_sealing_failures",
        "Rounds in which the sealer sealed nothing, by what kept it from that.",
        labels=["kind"],
    )
    for kind, n in sorted(figures.sealing_failures.items()):
        family.add_metric([kind], n)
    return family


def _connections(runtimes: list[CallRuntime]) -> Iterator[Metric]:
    pools: list[tuple[str, Any]] = [("calls", runtime.pool) for runtime in runtimes]
    # Of pages and threads; made when it is first used.
    pools += [("pages", pool) for pool in all_pools()]
    open_, idle, waiting = (
        GaugeMetricFamily(f"countersign_pool_{name}", text, labels=["pool"])
        for name, text in (
            ("connections", "Open connections of a pool to the database."),
            ("idle", "Those that nobody uses."),
            ("waiting", "Requests that wait for a connection of the pool."),
        )
    )
    for name, pool in pools:
        stats = pool.get_stats()
        open_.add_metric([name], stats.get("pool_size", 0))
        idle.add_metric([name], stats.get("pool_available", 0))
        waiting.add_metric([name], stats.get("requests_waiting", 0))
    yield from (open_, idle, waiting)


def _snapshots() -> Iterator[Metric]:
    if runtimes := current.all_started():
        yield GaugeMetricFamily(
            "countersign_snapshot_age_seconds",
            "How long ago this process last knew its configuration to be the newest.",
            value=max(runtime.snapshot_age_s for runtime in runtimes),
        )


def _spool() -> Iterator[Metric]:
    root = Path(settings.DATA_DIR) / "spool"
    aside = len(list((root / ASIDE).glob(f"*{SUFFIX}")))
    everything = len(list(root.glob(f"*/*{SUFFIX}")))
    yield GaugeMetricFamily(
        "countersign_spool_replies",
        "Replies on this host that the database has not taken yet.",
        value=everything - aside,
    )
    yield GaugeMetricFamily(
        "countersign_spool_aside",
        "Replies on this host that could not be read or written down, and were set aside.",
        value=aside,
    )
