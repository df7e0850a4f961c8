"""Hostile strings on every way through the product: seen as what they are, and harmless."""

import csv
import io
import json
import logging
import re
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.test import Client
from django.urls import reverse

from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from audit.models import Entry, Export
from calls.models import Call
from calls.record.states import State
from core.logs import TextFormatter
from core.text import hidden_count, revealed
from gateway.protocol import replies
from registry.models import Tool
from tests.console import scenery
from tests.hostile.corpus import MEGABYTE, Hostile, corpus, load
from tests.hostile.pages import Page, flat
from tests.publishing import publish_as_read
from tests.sealing import seal_all

ALL = load()
SHORT = [one for one in ALL if one.family != "long"]
LONG = [one for one in ALL if one.family == "long"]
# What a column of text can hold: agents' names of tools with a NUL are refused at the edge.
IN_COLUMNS = [one for one in SHORT if "\0" not in one.text]


@pytest.fixture
def ann(db: None) -> User:
    return scenery.person("ann", Role.OPERATOR, Role.APPROVER, Role.AUDITOR, Role.ADMINISTRATOR)


@pytest.fixture
def scout(db: None) -> Agent:
    return accounts.create_agent("scout", owner=scenery.person("bob", Role.VIEWER), by=None)


@pytest.fixture
def console(client: Client, ann: User) -> Client:
    client.force_login(ann)
    return client


@pytest.fixture
def tool(ann: User) -> Tool:
    """One definition that says all of it."""
    texts = [one.text for one in SHORT]
    properties = {
        one.text: {
            "type": "string",
            "title": one.text,
            "description": one.text,
            "default": one.text,
        }
        for one in SHORT
    }
    content = {
        "name": "say",
        "title": texts[0],
        "description": "\n".join(texts),
        "inputSchema": {"type": "object", "properties": properties},
        "annotations": {"title": texts[-1], "destructiveHint": True},
    }
    server = scenery.server("stranger", ann, content, publish=False)
    publish_as_read(server, by=ann)
    return server.tools.for_catalogue().get()


def page(console: Client, address: str, **asked: str) -> Page:
    response = console.get(address, asked)
    assert response.status_code == 200, address
    shown = Page(response.text)
    assert not shown.wrong, (address, shown.wrong[:5])
    return shown


def unseen(shown: Page, hostile: list[Hostile]) -> list[str]:
    """As it is, or as JSON spells it."""
    return [one.name for one in hostile if not any(form in shown.text for form in _forms(one))]


def _forms(one: Hostile) -> list[str]:
    spelled = json.dumps(one.text, ensure_ascii=False)[1:-1]
    return [flat(revealed(form)).strip() for form in (one.text, spelled)]


def test_they_are_made_by_rule_and_many() -> None:
    assert load() == corpus()
    assert len({one.text for one in ALL}) == len(ALL) >= 300
    assert len({one.family for one in ALL}) >= 10
    assert all(len(one.text) > MEGABYTE - 10 for one in LONG if one.name != "hidden")


def test_what_hides_or_pretends_is_marked() -> None:
    for one in SHORT:
        if one.family in ("bidi", "unseen", "control", "tag", "ansi"):
            assert "⟦" in revealed(one.text), one.name
            assert hidden_count(revealed(one.text)) == 0


def test_in_definitions(console: Client, tool: Tool) -> None:
    text = page(console, reverse("registry:tool", args=[tool.exposed_name]))

    assert unseen(text, SHORT) == []
    page(console, reverse("registry:catalogue"))
    page(console, reverse("registry:server", args=["stranger"]))
    page(console, reverse("registry:catalogue"), q=SHORT[0].text)


@pytest.fixture
def asked(tool: Tool, scout: Agent) -> dict[str, UUID]:
    """A call that waits, one that runs and says how far it is, and one that came back."""
    given = {one.text: one.text for one in SHORT} | {
        "nested": [{"deep": one.text} for one in SHORT]
    }
    held = scenery.call(scout, tool, given, State.HELD, client=_columns()[0])
    running = scenery.call(scout, tool, {"n": 1}, State.QUEUED)
    scenery.run(running)
    Call.objects.filter(pk=running).update(progress=1, progress_message="\n".join(_columns()))
    ended = scenery.call(scout, tool, given | {"n": 2}, State.QUEUED)
    scenery.run(ended)
    scenery.finish(ended, _result(), said="\n".join(_columns()))
    odd = scenery.call(scout, tool, {"n": 3}, State.QUEUED)
    scenery.run(odd)
    error = {"content": [{"type": one.text, "text": one.text} for one in SHORT], "isError": True}
    scenery.finish(odd, error, State.TOOL_ERROR)
    return {"held": held, "running": running, "ended": ended, "odd": odd}


def _columns() -> list[str]:
    return [one.text for one in IN_COLUMNS]


def _result() -> dict[str, Any]:
    texts = [{"type": "text", "text": one.text} for one in SHORT]
    links = [
        {"type": "resource_link", "uri": one.text, "name": one.text, "mimeType": one.text}
        for one in SHORT
    ]
    rows = [{"name": one.name, "text": one.text} for one in SHORT]
    return {"content": [*texts, *links], "structuredContent": {"rows": rows}}


def test_in_arguments_progress_and_results(console: Client, asked: dict[str, UUID]) -> None:
    for name in ("held", "ended"):
        shown = page(console, reverse("calls:detail", args=[asked[name]]))
        assert unseen(shown, SHORT) == []
        assert unseen(page(console, reverse("calls:payload", args=[asked[name]])), SHORT) == []
    assert unseen(page(console, reverse("calls:detail", args=[asked["running"]])), IN_COLUMNS) == []
    page(console, reverse("calls:detail", args=[asked["odd"]]))
    decide = page(console, reverse("approvals:detail", args=[asked["held"]]))
    assert unseen(decide, SHORT) == []
    page(console, reverse("approvals:queue"))
    page(console, reverse("calls:list"))


def test_no_argument_is_too_many_to_be_shown(console: Client, tool: Tool, scout: Agent) -> None:
    many = {f"harmless {n}": n for n in range(400)} | {"to": "mallory@evil.example"}
    held = scenery.call(scout, tool, many, State.HELD)

    for name in ("approvals:detail", "calls:detail"):
        assert "mallory@evil.example" in page(console, reverse(name, args=[held])).text


def test_what_agents_get_is_what_was_written(
    client: Client, asked: dict[str, UUID], scout: Agent
) -> None:
    token = accounts.issue_token(scout, by=None)

    answer = client.get(
        reverse("api:call", args=[asked["ended"]]), headers={"Authorization": f"Bearer {token}"}
    )

    assert answer["Content-Type"].startswith("application/json")
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert json.loads(answer.content)["result"] == _result()
    for one in SHORT:
        said = replies.sentence(one.text, meta={}, modern=True)
        assert b"\n" not in said
        assert json.loads(said)["content"][0]["text"] == one.text


@pytest.fixture
def record(tool: Tool, scout: Agent) -> list[Entry]:
    """An entry for each: as the name of a tool that there is not, as rule and as reason."""
    for one in IN_COLUMNS:
        text = one.text[:200]
        said = {"tool_name": text, "rule": text, "reason": text, "effect": "deny", "server": ""}
        scenery.call(scout, tool, {}, State.REFUSED, **said)
    seal_all()
    return list(Entry.objects.filter(action="call.refused").order_by("id"))


def test_in_the_record_and_its_pages(console: Client, record: list[Entry]) -> None:
    for name in ("audit:list", "calls:list"):
        seen, beyond = "", ""
        for _ in range(len(IN_COLUMNS) // 50 + 1):
            response = console.get(reverse(name), {"agent": "scout", "beyond": beyond})
            shown = Page(response.text)
            assert not shown.wrong, (name, shown.wrong[:5])
            seen, beyond = seen + shown.text, response.context["page"].next
        assert [o.name for o in IN_COLUMNS if flat(revealed(o.text[:100])) not in seen] == []
    page(console, reverse("audit:report"), agent="scout")
    for entry in record[::25]:
        shown = page(console, reverse("audit:detail", args=[entry.pk]))
        assert flat(revealed(entry.tool)).strip() in shown.text
        found = console.get(reverse("audit:list"), {"tool": entry.tool, "rule": entry.tool})
        assert not Page(found.text).wrong
        if entry.tool == entry.tool.strip():
            assert [one.pk for one in found.context["page"].rows] == [entry.pk]


def exported(console: Client, form: str) -> bytes:
    console.post(reverse("audit:export"), {"format": form, "agent": "scout", "now": ""})
    file: Any = console.get(reverse("audit:export_file", args=[Export.objects.latest("pk").pk]))
    return b"".join(file.streaming_content)


def test_in_exports(console: Client, record: list[Entry]) -> None:
    sheet, lines = exported(console, "csv"), exported(console, "jsonl")
    proved = exported(console, "proof")

    rows = [
        r
        for r in csv.DictReader(io.StringIO(sheet.decode("utf-8-sig")))
        if r["action"] == "call.refused"
    ]
    assert len(rows) == len(record)
    for row, entry in zip(rows, record, strict=True):
        for cell in row.values():
            assert not cell.lstrip(" ").startswith(tuple("=+-@＝＋－＠\t\r")), cell
            assert hidden_count(cell) == 0
        assert revealed(entry.tool) in row["tool"]
    kept = [json.loads(line) for line in lines.splitlines()]
    assert [one["tool"] for one in kept if one["action"] == "call.refused"] == [
        e.tool for e in record
    ]
    for written in (lines, proved):
        assert hidden_count(written.decode("ascii").replace("\x7f", "")) == 0
        assert len(written.splitlines()) >= len(record)


def test_in_logs() -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(TextFormatter())
    log = logging.Logger("hostile")
    log.addHandler(handler)
    for one in ALL:
        log.info("the server said: %s", one.text)
    for one in SHORT:
        try:
            raise ValueError(one.text)
        except ValueError:
            log.exception("it failed")

    lines = out.getvalue().split("\n")
    records = [line for line in lines if not line.startswith("    | ")]
    assert len(records) == len(ALL) + len(SHORT) + 1
    begins = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z (INFO|ERROR) hostile \[-\] ")
    assert all(map(begins.match, records[:-1]))
    assert hidden_count("".join(lines)) == 0
    assert max(map(len, lines)) < 100_000


@pytest.mark.parametrize("one", LONG, ids=[one.name for one in LONG])
def test_a_megabyte_is_folded_and_counted(
    console: Client, tool: Tool, scout: Agent, one: Hostile
) -> None:
    call = scenery.call(scout, tool, {"text": one.text}, State.HELD)

    shown = page(console, reverse("approvals:detail", args=[call]))
    assert f"{len(one.text)} characters" in shown.text
    page(console, reverse("calls:detail", args=[call]))
    sent = console.get(reverse("calls:arguments", args=[call]))
    assert orjson.loads(sent.content) == {"text": one.text}
    assert sent["Content-Security-Policy"] == "default-src 'none'; sandbox"
