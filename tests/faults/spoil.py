"""What the suite does inside the product's processes: their clock, their disk, and on demand one of
nine mistakes that the suite has to find. The product knows nothing of this."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

Change = Callable[[ModuleType], None]


def begin() -> None:
    _shift_clock(Path(os.environ["FAULTS_CLOCK"]))
    _note_syncs(Path(os.environ["FAULTS_SYNCED"]))
    broken = os.environ.get("FAULTS_BROKEN", "")
    if broken:
        from tests.faults.broken import VARIANTS

        sys.meta_path.insert(0, _Spoiler(VARIANTS[broken].changes))


def _shift_clock(control: Path) -> None:
    """The wall clock as Python asks for it; monotonic clocks do not shift, nor do the machine's."""
    real, monotonic = time.time, time.monotonic
    state = {"looked": -1.0, "shift": 0.0}

    def shifted() -> float:
        if monotonic() - state["looked"] > 0.5:
            state["looked"] = monotonic()
            try:
                state["shift"] = float(control.read_text() or 0)
            except (OSError, ValueError):
                state["shift"] = 0.0
        return real() + state["shift"]

    time.time = shifted
    time.time_ns = lambda: int(shifted() * 1e9)


def _note_syncs(synced: Path) -> None:
    from tests.faults.spool_disk import note

    real = os.fsync

    def fsync(descriptor: Any) -> None:
        real(descriptor)
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        note(synced, number)

    os.fsync = fsync  # type: ignore[assignment]


class _Spoiler(importlib.abc.MetaPathFinder):
    """Changes modules of the product at the moment of their import."""

    def __init__(self, changes: dict[str, Change]) -> None:
        self._changes = dict(changes)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        change = self._changes.pop(name, None)
        if change is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
