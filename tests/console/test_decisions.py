"""Charts of one person's decisions: for oneself, and for those who may see users."""

from uuid import UUID

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import Agent, User
from approvals import services
from approvals.models import Approval
from benchmarks.pages import QUERIES_MAX
from calls.record.states import State
from registry.models import Tool
from tests.console import scenery

pytestmark = pytest.mark.django_db


@pytest.fixture
def decided(alice: User, scout: Agent, send_mail: Tool) -> None:
    """Two approved and one denied by alice."""
    for number, approve in enumerate((True, True, False)):
        mail = {**scenery.MAIL, "subject": str(number)}
        held = scenery.call(scout, send_mail, mail, State.HELD)
        approval = Approval.objects.get(pk=held)
        digest = approval.call.call_digest
        services.vote(approval, by=alice, approve=approve, seen_digest=digest)


def test_what_was_decided_is_counted_with_the_time_it_took(
    as_alice: Client, alice: User, decided: None, held: UUID
) -> None:
    address = f"/people/{alice.pk}/decisions/"
    with CaptureQueriesContext(connection) as asked:
        response = as_alice.get(address)

    shown = response.context["figures"]
    assert shown.total.by_outcome == {"approved": 2, "denied": 1}
    assert sum(step.counts.calls for step in shown.steps) == 3
    assert shown.durations.p95 >= shown.durations.p50 >= 0
    assert 'data-outcome="denied"' in response.text
    assert "Time from request to vote, p50" in response.text
    assert len(asked) <= QUERIES_MAX
    assert address in as_alice.get("/profile/").text


@pytest.mark.long
def test_others_decisions_are_for_those_who_see_users(
    client: Client, alice: User, ines: User, vera: User, decided: None
) -> None:
    address = f"/people/{alice.pk}/decisions/"
    assert client.get(address).status_code == 302
    client.force_login(vera)
    assert client.get(address).status_code == 403
    assert "No decisions in this time" in client.get(f"/people/{vera.pk}/decisions/").text
    client.force_login(ines)
    assert client.get(address).context["figures"].total.calls == 3
    assert address in client.get(f"/people/{alice.pk}/").text
    assert client.get("/people/999999/decisions/").status_code == 404
    assert client.post(address).status_code == 405
