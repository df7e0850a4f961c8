"""Preparing exports in the middle of a test, as a worker does."""

from collections.abc import Callable

from audit import export_jobs
from calls.content.payloads import containing


def prepare_exports() -> None:
    """All that wait."""
    while export := export_jobs.take():
        export_jobs.prepare(export, containing, lambda: False)


def prepare_parts(count: int) -> None:
    """So many of one export: then its worker is asked to stop."""
    if export := export_jobs.take():
        export_jobs.prepare(export, containing, _after(count))


def _after(count: int) -> Callable[[], bool]:
    asked = iter(range(count))
    return lambda: next(asked, None) is None
