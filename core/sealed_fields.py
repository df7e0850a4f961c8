"""Columns that hold sealed values, so that a new secret of the installation can seal them anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django.db import models

from core import seal
from core.seal import Unsealable


@dataclass(frozen=True)
class SealedField:
    """`name` is the column, `place` what its value of a row is bound to."""

    model: type[models.Model]
    name: str
    purpose: str
    place: Callable[[Any], str]

    def rows(self) -> models.QuerySet[models.Model]:
        return self.model._default_manager.exclude(**{self.name: None}).exclude(**{self.name: b""})

    def reseal(self) -> Iterable[str]:
        """Seals every value under the present secret; returns the places of those that no secret
        opens, which stay as they are. In the caller's transaction."""
        rows = self.rows().select_for_update().order_by("pk")
        # Some are as large as results: few at a time.
        few = rows.iterator(chunk_size=20)
        return [self.place(row) for row in few if not self._reseal(row)]

    def _reseal(self, row: models.Model) -> bool:
        place = self.place(row)
        try:
            value = seal.unseal(self.purpose, bytes(getattr(row, self.name)), place=place)
        except Unsealable:
            return False
        sealed = seal.seal(self.purpose, value, place=place)
        return bool(self.model._default_manager.filter(pk=row.pk).update(**{self.name: sealed}))
