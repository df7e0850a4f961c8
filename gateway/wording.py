"""Sentences for agents about calls that have no outcome yet."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext as _

from calls.states import State
from gateway.lookups import Found
from registry.models import OwnTool
from registry.published import PublishedToolset

UNSURE = (
    "Whether the call was recorded is not known. It is taken back as soon as possible, and until "
    "then it may have been executed: look before you ask again."
)
MAY_WAIT = (
    "Whether the call was recorded is not known. If it was, it waits for a person's decision and "
    "has not been sent; asking for the same again joins it."
)


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


def of(found: Found, toolset: PublishedToolset) -> str:
    """How a call stands, and what people want to hear of its agent, if it can answer here."""
    said = stands(found.seen.state, found.call_id, found.fingerprint)
    if not found.questions or OwnTool.JUSTIFY not in toolset.own_tools:
        return said
    asked = _(
        'A person asks: “%(asked)s” Answer by countersign.justify with {"call_id": "%(id)s"}.'
    )
    return f"{said} {asked % {'asked': ' · '.join(found.questions), 'id': found.call_id}}"


def come_back(call_id: UUID) -> str:
    said = _('To get the outcome, call countersign.await_call with {"call_id": "%(id)s"}.')
    return said % {"id": call_id}
