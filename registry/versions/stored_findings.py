"""Findings that were stored under older rules, made anew by those of this release.

Until then every page makes them anew each time that it shows them. What is stored is what these
pages show, so a press on a page that was open meanwhile still counts.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import Q

from audit.services import SYSTEM, record
from inspection.definitions import VERSION, Scan
from registry.models import Definition, ItemVersion

# Of one transaction, and of one run: the process that does this also runs calls.
AT_ONCE, MOST = 50, 1000
RENEWED = "findings.renewed"


def renew(most: int = MOST) -> int:
    """Returns the number of definitions. What is left is for the next run."""
    count = 0
    while count < most and (renewed := _renew_batch(Definition) or _renew_batch(ItemVersion)):
        count += renewed
    return count


@transaction.atomic
def _renew_batch(model: Any) -> int:
    rows = _outdated(model)
    red = []
    for row in rows:
        was_red = Scan.was_red(row.scan)
        row.scan = row.findings.kept()
        if row.findings.is_red and not was_red and _is_published(row):
            red.append(_name(row))
    if rows:
        model.objects.bulk_update(rows, ["scan"])
        # Agents have these already: nobody is asked again, so the record says it.
        record(RENEWED, actor=SYSTEM, count=len(rows), newly_red=red)
    return len(rows)


def _outdated(model: Any) -> list[Definition | ItemVersion]:
    """Those of a later release stay: two releases may run beside each other."""
    of = "tool" if model is Definition else "item"
    rows = model.objects.select_related(f"{of}__server").order_by("pk")
    return list(rows.filter(Q(scan__isnull=True) | Q(scan__version__lt=VERSION))[:AT_ONCE])


def _is_published(row: Definition | ItemVersion) -> bool:
    of = row.tool if isinstance(row, Definition) else row.item
    return of.published_id == row.pk


def _name(row: Definition | ItemVersion) -> str:
    if isinstance(row, Definition):
        return row.tool.exposed_name
    return f"{row.item.server.slug} {row.item.kind} {row.item.key[:200]}"
