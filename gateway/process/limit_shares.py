"""Rates in this process: shares of what PostgreSQL keeps for all gateways, spent without asking.

The count itself is one theoretical arrival time (GCRA) for each key of a limit, in the database and
by its clock. A gateway takes several uses of it at once and spends them here; what it has not spent
SHARE_S later it forgets, so that a share is never older than that. Of rates with few uses it takes
one at a time, and then all gateways together are exact.

What a call took that was then refused is spent by another one here, or goes back to the database.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg
from psycopg_pool import PoolTimeout

from core.connections import Pool
from core.errors import RecordUnavailable
from policies.limits.compiled import CompiledLimit, CounterKey, LimitKey, TakenUses

# So much of a rate, in seconds of it, is taken at once, and so long it may be spent.
SHARE_S = 0.5
# Within the last part of that it is filled up again, while calls spend what is left.
RENEW_S = 0.2
# What was given back may be spent here for so long; then it is the database's again.
RETURN_S = 0.05
# Of a burst, a share is no more than this part: one gateway must not have it all.
PARTS = 10
MOST_KEYS = 20_000
WITHIN_S = 2.0
# In the order of the limits, in which all gateways lock their counts.
LEASE = """
SELECT l.granted, l.wait_s, l.ahead_s
FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::float[],
            %s::float[], %s::float[], %s::float[]) WITH ORDINALITY AS o(
    which, counted, shown, agent, person, wanted, fewest, emission_s, burst, place),
LATERAL policies_lease(o.which, o.counted, o.shown, o.agent, o.person,
                       o.wanted, o.fewest, o.emission_s, o.burst) AS l
ORDER BY o.place
"""
# So long it is believed that nothing is left: another gateway may give some back.
BELIEVED_S = 0.5
RETURN = "SELECT policies_return(%s, %s, %s)"
UNREADABLE = "Whether a limit leaves room cannot be known right now. Nothing was sent."

log = logging.getLogger(__name__)

Keep = Callable[[Coroutine[Any, Any, None]], object]


def share_of(limit: CompiledLimit) -> int:
    """So many uses are taken at once. The error of all gateways together is this, for each."""
    return max(1, min(math.floor(SHARE_S / limit.emission_s), limit.burst // PARTS))


@dataclass(slots=True)
class Share:
    left: float = 0.0
    # On the monotonic clock.
    ends_at: float = 0.0
    # Nothing is left for `none_for` uses before then: not asked for again.
    none_until: float = 0.0
    none_for: int = 0
    believed_until: float = 0.0
    # Had it not been taken, the count would have been empty at that time or later.
    busy_until: float = math.inf
    # What is left is going back to the database.
    is_returning: bool = False
    asking: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class FoundShares:
    """The shares of some rates, each with whether bytes are counted. `renew_at`: not before."""

    rates: tuple[LimitKey, ...]
    shares: list[tuple[Share, bool]]
    renew_at: float = 0.0


class LeaseOrder(NamedTuple):
    """A request to the count: so much as is there up to `most`, or nothing below `least`.
    `left`: what is put aside of the share meanwhile."""

    share: Share
    limit: CompiledLimit
    key: CounterKey
    uses: int
    most: float
    least: float
    left: float
    asked_at: float


class WantedUses(NamedTuple):
    limit: CompiledLimit
    key: CounterKey
    uses: int


class LimitShares:
    """One for each event loop that serves agents. `keep`: runs what nobody waits for."""

    def __init__(self, pool: Pool, keep: Keep) -> None:
        self._pool, self._keep = pool, keep
        self._shares: dict[tuple[int, str, float, int], Share] = {}
        # By the identity of a tuple of rates, which nearly always comes again.
        self._found: dict[int, FoundShares] = {}

    def spend(self, rates: tuple[LimitKey, ...], size: int) -> tuple[TakenUses, ...] | None:
        """Takes from this process's shares of all these rates what a call of so many bytes uses, or
        nothing: then returns None."""
        found = self._found.get(id(rates))
        if found is None or found.rates is not rates:
            found = self._find(rates)
        now = soonest = time.monotonic()
        soonest += SHARE_S
        for share, counts_bytes in found.shares:
            if share.left < (size if counts_bytes else 1) or share.ends_at <= now:
                return None
            if share.ends_at < soonest:
                soonest = share.ends_at
        if soonest - now < RENEW_S and found.renew_at <= now:
            found.renew_at = now + RENEW_S / 2
            self._keep(self._renew(found))
        return tuple(
            [
                _spent(share, limit, key, size if counts_bytes else 1)
                for (share, counts_bytes), (limit, key) in zip(found.shares, rates, strict=True)
            ]
        )

    def _find(self, rates: tuple[LimitKey, ...]) -> FoundShares:
        """Makes the entry of `_found`."""
        shares = [(self._share(limit, key), limit.counts_bytes) for limit, key in rates]
        if len(self._found) >= MOST_KEYS:
            self._found.clear()
        found = self._found[id(rates)] = FoundShares(rates, shares)
        return found

    async def _renew(self, found: FoundShares) -> None:
        """Fills up shares that are soon over, so that no call waits for it."""
        async with contextlib.AsyncExitStack() as held:
            orders = []
            for (share, _counts_bytes), (limit, key) in zip(found.shares, found.rates, strict=True):
                if _missing(share, limit):
                    await held.enter_async_context(share.asking)
                    if missing := _missing(share, limit):
                        now = time.monotonic()
                        orders.append(LeaseOrder(share, limit, key, 1, missing, 1, 0.0, now))
            with contextlib.suppress(RecordUnavailable):
                await self._lease(orders)

    async def take(self, wanted: Sequence[WantedUses]) -> list[float | TakenUses]:
        """For each takes the uses, or nothing: then it is the seconds until there will be room;
        infinity: never. All that this process lacks is asked for at once. Raises
        RecordUnavailable, and then nothing was taken."""
        found: dict[int, float | TakenUses] = {}
        try:
            while lacking := self._take_here(wanted, found):
                await self._lease_all(lacking, found)
        except BaseException:
            self.give_back(one for one in found.values() if isinstance(one, TakenUses))
            raise
        return [found[place] for place in range(len(wanted))]

    def _take_here(
        self, wanted: Sequence[WantedUses], found: dict[int, float | TakenUses]
    ) -> dict[int, WantedUses]:
        """Takes what is here, or says that none is; returns what has to be asked for."""
        lacking = {}
        for place, one in enumerate(wanted):
            if place not in found:
                share = self._share(one.limit, one.key)
                taken = self._spend(share, *one)
                if (answer := taken or self._known_wait_s(share, one.limit, one.uses)) != 0:
                    found[place] = answer
                else:
                    lacking[place] = one
        return lacking

    async def _lease_all(
        self, lacking: dict[int, WantedUses], found: dict[int, float | TakenUses]
    ) -> None:
        async with contextlib.AsyncExitStack() as held:
            orders = {}
            for place, one in lacking.items():
                share = self._share(one.limit, one.key)
                await held.enter_async_context(share.asking)
                # Whoever waited may find what another brought.
                if not (_has(share, one.uses) or self._known_wait_s(share, one.limit, one.uses)):
                    orders[place] = self._order(share, *one)
            waits = await self._lease([*orders.values()])
            for (place, order), wait_s in zip(orders.items(), waits, strict=True):
                # At once: on a slow machine its share may be over already.
                given = (order.share, order.limit, order.key, order.uses)
                found[place] = _spent(*given) if wait_s is None else wait_s

    def known_wait_s(self, limit: CompiledLimit, key: CounterKey, uses: int) -> float:
        """Returns the seconds that `take` would, as far as this process knows without asking; 0:
        there may be room."""
        share = self._share(limit, key)
        return 0.0 if _has(share, uses) else self._known_wait_s(share, limit, uses)

    def give_back(self, taken: Iterable[TakenUses]) -> None:
        """The call that took them was refused: they are spent here soon, or the database's again.
        Nobody else has to do without."""
        now = time.monotonic()
        for one in taken:
            share = self._share(one.limit, one.key)
            # Whoever was told that nothing is left may ask again.
            share.none_until = 0.0
            if one.ends_at <= now or share.ends_at <= now:
                self._keep(self._put_back(one.limit, one.key, one.uses, one.busy_until))
                continue
            share.busy_until = min(share.busy_until, one.busy_until)
            share.left += one.uses
            if not share.is_returning:
                share.is_returning = True
                self._keep(self._return(share, one.limit, one.key))

    async def _return(self, share: Share, limit: CompiledLimit, key: CounterKey) -> None:
        try:
            await asyncio.sleep(RETURN_S)
        finally:
            share.is_returning = False
            left, share.left = share.left, 0.0
        await self._put_back(limit, key, left, share.busy_until)

    async def _put_back(
        self, limit: CompiledLimit, key: CounterKey, uses: float, busy_until: float
    ) -> None:
        # Had they not been taken, so much would have come back by itself meanwhile, and was lost
        # where nothing more fits.
        idle_s = max(0.0, time.monotonic() - busy_until)
        back_s = uses * limit.emission_s - idle_s
        if back_s <= 0:
            return
        try:
            async with self._pool.connection(timeout=WITHIN_S) as link, asyncio.timeout(WITHIN_S):
                await link.execute(RETURN, (limit.id, key.key, back_s))
        except (psycopg.Error, PoolTimeout, TimeoutError, OSError) as error:
            log.warning("what a refused call took of a limit is lost: %s", error)

    def _share(self, limit: CompiledLimit, key: CounterKey) -> Share:
        place = _place(limit, key)
        share = self._shares.get(place)
        if share is None:
            if len(self._shares) >= MOST_KEYS:
                self._forget()
            share = self._shares[place] = Share()
        return share

    def _forget(self) -> None:
        """Drops the shares whose window has passed."""
        now = time.monotonic()
        self._found.clear()
        self._shares = {
            place: share
            for place, share in self._shares.items()
            if max(share.ends_at, share.none_until) > now or share.asking.locked()
        }

    def _spend(
        self, share: Share, limit: CompiledLimit, key: CounterKey, uses: int
    ) -> TakenUses | None:
        return _spent(share, limit, key, uses) if _has(share, uses) else None

    def _known_wait_s(self, share: Share, limit: CompiledLimit, uses: int) -> float:
        if uses > limit.burst:
            return math.inf
        now = time.monotonic()
        left_s = share.none_until - now
        if left_s <= 0 or share.believed_until <= now or uses < share.none_for:
            return 0.0
        return left_s + (uses - share.none_for) * limit.emission_s

    def _order(self, share: Share, limit: CompiledLimit, key: CounterKey, uses: int) -> LeaseOrder:
        now = time.monotonic()
        if share.is_returning and share.left and share.ends_at <= now:
            # Over before it went back.
            self._keep(self._put_back(limit, key, share.left, share.busy_until))
        # Nobody else spends it while this asks for what is missing.
        left, share.left = (share.left if share.ends_at > now else 0.0), 0.0
        least = uses - left
        return LeaseOrder(share, limit, key, uses, max(share_of(limit), least), least, left, now)

    async def _lease(self, orders: Sequence[LeaseOrder]) -> list[float | None]:
        """For each the seconds until there will be room; None: what was missing is in its share.
        Raises RecordUnavailable."""
        replies = await self._ask(orders) if orders else []
        return [_received(*one) for one in zip(orders, replies, strict=True)]

    async def _ask(self, orders: Sequence[LeaseOrder]) -> list[tuple[float, float | None, float]]:
        """The results of policies_lease. Raises RecordUnavailable."""
        given = [
            (
                *(one.limit.id, one.key.key, one.key.label, one.key.agent_id, one.key.person_id),
                *map(float, (one.most, one.least, one.limit.emission_s, one.limit.burst)),
            )
            for one in orders
        ]
        columns = [list(column) for column in zip(*given, strict=True)]
        try:
            async with self._pool.connection(timeout=WITHIN_S) as link, asyncio.timeout(WITHIN_S):
                cursor = await link.execute(LEASE, columns)
                return await cursor.fetchall()
        except (psycopg.Error, PoolTimeout, TimeoutError, OSError) as error:
            raise RecordUnavailable(UNREADABLE) from error


def _received(order: LeaseOrder, reply: tuple[float, float | None, float]) -> float | None:
    share, (granted, wait_s, ahead_s) = order.share, reply
    # Also others may have given back meanwhile.
    older = order.left + share.left
    share.left = older + granted
    if granted:
        busy_until = order.asked_at + ahead_s
        share.busy_until = min(share.busy_until, busy_until) if older > 0 else busy_until
        share.ends_at = order.asked_at + SHARE_S
        return None
    if wait_s is None:
        return math.inf
    share.none_until, share.none_for = order.asked_at + wait_s, order.uses
    share.believed_until = order.asked_at + BELIEVED_S
    return wait_s


def _missing(share: Share, limit: CompiledLimit) -> int:
    """So many uses fill up a share that is soon over: as before, it is never more than one whole.
    Those of single uses are left alone: all gateways count them together."""
    whole, now = share_of(limit), time.monotonic()
    is_soon_over = now < share.ends_at < now + RENEW_S
    if whole <= 1 or not is_soon_over or share.is_returning:
        return 0
    return max(0, whole - math.floor(share.left))


def _place(limit: CompiledLimit, key: CounterKey) -> tuple[int, str, float, int]:
    """A limit that was changed begins with a share of its own; the count goes on."""
    return limit.id, key.key, limit.emission_s, limit.burst


def _spent(share: Share, limit: CompiledLimit, key: CounterKey, uses: int) -> TakenUses:
    share.left -= uses
    return TakenUses(limit, key, uses, share.ends_at, share.busy_until)


def _has(share: Share, uses: int) -> bool:
    return share.left >= uses and share.ends_at > time.monotonic()
