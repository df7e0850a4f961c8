"""Work that takes one core's time, spread over as many processes as there are cores."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

import django

T = TypeVar("T")
R = TypeVar("R")


def spread(work: Callable[[T], R], over: Iterable[T], *, processes: int) -> Iterator[R]:
    """Results in order. Each process has connections of its own: `work` is a function of a module
    and reads what is committed."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=django.setup) as pool:
        yield from pool.map(work, over)
