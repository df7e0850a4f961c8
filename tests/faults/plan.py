"""How much harm a run does, and over what time."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    seed: int
    # So many are answered at least.
    calls: int = 0
    # So long is waited for them, after the last fault.
    calls_within_s: float = float("inf")
    workers: int = 0
    gateways: int = 0
    databases: int = 0
    # Of every other deed, and how long each cut of the database lasts.
    rounds: int = 1
    cut_s: float = 5.0
    # So many other deeds side by side.
    at_once: int = 1
    seconds: float = 60.0
    crowd: int = 16
    pause_s: float = 0.05
    lease_s: float = 5.0
    # Within this time of the last fault every call has ended.
    settle_s: float = 60.0
    broken: str = ""
    # Only these deeds, and only these kinds of errand, with commas.
    only: str = ""
    errands: str = ""
    # Whether servers that misbehave are asked too, each case of them at least once.
    misbehaving: bool = True
