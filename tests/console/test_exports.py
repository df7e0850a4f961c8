"""Exports that workers prepare: the same bytes as written directly, resumable from any byte, and
ended where they cannot be made again."""

import hashlib
import json
import os
import subprocess
import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.roles import Role
from audit import export_file, export_jobs, exporting
from audit.finding import every
from audit.models import Entry, Export, ExportPart
from audit.signing import public_key
from calls.content.payloads import containing
from tests.audit.test_forgetting import forget
from tests.console import scenery
from tests.exports import prepare_exports, prepare_parts
from tests.sealing import seal_all


@pytest.fixture
def as_ines(db: None, client: Client) -> Client:
    client.force_login(scenery.person("ines", Role.AUDITOR))
    return client


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_file, "PART_BYTES", 500)
    monkeypatch.setattr(exporting, "every", partial(every, size=3))


@pytest.fixture
def notes(db: None) -> list[int]:
    """Twenty entries, none like the other, of which one in four is by eve."""
    made = [
        Entry.objects.create(
            action="note.made",
            actor_kind="person",
            actor_id=n % 4 + 1,
            actor="eve" if n % 4 else "bob",
            reason=f"Note {n}, naïve.",
            details={"n": n, "text": "words"},
        )
        for n in range(20)
    ]
    return [entry.pk for entry in made]


def request(client: Client, form: str = "jsonl", **filters: str) -> Export:
    response = client.post(reverse("audit:export"), {"format": form, **filters})
    made = Export.objects.latest("pk")
    assert response["Location"] == reverse("audit:export_progress", args=[made.pk])
    return made


def prepare(client: Client, form: str = "jsonl", **filters: str) -> Export:
    made = request(client, form, **filters)
    prepare_exports()
    made.refresh_from_db()
    return made


def fetch(client: Client, export: Export, **headers: str) -> Any:
    return client.get(reverse("audit:export_file", args=[export.pk]), headers=headers)


def content_of(response: Any) -> bytes:
    return b"".join(response.streaming_content)


def written_directly(client: Client, export: Export) -> bytes:
    """The same set, written while it is read."""
    Export.objects.filter(pk=export.pk).update(state=Export.State.DIRECT)
    content = content_of(fetch(client, export))
    Export.objects.filter(pk=export.pk).update(state=Export.State.READY)
    return content


def ends(export: Export) -> list[tuple[str, str]]:
    entries = Entry.objects.filter(action="audit.export_ended", details__export=export.pk)
    return [(entry.actor, entry.details["state"]) for entry in entries]


@pytest.mark.long
@pytest.mark.parametrize("form", Export.Format.values)
@pytest.mark.parametrize("filters", [{}, {"person": "eve"}, {"person": "nobody"}])
def test_it_has_the_bytes_that_are_written_directly(
    as_ines: Client,
    notes: list[int],
    small_parts: None,
    form: str,
    filters: dict[str, str],
    tmp_path: Path,
) -> None:
    seal_all()
    export = prepare(as_ines, form, **filters)
    response = fetch(as_ines, export)
    content = content_of(response)

    assert response["Content-Length"] == str(len(content)) == str(export.bytes)
    assert response["ETag"] == f'"{hashlib.sha256(content).hexdigest()}"'
    assert content == written_directly(as_ines, export)
    written = Entry.objects.filter(action="audit.export_written").earliest("pk")
    assert (written.actor, written.details["sha256"]) == ("countersign", export.digest)
    assert export.parts.count() > 3 or "person" in filters
    if form == "proof" and not filters:
        file = tmp_path / "file"
        file.write_bytes(content)
        argv = [sys.executable, "-I", "audit/verify.py", str(file), "--key", str(public_key())]
        checked = subprocess.run(argv, capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.long
def test_each_range_has_its_bytes(as_ines: Client, notes: list[int], small_parts: None) -> None:
    export = prepare(as_ines, "csv", person="eve")
    content = content_of(fetch(as_ines, export))
    size = len(content)
    for first in range(0, size, 311):
        for asked, expected in [
            (f"bytes={first}-", content[first:]),
            (f"bytes={first}-{first + 400}", content[first : first + 401]),
            (f"bytes=-{first + 1}", content[-first - 1 :]),
        ]:
            response = fetch(as_ines, export, range=asked)
            assert content_of(response) == expected, asked
            assert response.status_code == (200 if len(expected) == size else 206)
            start = size - len(expected) if "=-" in asked else first
            said = f"bytes {start}-{start + len(expected) - 1}/{size}"
            assert response.get("Content-Range", said) == said


@pytest.mark.long
@pytest.mark.usefixtures("notes")
def test_ranges_that_are_none_get_all_or_416(as_ines: Client) -> None:
    export = prepare(as_ines)
    content = content_of(fetch(as_ines, export))
    size = len(content)

    for asked in ("bytes=9-3", "lines=1-2", "bytes=0-1,3-4", "bytes=-", "bytes=x-", ""):
        response = fetch(as_ines, export, range=asked)
        assert (response.status_code, content_of(response)) == (200, content)
    for asked in (f"bytes={size}-", "bytes=-0"):
        response = fetch(as_ines, export, range=asked)
        assert (response.status_code, response["Content-Range"]) == (416, f"bytes */{size}")
    for tag, status in [
        (f'"{export.digest}"', 206),
        ('"other"', 200),
        (f'W/"{export.digest}"', 200),
    ]:
        response = fetch(as_ines, export, range="bytes=5-", **{"if-range": tag})
        assert response.status_code == status
    head: Any = as_ines.head(reverse("audit:export_file", args=[export.pk]))
    assert (head["Content-Length"], head["Accept-Ranges"]) == (str(size), "bytes")


@pytest.mark.long
def test_each_download_is_an_entry_before_its_first_byte(as_ines: Client, notes: list[int]) -> None:
    export = prepare(as_ines)
    as_ines.head(reverse("audit:export_file", args=[export.pk]))
    fetch(as_ines, export)
    fetch(as_ines, export, range="bytes=100-")

    last = export.bytes - 1
    downloads = Entry.objects.filter(action="audit.export_downloaded").order_by("pk")
    assert [(one.actor, one.details["first"], one.details["last"]) for one in downloads] == [
        ("ines", 0, last),
        ("ines", 100, last),
    ]


@pytest.mark.long
@pytest.mark.usefixtures("notes", "small_parts")
def test_another_worker_goes_on_after_the_last_part(as_ines: Client) -> None:
    export = request(as_ines)
    prepare_parts(3)
    before = list(export.parts.values_list("number", "offset", "digest"))
    export.refresh_from_db()
    assert (export.state, len(before)) == ("waiting", 3)
    assert 0 < export.percent < 100

    prepare_exports()

    export.refresh_from_db()
    assert list(export.parts.values_list("number", "offset", "digest"))[:3] == before
    content = content_of(fetch(as_ines, export))
    assert export.digest == hashlib.sha256(content).hexdigest()
    assert content == written_directly(as_ines, export)
    assert export.rows == len(content.splitlines())


@pytest.mark.long
@pytest.mark.usefixtures("notes", "small_parts")
def test_a_worker_that_lost_its_lease_keeps_nothing(as_ines: Client) -> None:
    export = request(as_ines)
    slow = export_jobs.take()
    assert slow
    assert export_jobs.take() is None
    Export.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    prepare_exports()
    parts = list(export.parts.values_list("pk", "digest"))

    export_jobs.prepare(slow, containing, lambda: False)

    assert list(export.parts.values_list("pk", "digest")) == parts
    assert Entry.objects.filter(action="audit.export_written").count() == 1


@pytest.mark.long
@pytest.mark.usefixtures("notes", "small_parts")
def test_cancelling_ends_the_work(as_ines: Client) -> None:
    export = request(as_ines)
    taken = export_jobs.take()
    assert taken
    end = reverse("audit:end_export", args=[export.pk])
    assert as_ines.post(end)["Location"] == reverse("audit:export")

    export_jobs.prepare(taken, containing, lambda: False)

    export.refresh_from_db()
    assert (export.state, export.parts.count()) == ("cancelled", 0)
    assert ends(export) == [("ines", "cancelled")]
    assert fetch(as_ines, export).status_code == 410
    assert "had ended before" in as_ines.post(end, follow=True).text
    assert ends(export) == [("ines", "cancelled")]


@pytest.mark.long
@pytest.mark.usefixtures("notes")
def test_deleting_ends_a_download(as_ines: Client, small_parts: None) -> None:
    export = prepare(as_ines)
    for page in ("audit:export", "audit:export_progress"):
        asked = as_ines.get(reverse(page, args=[export.pk] if page != "audit:export" else []))
        assert "The file can no longer be downloaded." in asked.text
    stream = fetch(as_ines, export).streaming_content
    next(stream)
    as_ines.post(reverse("audit:end_export", args=[export.pk]))

    with pytest.raises(export_file.ContentChanged):
        b"".join(stream)
    assert ends(export) == [("ines", "deleted")]


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_what_was_forgotten_ends_it(as_ines: Client, notes: list[int], small_parts: None) -> None:
    export = prepare(as_ines)
    stream = fetch(as_ines, export).streaming_content
    next(stream)
    forget("--entry", str(notes[15]), "--yes")

    with pytest.raises(export_file.ContentChanged):
        b"".join(stream)
    export.refresh_from_db()
    assert (export.state, export.parts.count()) == ("changed", 0)
    assert ends(export) == [("countersign", "changed")]
    response = fetch(as_ines, export, range="bytes=2000-")
    assert response.status_code == 410
    assert "were forgotten, erased or archived" in response.text
    again = prepare(as_ines)
    assert b"(forgotten)" in content_of(fetch(as_ines, again))


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_an_entry_that_comes_late_is_in_no_part(as_ines: Client, notes: list[int]) -> None:
    """Its id was given out before the request, and its transaction ended after it."""
    insert = (
        "INSERT INTO audit_entry (action, actor_kind, actor) VALUES ('note.made', 'system', 'x')"
    )
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": None}) as other:
        other.execute(insert)
        Entry.objects.create(action="note.made", actor_kind="system", actor="x")
        export = prepare(as_ines)
        before = content_of(fetch(as_ines, export))
        other.commit()

    assert content_of(fetch(as_ines, export)) == before == written_directly(as_ines, export)


@pytest.mark.long
def test_a_text_is_searched_as_directly(as_ines: Client, held: UUID) -> None:
    export = prepare(as_ines, text="ana@EXAMPLE")

    lines = content_of(fetch(as_ines, export)).splitlines()

    assert [json.loads(line)["call_id"] for line in lines] == [str(held)]
    Group.objects.get(name=Role.AUDITOR).permissions.filter(codename="view_payload").delete()
    assert fetch(as_ines, export).status_code == 403


@pytest.mark.long
@pytest.mark.usefixtures("notes", "small_parts")
def test_quotas_of_a_user(as_ines: Client, settings: Any) -> None:
    settings.EXPORTS_PER_USER = 2
    first = prepare(as_ines)
    request(as_ines)

    refused = as_ines.post(reverse("audit:export"), {"format": "csv"}, follow=True)

    assert "You have 2 exports, as many as one user may have." in refused.text
    assert Export.objects.count() == 2
    otto = Client()
    otto.force_login(scenery.person("otto", Role.AUDITOR))
    prepare(otto)
    settings.EXPORT_BYTES = first.bytes * 2 + 2000
    as_ines.post(reverse("audit:end_export", args=[first.pk]))
    prepare(as_ines)
    Export.objects.update(state="ready")
    settings.EXPORTS_PER_USER = 10
    failed = prepare(as_ines)
    assert (failed.state, failed.fault, failed.parts.count()) == ("failed", "too_large", 0)
    assert "larger than the exports of one user" in as_ines.get(reverse("audit:export")).text
    assert ends(failed) == [("countersign", "failed")]


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("code", "fault", "said"),
    [
        ("disk_full", "no_space", "no space left"),
        ("raise_exception", "broken", "The log of the worker has it."),
    ],
)
def test_an_error_is_said(
    as_ines: Client,
    notes: list[int],
    code: str,
    fault: str,
    said: str,
) -> None:
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as owner:
        owner.execute(FULL.format(code))
    try:
        export = prepare(as_ines)
    finally:
        with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as owner:
            owner.execute("DROP FUNCTION full_disk CASCADE")

    assert (export.state, export.fault) == ("failed", fault)
    page = as_ines.get(reverse("audit:export_progress", args=[export.pk])).text
    assert said in page
    assert fetch(as_ines, export).status_code == 410


FULL = """
    CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION USING ERRCODE = '{}', MESSAGE = 'no space left on device'; END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON audit_exportpart
        FOR EACH ROW EXECUTE FUNCTION full_disk();
"""


@pytest.mark.long
@pytest.mark.usefixtures("notes")
def test_old_ones_go(as_ines: Client) -> None:
    expired, old, fresh = prepare(as_ines), prepare(as_ines), prepare(as_ines)
    now = timezone.now()
    Export.objects.filter(pk=expired.pk).update(expires_at=now)
    Export.objects.filter(pk=old.pk).update(state="cancelled", at=now - timedelta(days=91))

    # Also before it is cleaned up.
    assert fetch(as_ines, expired).status_code == 410
    assert "Expired" in as_ines.get(reverse("audit:export_progress", args=[expired.pk])).text
    export_jobs.remove_old()

    states = dict(Export.objects.values_list("pk", "state"))
    assert states == {expired.pk: "expired", fresh.pk: "ready"}
    assert set(ExportPart.objects.values_list("export_id", flat=True)) == {fresh.pk}


@pytest.mark.long
@pytest.mark.usefixtures("notes")
def test_an_export_that_kills_workers_is_given_up(as_ines: Client) -> None:
    export = request(as_ines)
    Export.objects.update(claim=export_jobs.CLAIMS)

    prepare_exports()

    export.refresh_from_db()
    assert (export.state, export.fault) == ("failed", "broken")


@pytest.mark.long
@pytest.mark.usefixtures("notes")
def test_it_is_its_makers_alone(as_ines: Client) -> None:
    export = prepare(as_ines)
    otto = Client()
    otto.force_login(scenery.person("otto", Role.AUDITOR))
    mallory = Client()
    mallory.force_login(scenery.person("mallory"))

    assert fetch(otto, export).status_code == 404
    assert otto.post(reverse("audit:end_export", args=[export.pk])).status_code == 404
    assert "No exports yet" in otto.get(reverse("audit:export")).text
    assert mallory.get(reverse("audit:export")).status_code == 403
    assert mallory.post(reverse("audit:end_export", args=[export.pk])).status_code == 403
    export.refresh_from_db()
    assert export.state == "ready"


@pytest.mark.long
@pytest.mark.usefixtures("notes", "small_parts")
def test_the_pages_follow_what_is_unfinished(as_ines: Client) -> None:
    export = request(as_ines, person="eve")
    one, every = reverse("audit:export_progress", args=[export.pk]), reverse("audit:export")
    prepare_parts(2)

    for address in (one, every):
        page = as_ines.get(address, headers={"hx-request": "true"}).text
        assert "every 2s" in page
        assert "Cancel" in page
        assert "<progress" in page
        assert "<html" not in page
    assert fetch(as_ines, export).status_code == 409

    prepare_exports()
    for address in (one, every):
        page = as_ines.get(address, headers={"hx-request": "true"}).text
        assert "every 2s" not in page
        assert "Download" in page
        assert "Expires" in page


def test_filters_of_time_are_said_as_people_read_them(as_ines: Client, notes: list[int]) -> None:
    request(as_ines, since="2026-02-03T04:05", agent="scout")

    for language, shown in (
        ("en", "3 Feb 2026, 04:05:00 UTC"),
        ("zh-hans", "2026年2月3日 04:05:00 UTC"),
    ):
        as_ines.cookies["django_language"] = language
        page = as_ines.get(reverse("audit:export")).text
        assert shown in page
        assert "2026-02-03T04" not in page


def test_choices_are_said_in_words(as_ines: Client, notes: list[int]) -> None:
    request(as_ines, state="refused", decision="deny")

    for language, shown in (("en", "Blocked by policy"), ("zh-hans", "被策略拦截")):
        as_ines.cookies["django_language"] = language
        page = as_ines.get(reverse("audit:export")).text
        assert page.count(shown) == 2
        assert " refused<" not in page
        assert " deny<" not in page
