"""Who did what: the list of entries."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override

from accounts.models import Agent, User
from approvals import services
from approvals.models import Approval
from audit.models import Entry
from audit.report import CastVote
from audit.services import record
from calls.models import Call
from registry.models import Tool
from tests.sealing import seal_all


@pytest.fixture
def as_ines(client: Client, ines: User) -> Client:
    client.force_login(ines)
    return client


@pytest.fixture
def decided(held: UUID, alice: User) -> UUID:
    approval = Approval.objects.get(pk=held)
    digest = Call.objects.get(pk=held).call_digest
    services.vote(approval, by=alice, approve=False, seen_digest=digest, reason="No.")
    return held


def found(client: Client, **filters: str) -> set[str]:
    response = client.get(reverse("audit:list"), filters)
    assert response.status_code == 200
    return {entry.action for entry in response.context["page"].rows}


@pytest.mark.long
def test_filters_find_entries(as_ines: Client, decided: UUID) -> None:
    assert found(as_ines, agent="scout") == {"call.held", "call.denied", "approval.voted"}
    assert found(as_ines, person="alice") >= {"call.denied", "approval.voted"}
    assert found(as_ines, behalf="bob") == {"call.held", "call.denied"}
    assert "call.held" not in found(as_ines, person="bob")
    assert found(as_ines, state="held") == {"call.held"}
    assert "call.held" in found(as_ines, tool="mailer.send_mail")
    assert found(as_ines, agent="nobody") == set()


def test_a_vote_says_which(as_ines: Client, decided: UUID) -> None:
    page = as_ines.get(reverse("audit:list"), {"action": "approval.voted"}).text

    assert "Deny" in page.partition('<td class="wide small outcome">')[2].partition("</td>")[0]


def test_a_row_says_what_its_target_is_or_that_there_is_none(
    as_ines: Client, decided: UUID, ines: User
) -> None:
    digest = (
        Entry.objects.exclude(definition_digest="").filter(call_id=decided)[0].definition_digest
    )
    record("person.signed_in", actor=ines.actor)

    page = as_ines.get(reverse("audit:list")).text

    assert f'definition <span class="mono">{digest[:8]}</span>' in page
    assert '<span class="muted blank">–</span>' in page


@pytest.mark.long
def test_time_is_the_persons_own(as_ines: Client, ines: User, decided: UUID) -> None:
    User.objects.filter(pk=ines.pk).update(time_zone="Asia/Tokyo")
    at = Entry.objects.of_call(decided).get(action="call.held").at
    here = at + timedelta(hours=9)

    def minute(shift: int) -> str:
        return f"{here + timedelta(minutes=shift):%Y-%m-%dT%H:%M}"

    assert "call.held" in found(as_ines, since=minute(-1), until=minute(1))
    assert "call.held" not in found(as_ines, since=minute(2))
    assert "call.held" not in found(as_ines, until=minute(-1))


@pytest.mark.long
def test_a_range_reaches_back_from_now(as_ines: Client, decided: UUID) -> None:
    assert "call.held" in found(as_ines, range="1h")
    assert found(as_ines, since=f"{timezone.now() + timedelta(days=1):%Y-%m-%dT%H:%M}") == set()


@pytest.mark.long
@pytest.mark.parametrize("filters", [{"since": "yesterday"}, {"range": "x"}, {"beyond": "x"}])
def test_a_mistyped_filter_is_no_error(
    as_ines: Client, decided: UUID, filters: dict[str, str]
) -> None:
    assert "call.held" in found(as_ines, **filters)


@pytest.mark.long
def test_an_entry_shows_all_that_was_written_down(as_ines: Client, decided: UUID) -> None:
    entry = Entry.objects.of_call(decided).get(action="call.held")

    seal_all()

    text = as_ines.get(reverse("audit:detail", args=[entry.pk])).text

    assert "Sealed as leaf" in text
    assert entry.arguments_digest in text
    assert entry.definition_digest in text
    assert "All entries of this call" in text
    assert reverse("calls:detail", args=[decided]) in text


def test_a_token_in_the_url_of_an_old_webhook_entry_is_hidden(as_ines: Client, ines: User) -> None:
    url = "https://ana:s3cret@x.example/in?token=s3cret#s3cret"
    old = record("webhook.added", actor=ines.actor, webhook="ledger", url=url)
    made = record("webhook.added", actor=ines.actor, webhook="ledger", url="https://x.example/in")

    page, new = (as_ines.get(reverse("audit:detail", args=[one.pk])).text for one in (old, made))

    assert "s3cret" not in page + as_ines.get(reverse("audit:list")).text
    assert "https://x.example/in" in page
    assert "Hidden here: the user name, password, query and fragment of the URL" in page
    assert "The whole entry as JSON" not in page
    assert "Hidden here" not in new
    assert "The whole entry as JSON" in new


def test_an_entry_that_there_is_not_is_not_found(as_ines: Client) -> None:
    assert as_ines.get(reverse("audit:detail", args=[10**9])).status_code == 404


@pytest.mark.long
@pytest.mark.parametrize("name", ["alice", "olga", "vera", "mallory"])
def test_entries_are_for_auditors(
    client: Client, request: pytest.FixtureRequest, decided: UUID, name: str
) -> None:
    client.force_login(request.getfixturevalue(name))
    entry = Entry.objects.of_call(decided)[0]

    assert client.get(reverse("audit:detail", args=[entry.pk])).status_code == 403


def test_entries_page_by_key(as_ines: Client, scout: Agent, send_mail: Tool) -> None:
    for n in range(60):
        record("note.made", actor=scout.actor, number=n)
    address = reverse("audit:list")

    first = as_ines.get(address).context["page"]
    second = as_ines.get(address, {"beyond": first.next}).context["page"]

    assert len(first.rows) == 50
    assert second.rows[0].pk < first.rows[-1].pk
    assert as_ines.get(address, {"back": second.previous}).context["page"].rows == first.rows


@pytest.mark.parametrize("kind", ["limit", "schedule", "service_account"])
def test_an_entry_names_what_was_changed(as_ines: Client, ines: User, kind: str) -> None:
    record(f"{kind}.saved", actor=ines.actor, **{kind: "the-one"})

    assert "the-one" in as_ines.get(reverse("audit:list")).text


def test_who_decided_alone_is_said_in_the_readers_language() -> None:
    vote = CastVote(1, "ada", approve=True, reason="", is_alone=True)

    with override("zh-hans"):
        assert vote.name == "ada（单人模式）"
