"""Pages by key instead of number: as quick at the ten thousandth row as at the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q

Row = TypeVar("Row", bound=models.Model)

SIZE = 50
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows in the order of the list; `next` and `previous` are keys, empty at the ends."""

    rows: list[Row]
    next: str = ""
    previous: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """A list's order: `key` is its unique field, with a minus when it goes down."""

    key: str

    @property
    def field(self) -> str:
        return self.key.removeprefix("-")

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.key,)

    @property
    def past(self) -> str:
        return "lt" if self.key.startswith("-") else "gt"

    def reverse(self) -> Order:
        return type(self)(self.field if self.key.startswith("-") else f"-{self.key}")

    def beyond(self, key: str) -> Q:
        """Rows that come after the one with this key. Raises ValueError and ValidationError."""
        return Q(**{f"{self.field}__{self.past}": key})

    def key_of(self, row: Any) -> str:
        return str(getattr(row, self.field))


class DurationOrder(Order):
    """By a duration, which is not unique, and then by id in the same direction."""

    __slots__ = ()

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.key, "-id" if self.key.startswith("-") else "id")

    def beyond(self, key: str) -> Q:
        microseconds, _dot, row_id = key.partition(".")
        try:
            given = timedelta(microseconds=int(microseconds))
        except OverflowError as error:
            raise ValueError(str(error)) from error
        equal = Q(**{self.field: given, f"id__{self.past}": row_id})
        # The first condition is the one that an index is entered by.
        at_least = Q(**{f"{self.field}__{self.past}e": given})
        return at_least & (Q(**{f"{self.field}__{self.past}": given}) | equal)

    def key_of(self, row: Any) -> str:
        return f"{getattr(row, self.field) // MICROSECOND}.{row.pk}"


def paged(
    rows: models.QuerySet[Row], order: str | Order, given: Mapping[str, str], *, size: int = SIZE
) -> Page[Row]:
    """`order`: the unique field of the list's order, with a minus when it goes down."""
    by = Order(order) if isinstance(order, str) else order
    beyond, back = given.get("beyond", ""), given.get("back", "")
    try:
        if back:
            return _before(rows, by, back, size)
        return _after(rows, by, beyond, size)
    except (ValueError, ValidationError):
        # A mistyped key is no reason to show nothing.
        return _after(rows, by, "", size)


def _after(rows: models.QuerySet[Row], order: Order, beyond: str, size: int) -> Page[Row]:
    if beyond:
        rows = rows.filter(order.beyond(beyond))
    found = list(rows.order_by(*order.fields)[: size + 1])
    shown = found[:size]
    return Page(
        shown,
        next=order.key_of(shown[-1]) if len(found) > size else "",
        previous=order.key_of(shown[0]) if beyond and shown else "",
    )


def _before(rows: models.QuerySet[Row], order: Order, back: str, size: int) -> Page[Row]:
    other = order.reverse()
    found = list(rows.filter(other.beyond(back)).order_by(*other.fields)[: size + 1])
    shown = found[:size][::-1]
    return Page(
        shown,
        next=order.key_of(shown[-1]) if shown else "",
        previous=order.key_of(shown[0]) if len(found) > size else "",
    )
