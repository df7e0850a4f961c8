"""Views of the queue that people keep for themselves: for others they change nothing, so that
no entry is written."""

from __future__ import annotations

from django.db import transaction

from accounts.models import User
from approvals.models import QueueView
from approvals.queue_list import QueueFilters
from core.english import gettext as _
from core.errors import CountersignError

MOST = 20


class ViewRefused(CountersignError):
    """The view was not saved; says why."""


@transaction.atomic
def save(name: str, filters: QueueFilters, *, by: User) -> None:
    """Under a name that they have, it is replaced. Raises ViewRefused."""
    name = name.strip()[:60]
    if not name:
        raise ViewRefused(_("Give the view a name."))
    if not filters.is_any:
        raise ViewRefused(_("Choose a filter, an order or a grouping first."))
    # Held until the transaction ends, so that no two requests count the same.
    User.objects.select_for_update().get(pk=by.pk)
    if by.queue_views.exclude(name=name).count() >= MOST:
        raise ViewRefused(_("You have %d views already: remove one first.") % MOST)
    QueueView.objects.update_or_create(owner=by, name=name, defaults={"query": filters.query})


def remove(view: QueueView) -> None:
    view.delete()
