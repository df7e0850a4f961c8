"""Pages by key instead of number: as quick at the ten thousandth row as at the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db import models

Row = TypeVar("Row", bound=models.Model)

SIZE = 50


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """Rows in the order of the list; `next` and `previous` are keys, empty at the ends."""

    rows: list[Row]
    next: str = ""
    previous: str = ""


def paged(
    rows: models.QuerySet[Row], key: str, given: Mapping[str, str], *, size: int = SIZE
) -> Page[Row]:
    """`key` is the unique field of the list's order, with a minus when it goes down."""
    field = key.removeprefix("-")
    beyond, back = given.get("beyond", ""), given.get("back", "")
    try:
        if back:
            return _before(rows, field, key, back, size)
        return _after(rows, field, key, beyond, size)
    except (ValueError, ValidationError):
        # A mistyped key is no reason to show nothing.
        return _after(rows, field, key, "", size)


def _after(rows: models.QuerySet[Row], field: str, key: str, beyond: str, size: int) -> Page[Row]:
    if beyond:
        rows = rows.filter(**{f"{field}__{_past(key)}": beyond})
    found = list(rows.order_by(key)[: size + 1])
    shown = found[:size]
    return Page(
        shown,
        next=_key(shown[-1], field) if len(found) > size else "",
        previous=_key(shown[0], field) if beyond and shown else "",
    )


def _before(rows: models.QuerySet[Row], field: str, key: str, back: str, size: int) -> Page[Row]:
    other = field if key.startswith("-") else f"-{field}"
    rows = rows.filter(**{f"{field}__{_past(other)}": back})
    found = list(rows.order_by(other)[: size + 1])
    shown = found[:size][::-1]
    return Page(
        shown,
        next=_key(shown[-1], field) if shown else "",
        previous=_key(shown[0], field) if len(found) > size else "",
    )


def _past(key: str) -> str:
    return "lt" if key.startswith("-") else "gt"


def _key(row: Any, field: str) -> str:
    return str(getattr(row, field))
