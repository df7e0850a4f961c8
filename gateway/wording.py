"""Sentences for agents about calls that have no outcome yet."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from calls.states import State


def page_of(call_id: UUID) -> str:
    return f"{settings.PUBLIC_URL}/calls/{call_id}/"


def stands(state: State, call_id: UUID, fingerprint: str) -> str:
    page = {"page": page_of(call_id), "fingerprint": fingerprint}
    if state == State.HELD:
        said = _(
            "Not executed: waiting for approval. A person decides at %(page)s "
            "(fingerprint %(fingerprint)s)."
        )
        return said % page
    if state == State.RUNNING:
        return _("Running now; see %(page)s.") % page
    return _("It may run, and waits for a worker; see %(page)s.") % page


def come_back(call_id: UUID) -> str:
    said = _('To get the outcome, call countersign.await_call with {"call_id": "%(id)s"}.')
    return said % {"id": call_id}
