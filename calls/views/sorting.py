"""Orders of the list of calls: those that an index has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from django.utils.translation import gettext_lazy as _

from calls.models import CallQuerySet
from core.paging import DurationOrder, Order

# An index of all durations says little about those of one agent, tool or state.
NARROWING = ("state", "agent", "tool")


class CallOrder(NamedTuple):
    """`name` is what the address has, `opposite` the order of the same column the other way."""

    name: str
    opposite: str
    order: Order
    label: object
    is_by_duration: bool = False

    @property
    def aria(self) -> str:
        return "descending" if self.order.key.startswith("-") else "ascending"

    @property
    def arrow(self) -> str:
        return "↓" if self.order.key.startswith("-") else "↑"

    @property
    def is_newest_first(self) -> bool:
        return not self.name

    def rows(self, calls: CallQuerySet) -> CallQuerySet:
        return calls.with_duration() if self.is_by_duration else calls


NEWEST = CallOrder("", "oldest", Order("-id"), _("Newest first"))
ORDERS = {
    order.name: order
    for order in (
        NEWEST,
        CallOrder("oldest", "", Order("id"), _("Oldest first")),
        CallOrder("slowest", "fastest", DurationOrder("-took"), _("Longest duration first"), True),
        CallOrder("fastest", "slowest", DurationOrder("took"), _("Shortest duration first"), True),
    )
}


def sorts_by_duration(given: Mapping[str, str]) -> bool:
    """Whether the list with these filters can be sorted by duration."""
    return not any(given.get(name) for name in NARROWING)


def orders_for(given: Mapping[str, str]) -> list[CallOrder]:
    by_duration = sorts_by_duration(given)
    return [order for order in ORDERS.values() if by_duration or not order.is_by_duration]


def chosen_order(given: Mapping[str, str]) -> CallOrder:
    order = ORDERS.get(given.get("order", ""), NEWEST)
    return order if sorts_by_duration(given) or not order.is_by_duration else NEWEST
