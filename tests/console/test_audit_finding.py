"""Finding, counting, following and taking away entries: the auditor's tools."""

import csv
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson
import pytest
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import editing, services
from approvals.editing import Edit
from approvals.models import Approval
from audit.filters import Filters
from audit.finding import bounds, ids
from audit.models import Entry, Export, SavedFilter
from audit.services import record
from audit.signing import public_key
from calls.models import Call
from calls.record.states import State
from policies.thresholds import Threshold
from registry.models import Tool
from tests.console import scenery
from tests.database import Databases
from tests.exports import prepare_exports
from tests.mostly_long import mostly_long
from tests.sealing import seal_all


@pytest.fixture
def as_ines(client: Client, ines: User) -> Client:
    client.force_login(ines)
    return client


@pytest.fixture(params=mostly_long(["sealed", "not sealed yet"], "sealed"))
def story(
    request: pytest.FixtureRequest, scout: Agent, send_mail: Tool, held: UUID, alice: User
) -> UUID:
    """scout asked twice: alice said no to one, a rule said no to the other."""
    digest = Call.objects.get(pk=held).call_digest
    approval = Approval.objects.get(pk=held)
    services.vote(approval, by=alice, approve=False, seen_digest=digest, reason="Not today.")
    scenery.call(
        scout,
        send_mail,
        {"to": ["zoë@example.org"], "subject": "x", "body": "=1+1"},
        State.REFUSED,
        effect="deny",
        rule="Nothing leaves",
        reason="Mails stay.",
    )
    if request.param == "sealed":
        seal_all()
    return held


def found(client: Client, **filters: str) -> list[Entry]:
    response = client.get(reverse("audit:list"), filters)
    assert response.status_code == 200
    return list(response.context["page"].rows)


def actions(client: Client, **filters: str) -> set[str]:
    return {entry.action for entry in found(client, **filters)}


@pytest.mark.long
def test_each_filter_finds_its_entries(as_ines: Client, story: UUID, send_mail: Tool) -> None:
    assert send_mail.latest
    digest = send_mail.latest.digest
    for filters, expected in [
        ({"person": "alice"}, {"approval.voted", "call.denied"}),
        ({"agent": "scout"}, {"call.held", "call.denied", "call.refused", "approval.voted"}),
        ({"behalf": "bob"}, {"call.held", "call.denied", "call.refused"}),
        ({"server": "mailer", "state": "held"}, {"call.held"}),
        ({"version": digest, "agent": "scout"}, {"call.held", "call.denied", "call.refused"}),
        ({"version": digest, "person": "olga"}, {"definition.published"}),
        ({"version": digest[:16], "state": "denied"}, {"call.denied"}),
        ({"action": "approval.voted"}, {"approval.voted"}),
        ({"decision": "deny"}, {"call.refused"}),
        ({"decision": "ask"}, {"call.held"}),
        ({"rule": "Nothing leaves"}, {"call.refused"}),
        ({"rule": "Nothing leaves", "agent": "scout", "range": "today"}, {"call.refused"}),
        ({"agent": "scout", "range": "yesterday"}, set()),
        ({"agent": "scou"}, set()),
    ]:
        assert actions(as_ines, **filters) == expected, filters


@pytest.mark.long
def test_text_is_found_in_arguments_and_the_search_is_an_entry(
    as_ines: Client, story: UUID
) -> None:
    assert actions(as_ines, text="ana@EXAMPLE") == {"call.held", "call.denied", "approval.voted"}
    assert actions(as_ines, text="zoë") == {"call.refused"}
    assert actions(as_ines, text="zoë", state="held") == set()

    searches = Entry.objects.filter(action="payload.searched")
    assert searches.count() == 3
    assert searches.latest("pk").details["filters"] == {"text": "zoë", "state": "held"}


def test_text_is_found_in_arguments_that_people_edited(
    as_ines: Client, scout: Agent, send_mail: Tool, alice: User
) -> None:
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD)
    approval = Approval.objects.for_queue().get(pk=held)
    written = orjson.dumps({**scenery.MAIL, "subject": "会议纪要"})
    editing.edit(approval, Edit(approval.call.call_digest, written), by=alice)

    assert "call.amended" in actions(as_ines, text="会议")
    assert {entry.call_id for entry in found(as_ines, text="会议")} == {held}
    assert found(as_ines, text="会议 纪要") == []


def test_text_is_not_for_those_who_may_not_read_payloads(client: Client, story: UUID) -> None:
    ada = scenery.person("ada", Role.ADMINISTRATOR)
    client.force_login(ada)

    assert client.get(reverse("audit:list"), {"text": "ana"}).status_code == 403
    page = client.get(reverse("audit:list"))
    assert 'name="text"' not in page.text
    assert "Export" not in page.text
    assert client.post(reverse("audit:export")).status_code == 403


def test_a_search_goes_on_where_it_stopped(
    as_ines: Client, story: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("audit.finding.LOOK", 1)

    response = as_ines.get(reverse("audit:list"), {"text": "zoë"})
    tries = 0
    while not response.context["page"].rows and tries < 9:
        assert "Search further back" in response.text
        further = response.context["further"]
        response = as_ines.get(reverse("audit:list") + further)
        tries += 1

    assert response.context["page"].rows[0].action == "call.refused"
    assert Entry.objects.filter(action="payload.searched").count() == 1


@pytest.mark.long
def test_pages_follow_each_other_over_sealed_and_unsealed(
    as_ines: Client, scout: Agent, ines: User
) -> None:
    for n in range(70):
        record("note.made", actor=scout.actor, agent=(scout.pk, "scout"), number=n)
    seal_all()
    for n in range(70, 130):
        record("note.made", actor=scout.actor, agent=(scout.pk, "scout"), number=n)
    address, seen, beyond = reverse("audit:list"), [], ""
    for _ in range(3):
        page = as_ines.get(address, {"agent": "scout", "beyond": beyond}).context["page"]
        seen += [entry.details["number"] for entry in page.rows]
        before, beyond = page.previous, page.next

    assert seen == list(range(130))[::-1]
    assert beyond == ""
    back = as_ines.get(address, {"agent": "scout", "back": before}).context["page"]
    assert [entry.details["number"] for entry in back.rows] == list(range(79, 29, -1))


def test_the_oldest_stand_first_where_that_is_asked(as_ines: Client, scout: Agent) -> None:
    for n in range(120):
        record("note.made", actor=scout.actor, agent=(scout.pk, "scout"), number=n)
    address, given = reverse("audit:list"), {"agent": "scout", "order": "oldest"}
    first = as_ines.get(address, given)
    page = first.context["page"]

    assert [entry.details["number"] for entry in page.rows] == list(range(50))
    assert page.previous == ""
    assert 'aria-sort="ascending"><a href="?agent=scout"' in first.text
    assert 'hx-get="/audit/news/' not in first.text
    assert '<input type="hidden" name="order" value="oldest">' in first.text
    later = as_ines.get(address, {**given, "beyond": page.next}).context["page"]
    assert [entry.details["number"] for entry in later.rows] == list(range(50, 100))
    back = as_ines.get(address, {**given, "back": later.previous}).context["page"]
    assert back == page


@pytest.mark.parametrize("other", [{"group": "call"}, {"text": "ana"}, {"live": "1"}])
def test_only_single_entries_are_turned(
    as_ines: Client, story: UUID, other: dict[str, str]
) -> None:
    address = reverse("audit:list")
    turned = as_ines.get(address, {**other, "order": "oldest"}).context["page"]

    assert turned.rows == as_ines.get(address, other).context["page"].rows


@pytest.mark.long
@pytest.mark.parametrize(
    "filters",
    [
        {"since": "0001-01-01T00:00"},
        {"until": "9999-12-31T23:59"},
        {"since": "2026-13-40"},
        {"agent": "x" * 5000},
        {"beyond": "9" * 40},
        {"back": "-1", "agent": "scout"},
        {"version": "%"},
        {"range": "yesterday", "since": "x"},
    ],
)
def test_no_address_is_an_error(as_ines: Client, story: UUID, filters: dict[str, str]) -> None:
    assert as_ines.get(reverse("audit:list"), filters).status_code == 200
    assert as_ines.get(reverse("audit:report"), filters).status_code == 200
    assert as_ines.get(reverse("audit:news"), {**filters, "after": "x"}).status_code == 200
    for after in ("²", "9" * 30, "9" * 4400):
        assert as_ines.get(reverse("audit:news"), {"after": after}).status_code == 200


@pytest.mark.parametrize("page", ["audit:list", "audit:report", "audit:news"])
def test_a_nul_in_an_address_is_a_bad_request(as_ines: Client, page: str) -> None:
    answer = as_ines.get(reverse(page), {"agent": "a\0b"})

    assert answer.status_code == 400
    assert "This request could not be read" in answer.text


def test_every_cell_filters(as_ines: Client, story: UUID) -> None:
    text = as_ines.get(reverse("audit:list"), {"range": "24h"}).text

    for wanted in ("agent=scout", "behalf=bob", "tool=mailer.send_mail", "state=held"):
        assert f"?range=24h&amp;{wanted}" in text
    for wanted in ("decision=deny", "rule=Nothing+leaves", "person=alice", "version="):
        assert f"&amp;{wanted}" in text


@pytest.mark.long
def test_bars_count_and_lead_to_their_entries(as_ines: Client, story: UUID, ines: User) -> None:
    User.objects.filter(pk=ines.pk).update(time_zone="Asia/Kathmandu")
    seal_all()
    total = Entry.objects.count()

    for filters in ({}, {"agent": "scout"}, {"range": "24h"}, {"range": "today", "agent": "scout"}):
        page = as_ines.get(reverse("audit:list"), filters)
        bars = page.context["histogram"].bars
        counted = sum(bar.count for bar in bars)
        assert counted == (4 if "agent" in filters else total)
        assert len(bars) <= 42
        bar = next(bar for bar in bars if bar.count)
        assert len(as_ines.get(reverse("audit:list") + bar.address).context["page"].rows) >= 1
    assert "As a table" in page.text


@pytest.mark.long
def test_new_entries_are_announced_and_followed(as_ines: Client, story: UUID, scout: Agent) -> None:
    newest = found(as_ines, agent="scout")[0].pk
    address, asked = reverse("audit:news"), {"agent": "scout", "after": str(newest)}
    assert as_ines.get(address, asked).text.strip() == ""

    record("note.made", actor=scout.actor, agent=(scout.pk, "scout"))
    record("note.made", actor=scout.actor, agent=(0, "another"))

    assert "1 new entry" in as_ines.get(address, asked).text
    live = as_ines.get(address, {**asked, "live": "1"}).text
    assert live.count("<tr>") == 1
    after = re.search(r"after=(\d+)", live)
    assert after
    assert int(after.group(1)) > newest
    assert 'id="feed"' in as_ines.get(reverse("audit:list"), {"live": "1"}).text


@pytest.mark.long
@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"agent": "scout"},
        {"rule": "x"},
        {"range": "7d"},
        {"group": "call"},
        {"group": "call", "agent": "scout", "state": "held"},
    ],
)
def test_a_page_asks_the_database_at_most_twelve_times(
    as_ines: Client, story: UUID, filters: dict[str, str]
) -> None:
    # The first page of a session also notes its use, as one a minute does.
    as_ines.get(reverse("audit:list"))
    with CaptureQueriesContext(
        connection,
    ) as captured:
        as_ines.get(reverse("audit:list"), filters)

    assert len(captured) <= 12, [query["sql"][:90] for query in captured.captured_queries]


def suggested(client: Client, field: str, typed: str) -> list[tuple[str, str]]:
    response = client.get(reverse("audit:suggest", args=[field]), {field: typed})
    assert response.status_code == 200
    return re.findall(r'<option value="([^"]*)"(?: label="([^"]*)")?>', response.text)


@pytest.mark.long
def test_filters_suggest_the_names_of_the_record(as_ines: Client, story: UUID) -> None:
    assert suggested(as_ines, "agent", "SCO") == [("scout", "")]
    assert suggested(as_ines, "person", "ali") == [("alice", "")]
    assert suggested(as_ines, "behalf", "bo") == [("bob", "")]
    assert suggested(as_ines, "tool", "mail") == [("mailer.send_mail", "")]
    assert suggested(as_ines, "server", "ail") == [("mailer", "")]
    assert suggested(as_ines, "rule", "leaves") == [("Nothing leaves", "")]
    assert suggested(as_ines, "rule", "%") == []
    assert suggested(as_ines, "action", "voted") == [("approval.voted", "Approval voted")]
    assert suggested(as_ines, "state", "") == []
    as_ines.cookies["django_language"] = "zh-hans"
    [(action, label)] = suggested(as_ines, "action", "approval.voted")
    assert (action, label.isascii()) == ("approval.voted", False)
    assert (action, label) in suggested(as_ines, "action", label[:2])


@pytest.mark.long
def test_bars_are_stacked_by_outcome(
    as_ines: Client, story: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    bars = as_ines.get(reverse("audit:list"), {"agent": "scout"}).context["histogram"].bars
    outcomes = {
        str(label): sum(dict(bar.outcomes)[label] for bar in bars) for label, _n in bars[0].outcomes
    }
    assert outcomes == {
        "Succeeded": 0,
        "Errors": 0,
        "Blocked or stopped": 2,
        "Invalid request": 0,
        "Other entries": 2,
    }
    # The minute may have changed between two entries.
    assert {part.name for bar in bars for part in bar.parts} == {"stopped", "other"}
    for bar in bars:
        assert sum(n for _label, n in bar.outcomes) == bar.count

    # Of a large record some entries of each bar tell the outcomes.
    seal_all()
    monkeypatch.setattr("audit.histogram.COUNTED", 0)
    drawn = as_ines.get(reverse("audit:list")).context["histogram"]
    assert drawn.is_sampled
    every = [part for bar in drawn.bars for part in bar.outcomes]
    assert sum(n for _label, n in every) == Entry.objects.count()
    assert sum(n for label, n in every if label == "Blocked or stopped") == 2


def calls(client: Client, **filters: str) -> list[tuple[str, int]]:
    """What each line begins with, and how many steps are folded in it."""
    response = client.get(reverse("audit:list"), {"group": "call", **filters})
    assert response.status_code == 200
    lines = response.context["calls"]
    return [(line.entry.action, len(line.steps)) for line in lines]


@pytest.mark.long
def test_each_line_by_call_begins_with_the_time_that_places_it(
    as_ines: Client, story: UUID, alice: User
) -> None:
    first = Entry.objects.of_call(story).get(seq=1)
    record("payload.viewed", actor=alice.actor, call_id=story)
    looked = Entry.objects.of_call(story).latest("id")

    page = as_ines.get(reverse("audit:list"), {"group": "call"}).text
    summary = page.split("of-call")[1].split("</summary>")[0]
    lines = re.findall(r'class="entry">.*?datetime="([^"]+)"', page, re.S)

    assert "Payload viewed." in summary
    assert re.findall(r'datetime="([^"]+)"', summary) == [
        looked.at.isoformat(),
        first.at.isoformat(),
    ]
    assert len(lines) > 2
    assert lines == sorted(lines, reverse=True)


@pytest.mark.long
def test_entries_are_grouped_by_call(as_ines: Client, story: UUID) -> None:
    assert calls(as_ines, agent="scout") == [("call.refused", 1), ("call.denied", 3)]
    # Whatever fits, all steps of its call are there.
    assert calls(as_ines, state="held") == [("call.held", 3)]
    assert calls(as_ines, text="ana@example") == [("call.denied", 3)]
    every = calls(as_ines)
    assert [line for line in every if line[1]] == [("call.refused", 1), ("call.denied", 3)]
    assert ("definition.published", 0) in every

    page = as_ines.get(reverse("audit:list"), {"group": "call", "agent": "scout"}).text
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert re.search(r"\d\d:\d\d:\d\d scout \(for bob\) Denied mailer.send_mail", plain)
    assert "Denied by alice." in plain
    assert "Blocked by the rule “Nothing leaves”." in plain
    assert page.count("<summary>") >= 2
    # Links keep it, and what is saved has it.
    assert "?group=call" in page or "group=call" in page
    as_ines.post(
        reverse("audit:save_filter"), {"name": "By call", "agent": "scout", "group": "call"}
    )
    assert SavedFilter.objects.get().address == "?agent=scout&group=call"


@pytest.mark.long
def test_a_call_is_on_one_page_alone(
    as_ines: Client, scout: Agent, story: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(5):
        record("note.made", actor=scout.actor, agent=(scout.pk, "scout"), number=n)
        record("payload.viewed", actor=scout.actor, agent=(scout.pk, "scout"), call_id=story)
    flat = len(found(as_ines, agent="scout"))
    assert flat == 14

    for at_once, look in ((2, 400), (50, 3), (1, 2)):
        monkeypatch.setattr("audit.finding.SIZE", at_once)
        monkeypatch.setattr("audit.finding.LOOK_FOR_CALLS", look)
        seen, back = [], []
        address, given = reverse("audit:list"), {"group": "call", "agent": "scout"}
        page = as_ines.get(address, given).context["page"]
        for _ in range(20):
            seen += [entry.pk for entry in page.rows]
            if not page.next:
                break
            page = as_ines.get(address, {**given, "beyond": page.next}).context["page"]
        back = [entry.pk for entry in page.rows]
        while page.previous:
            page = as_ines.get(address, {**given, "back": page.previous}).context["page"]
            back = [*(entry.pk for entry in page.rows), *back]
        assert seen == sorted(set(seen), reverse=True)
        assert back == seen
        assert len(seen) == 7
        calls_seen = Entry.objects.filter(pk__in=seen, call_id=story)
        assert [one.action for one in calls_seen] == ["payload.viewed"]


@pytest.mark.long
def test_filters_are_kept_shared_and_removed(
    as_ines: Client, ines: User, story: UUID, client: Client
) -> None:
    save = reverse("audit:save_filter")
    as_ines.post(save, {"name": "Scout's", "agent": "scout"})
    as_ines.post(save, {"name": "All denied", "state": "denied", "shared": "on"})
    as_ines.post(save, {"name": "All denied", "state": "denied", "range": "7d", "shared": "on"})
    as_ines.post(save, {"name": "", "agent": "x"})
    as_ines.post(save, {"name": "nothing"})

    assert {one.name for one in SavedFilter.objects.all()} == {"Scout's", "All denied"}
    other = Client()
    other.force_login(scenery.person("ada", Role.ADMINISTRATOR))
    page = other.get(reverse("audit:list")).text
    assert "?range=7d&amp;state=denied" in page
    assert "Scout" not in page
    shared, mine = SavedFilter.objects.order_by("name")
    assert other.post(reverse("audit:remove_filter", args=[shared.pk])).status_code == 404
    as_ines.post(reverse("audit:remove_filter", args=[shared.pk]))
    as_ines.post(reverse("audit:remove_filter", args=[mine.pk]))
    assert not SavedFilter.objects.exists()
    kept = Entry.objects.filter(action__startswith="filter.").values_list("action", flat=True)
    assert list(kept) == ["filter.removed", "filter.shared", "filter.shared"]


def export(client: Client, form: str, **filters: str) -> tuple[Export, bytes]:
    begun = client.post(reverse("audit:export"), {"format": form, **filters})
    made = Export.objects.latest("pk")
    assert begun["Location"] == reverse("audit:export_progress", args=[made.pk])
    prepare_exports()
    response: Any = client.get(reverse("audit:export_file", args=[made.pk]))
    content = b"".join(response.streaming_content)
    made.refresh_from_db()
    return made, content


@pytest.mark.long
def test_an_export_has_exactly_what_fits(as_ines: Client, story: UUID) -> None:
    expected = [entry.pk for entry in found(as_ines, agent="scout")][::-1]

    made, content = export(as_ines, "jsonl", agent="scout")
    _, sheet = export(as_ines, "csv", agent="scout")

    assert [json.loads(line)["id"] for line in content.splitlines()] == expected
    rows = list(csv.DictReader(io.StringIO(sheet.decode("utf-8-sig"))))
    assert [int(row["id"]) for row in rows] == expected
    assert (made.rows, made.percent) == (len(expected), 100)
    assert made.digest == hashlib.sha256(content).hexdigest()
    written = Entry.objects.filter(action="audit.export_written").earliest("pk")
    assert written.details["sha256"] == made.digest
    begun = Entry.objects.filter(action="audit.exported").latest("pk")
    assert (begun.actor, begun.details["filters"]) == ("ines", {"agent": "scout"})
    page = as_ines.get(reverse("audit:export_progress", args=[made.pk])).text
    assert made.digest in page


@pytest.mark.long
def test_an_export_of_a_text_and_of_a_range_stays_what_it_was(
    as_ines: Client, story: UUID, scout: Agent
) -> None:
    begun = as_ines.post(reverse("audit:export"), {"format": "jsonl", "range": "1h", "text": "zoë"})
    record("note.made", actor=scout.actor, agent=(scout.pk, "scout"))
    made = Export.objects.latest("pk")
    assert begun.status_code == 302
    assert "since" in made.query
    prepare_exports()

    response: Any = as_ines.get(reverse("audit:export_file", args=[made.pk]))
    lines = b"".join(response.streaming_content).splitlines()

    assert [json.loads(line)["action"] for line in lines] == ["call.refused"]


@pytest.mark.long
def test_an_export_reads_in_chunks(
    as_ines: Client, scout: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    Entry.objects.bulk_create(
        Entry(action="note.made", actor_kind="system", actor="x") for _ in range(2500)
    )
    as_ines.post(reverse("audit:export"), {"format": "jsonl", "now": ""})
    response: Any = as_ines.get(reverse("audit:export_file", args=[Export.objects.latest("pk").pk]))

    sizes, percents = [], []
    for chunk in response.streaming_content:
        sizes.append(chunk.count(b"\n"))
        reached = Export.objects.latest("pk")
        percents.append(reached.percent)
        assert reached.finished_at is None
    assert percents == sorted(percents)
    assert percents[0] == 0
    assert percents[-1] > 50
    assert max(sizes) == 1000
    assert len(sizes) == 3
    assert Export.objects.latest("pk").percent == 100


async def test_under_asgi_it_is_streamed_too(transactional_db: None) -> None:
    from asgiref.sync import sync_to_async

    ines = await sync_to_async(scenery.person)("ines", Role.AUDITOR)
    client = AsyncClient()
    await client.aforce_login(ines)
    await client.post(reverse("audit:export"), {"format": "csv", "now": ""})
    made = await Export.objects.alatest("pk")

    response: Any = await client.get(reverse("audit:export_file", args=[made.pk]))

    assert response.is_async
    content = b"".join([chunk async for chunk in response.streaming_content])
    assert content.startswith(b"\xef\xbb\xbfid,at,")


def test_an_export_is_its_makers_alone(as_ines: Client, story: UUID) -> None:
    made, _ = export(as_ines, "csv")
    other = Client()
    other.force_login(scenery.person("otto", Role.AUDITOR))

    for name in ("export_progress", "export_file"):
        assert other.get(reverse(f"audit:{name}", args=[made.pk])).status_code == 404


@pytest.mark.long
def test_an_export_with_proofs_convinces_an_outsider(
    as_ines: Client, story: UUID, tmp_path: Path
) -> None:
    seal_all()
    _, content = export(as_ines, "proof", agent="scout")
    assert len(content.splitlines()) == 5
    (tmp_path / "verify.py").write_bytes(as_ines.get(reverse("audit:verifier")).content)

    def check(text: bytes) -> tuple[int, str]:
        (tmp_path / "e.jsonl").write_bytes(text)
        argv = [sys.executable, "-I", "verify.py", "e.jsonl", "--key", str(public_key())]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    assert check(content) == (0, "4 entries hold, by 1 checkpoints.\n")
    code, said = check(content.replace(b"Mails stay.", b"Mails may go."))
    assert code == 1
    assert "is not what was signed" in said
    code, said = check(b"\n".join(content.splitlines()[1:]))
    assert code == 1
    assert "no signed checkpoint" in said


@pytest.mark.long
def test_the_report_says_who_ran_what_and_who_allowed_it(
    as_ines: Client, story: UUID, scout: Agent, send_mail: Tool, alice: User
) -> None:
    allowed = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "Other"}, State.HELD)
    digest = Call.objects.get(pk=allowed).call_digest
    approval = Approval.objects.get(pk=allowed)
    services.vote(approval, by=alice, approve=True, seen_digest=digest, reason="It is fine.")

    text = as_ines.get(reverse("audit:report"), {"agent": "scout", "range": "today"}).text
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text))

    assert "3 calls of 1 tool" in plain
    assert "Approved by alice." in plain
    assert "Denied by alice." in plain
    assert "Blocked by the rule “Nothing leaves”." in plain
    assert "It is fine." in plain
    assert "Approved by people1" in plain
    empty = as_ines.get(reverse("audit:report"), {"agent": "scout", "range": "yesterday"})
    assert "No calls" in empty.text
    person = as_ines.get(reverse("audit:report"), {"person": "alice"}).text
    assert "Approval voted" in person


def test_the_report_allows_nothing_that_one_of_two_voted_for(
    as_ines: Client, scout: Agent, send_mail: Tool, alice: User
) -> None:
    two = (Threshold(approve=2),)
    waits = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=two)
    approval = Approval.objects.get(pk=waits)
    services.vote(approval, by=alice, approve=True, seen_digest=approval.call.call_digest)

    report = as_ines.get(reverse("audit:report"), {"agent": "scout"})

    assert "alice voted; that does not decide it." in report.text
    assert report.context["report"].verdicts == [("held", 1)]


@pytest.mark.parametrize("name", ["audit:list", "audit:news", "audit:report", "audit:verifier"])
def test_the_record_is_for_those_who_may_read_it(
    client: Client, vera: User, mallory: User, name: str
) -> None:
    for person in (vera, mallory):
        client.force_login(person)
        assert client.get(reverse(name)).status_code == 403
        assert client.get(reverse("audit:suggest", args=["agent"])).status_code == 403


def looks(call: UUID) -> list[str]:
    found = Entry.objects.filter(call_id=call, action="payload.viewed")
    return list(found.values_list("actor", flat=True).order_by("pk"))


@pytest.mark.long
def test_looking_at_a_payload_is_an_entry_wherever_one_looks(
    client: Client, story: UUID, alice: User, ines: User, vera: User, bob: User
) -> None:
    for person, name in [
        (vera, "calls:detail"),
        (alice, "calls:detail"),
        (alice, "calls:detail"),
        (alice, "calls:arguments"),
        (ines, "calls:payload"),
        (bob, "calls:arguments"),
    ]:
        client.force_login(person)
        assert client.get(reverse(name, args=[story])).status_code == 200
    client.force_login(vera)
    for name in ("calls:payload", "calls:arguments"):
        assert client.get(reverse(name, args=[story])).status_code == 404

    assert looks(story) == ["alice", "ines", "bob"]


@pytest.mark.long
def test_another_look_another_day_is_another_entry(
    client: Client, held: UUID, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(alice)
    client.get(reverse("calls:detail", args=[held]))
    later = timezone.now() + timedelta(hours=1)
    monkeypatch.setattr("calls.content.payloads.timezone.now", lambda: later)
    client.get(reverse("calls:detail", args=[held]))

    assert looks(held) == ["alice", "alice"]


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_a_page_and_an_export_say_when_a_name_was_changed(
    as_ines: Client, scout: Agent, databases: Databases
) -> None:
    record("note.made", actor=scout.actor, agent=(scout.pk, "once"))
    seal_all()
    with databases.superuser(os.environ) as past:
        past.execute("SET session_replication_role = replica")
        past.execute("UPDATE audit_name SET text = 'other' WHERE text = 'once'")

    said = "was changed after it was written"
    entry = Entry.objects.filter(agent="other").get()
    for address in (
        reverse("audit:list"),
        reverse("audit:list") + "?agent=other",
        reverse("audit:detail", args=[entry.pk]),
    ):
        assert said in as_ines.get(address).text
    assert said not in as_ines.get(reverse("audit:list"), {"action": "agent.created"}).text
    made, _content = export(as_ines, "jsonl")
    written = Entry.objects.get(action="audit.export_written", details__export=made.pk)
    assert written.details["changed"] == 1


def test_entries_of_a_name_come_in_order_over_blocks_of_ids(db: None) -> None:
    """Indexes know blocks of 1,024 ids: within one PostgreSQL sorts, and no page may tell."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_entry (action, actor_kind, actor_id, actor, agent_id, agent)"
            " SELECT 'note.made', 'agent', n %% 2, 'agent-' || n %% 2, n %% 2, 'agent-' || n %% 2"
            " FROM generate_series(1, %s) n",
            [2 * 1500],
        )
    filters = Filters.read({"agent": "agent-1"}, ZoneInfo("UTC"))
    within = bounds(None, None)

    newest = ids(filters, within, most=5000)

    assert len(newest) == 1500
    assert newest == sorted(newest, reverse=True)
    assert newest[0] >> 10 != newest[-1] >> 10
    assert ids(filters, within, below=newest[700], most=50) == newest[701:751]
    assert ids(filters, within, above=newest[700], most=50, newest=False) == newest[650:700][::-1]
    within = replace(within, first=newest[1200], last=newest[300])
    assert ids(filters, within, most=5000) == newest[300:1201]
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
    plan = filters.of_rows().in_order()[:50].explain()
    assert "Incremental Sort" in plan
    assert "Index Scan Backward using audit_entry_agent" in plan
