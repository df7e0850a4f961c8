"""The list of calls and a call's page."""

import base64
import json
import re
import shlex
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from audit.models import Entry
from audit.services import SYSTEM
from calls.content.markdown import PARSER, markdown
from calls.models import Call
from calls.record.states import State
from calls.record.transitions import Move, move_now
from calls.running.progress import MESSAGE_MAX, storable
from calls.views.related import as_curl
from core.ids import uuid7
from registry.models import Tool
from registry.views.json_trees import MAX_NODES, tree
from tests.browser.scene import png
from tests.console import scenery

SECRET = "the minutes are attached"


def ended(scout: Agent, tool: Tool, result: object, state: State = State.SUCCEEDED) -> UUID:
    call_id = scenery.call(scout, tool, scenery.MAIL, State.QUEUED)
    scenery.run(call_id)
    scenery.finish(call_id, result, state)
    return call_id


def page(client: Client, call_id: UUID) -> str:
    return client.get(reverse("calls:detail", args=[call_id])).text


def test_the_page_tells_the_story_in_order(as_alice: Client, scout: Agent, send_mail: Tool) -> None:
    call_id = ended(scout, send_mail, {"content": [{"type": "text", "text": "Sent."}]})

    text = page(as_alice, call_id)

    story = ["asked, for bob", "Policy allowed it", "Sent to its server", "<strong>Succeeded"]
    places = [text.index(step) for step in story]
    assert places == sorted(places)
    assert "Sent." in text


def test_each_step_shows_its_exact_time_in_the_readers_zone(
    as_alice: Client, alice: User, held: UUID
) -> None:
    User.objects.filter(pk=alice.pk).update(time_zone="Asia/Tokyo")
    at = [entry.at + timedelta(hours=9) for entry in Entry.objects.of_call(held).order_by("pk")]

    timeline = page(as_alice, held).split('id="call-timeline"')[1]

    shown = re.findall(
        r'<time class="at"[^>]*>\d+ \w+, ([\d:]+)</time> <time class="when"', timeline
    )
    assert set(shown) == {f"{one:%H:%M:%S}" for one in at}
    assert len(shown) == timeline.count('<li class="moment"')


def test_arguments_are_the_bytes_that_were_asked(as_alice: Client, held: UUID) -> None:
    response = as_alice.get(reverse("calls:arguments", args=[held]))

    assert response.content == bytes(Call.objects.get(pk=held).arguments)
    assert response["Content-Disposition"].startswith("attachment")
    assert response["X-Content-Type-Options"] == "nosniff"


def test_a_default_stands_in_its_brackets(as_alice: Client, scout: Agent, alice: User) -> None:
    schema = {"type": "object", "properties": {"year": {"type": "integer", "default": 2026}}}
    offering = scenery.server("diary", alice, {"name": "read", "inputSchema": schema})
    call_id = scenery.call(scout, offering.tools.get(), {}, State.QUEUED)

    assert "(default 2026)" in re.sub("<[^>]+>", "", page(as_alice, call_id))


@pytest.mark.parametrize("name", ["alice", "ines", "bob"])
def test_those_who_decide_audit_or_own_the_agent_read_its_content(
    client: Client, request: pytest.FixtureRequest, held: UUID, name: str
) -> None:
    client.force_login(request.getfixturevalue(name))

    assert SECRET in page(client, held)


@pytest.mark.parametrize("name", ["olga", "vera"])
def test_others_see_that_it_happened_and_not_what_is_in_it(
    client: Client, request: pytest.FixtureRequest, scout: Agent, send_mail: Tool, name: str
) -> None:
    call_id = ended(scout, send_mail, {"content": [{"type": "text", "text": SECRET}]})
    client.force_login(request.getfixturevalue(name))

    text = page(client, call_id)

    assert "mailer.send_mail" in text
    assert SECRET not in text
    assert client.get(reverse("calls:result", args=[call_id])).status_code == 404
    assert client.get(reverse("calls:arguments", args=[call_id])).status_code == 404


def test_mallory_sees_nothing(client: Client, mallory: User, held: UUID) -> None:
    client.force_login(mallory)

    for name in ("detail", "result", "arguments"):
        assert client.get(reverse(f"calls:{name}", args=[held])).status_code == 403


def test_a_call_that_never_was_is_not_found(as_alice: Client) -> None:
    assert as_alice.get(reverse("calls:detail", args=[uuid7()])).status_code == 404


def test_each_type_of_content_has_its_picture(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    data = base64.b64encode(png()).decode()
    content = [
        {"type": "text", "text": "plain words"},
        {"type": "text", "text": '{"deep": [1, 2]}'},
        {"type": "image", "mimeType": "image/png", "data": data},
        {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="},
        {"type": "resource_link", "uri": "javascript:alert(1)", "name": "a link"},
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "in the file"}},
        {"type": "hologram", "beams": 7},
        "no object at all",
    ]
    call_id = ended(scout, send_mail, {"content": content})

    text = page(as_alice, call_id)

    assert "plain words" in text
    assert '<span class="key">&quot;deep&quot;</span>' in text
    assert f'<img class="result-image" src="/calls/{call_id}/content/2/"' in text
    assert f'src="/calls/{call_id}/content/3/"' in text
    assert 'href="javascript' not in text
    assert "javascript:alert(1)" in text
    assert "in the file" in text
    assert "hologram" in text
    assert "no object at all" in text


MARKDOWN = """# Report

See [the page](https://a.example/x "A title") and ![a picture](https://a.example/p.png).

- **first** <script>alert(1)</script>
- [run](javascript:alert(2)) hidden\u202etext

| name | n |
|------|---|
| ana  | 1 |

[unused]: https://a.example/unused

```sh
ls -l
```
"""


def test_markdown_is_drawn_and_loads_nothing(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    content = [{"type": "text", "text": MARKDOWN}, {"type": "text", "text": "1 * 2\n  two"}]
    text = page(as_alice, ended(scout, send_mail, {"content": content}))
    drawn = text.split('<div class="markdown">')[1].split("<details")[0]

    assert text.count('class="markdown"') == 1
    assert "<strong>Report</strong>" in drawn
    assert "<li><p><strong>first</strong>" in drawn
    assert "&lt;script&gt;" in drawn
    assert "(https://a.example/x “A title”)" in drawn
    assert "https://a.example/unused" in drawn
    assert '<th scope="col">name</th>' in drawn
    assert "Image, not loaded:" in drawn
    for never in ("<img", "href=", "src=", "\u202e", "<script"):
        assert never not in drawn
    assert "U+202E" in drawn


@pytest.mark.parametrize(
    "written", ["> " * 40 + "**deep**", "- " * 200 + "**x**", "plain *words*", "**x** " * 3000]
)
def test_what_is_not_drawn_as_markdown_is_shown_as_it_is(written: str) -> None:
    assert markdown(written) == []


WIDE = "|a" * 300 + "|\n" + "|-" * 300 + "|\n" + "|\n" * 220


@pytest.mark.parametrize(
    "written",
    [
        WIDE,
        WIDE.replace("\n", "\r"),
        "# x\n" + "![" * 5_900,
        "**x** " + "a*" * 5_900,
        "#\n" * 5_900,
    ],
)
def test_what_would_take_long_is_never_parsed(
    written: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(text: str) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr(PARSER, "parse", parse)
    assert markdown(written) == []


def test_texts_of_one_result_share_what_may_be_parsed(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    content = [{"type": "text", "text": "**x** " + "word " * 2_000} for _n in range(9)]

    text = page(as_alice, ended(scout, send_mail, {"content": content}))

    assert text.count('class="markdown"') == 2


def test_a_wide_table_is_drawn_still() -> None:
    line = "| ana | 1 | 2 | 3 | 4 | 5 | 6 |\n"

    drawn = markdown("# A\n\n" + line + "|---" * 7 + "|\n" + line * 100)

    assert [node.kind for node in drawn] == ["heading", "table"]


def test_cells_of_json_tables_are_counted_whether_filled_or_not() -> None:
    ragged = [{f"{row}-{n}": 1 for n in range(8)} for row in range(200)]
    even = [{f"column {n}": row for n in range(12)} for row in range(200)]

    assert tree(ragged).kind == "list"
    assert tree([{"shared": 1, **row} for row in ragged[:5]]).kind == "table"
    shown = tree(even)
    assert (shown.kind, shown.count) == ("table", 200)
    assert len(shown.value) * len(shown.columns) <= MAX_NODES
    # Each list has what the lists before it left over.
    cells = [len(one.value) * len(one.columns) for one in tree([even] * 9).children if one.columns]
    assert sum(cells) <= MAX_NODES


@pytest.mark.long
def test_lines_of_a_long_text_are_found(as_alice: Client, scout: Agent, send_mail: Tool) -> None:
    lines = [f"line {n} of the log" for n in range(400)] + ["An <b>Error</b>: " + "x" * 900]
    call_id = ended(scout, send_mail, {"content": [{"type": "text", "text": "\n".join(lines)}]})
    address = reverse("calls:detail", args=[call_id])

    text = as_alice.get(address, {"find": "ERROR"}).text
    assert "1 line has it." in text
    assert '<li value="401" class="verbatim">An &lt;b&gt;Error&lt;/b&gt;: xxx' in text
    many = as_alice.get(address, {"find": "of the log"}).text
    assert "400 lines have it." in many
    assert "These are the first 100." in many
    assert "0 lines have it." in as_alice.get(address, {"find": "nowhere"}).text
    assert "Find in this text" in as_alice.get(address).text
    short = ended(scout, send_mail, {"content": [{"type": "text", "text": "short"}]})
    assert "Find in this text" not in page(as_alice, short)


@pytest.mark.long
def test_what_was_read_is_shown_by_what_each_piece_is(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    picture = {"uri": "notes://picture", "mimeType": "image/png"}
    contents = [
        {"uri": "notes://today", "text": "Buy <b>milk</b>."},
        {**picture, "blob": base64.b64encode(png()).decode()},
        {"uri": "notes://page", "mimeType": "text/html", "blob": "PGI+aGk8L2I+"},
    ]
    call_id = ended(scout, send_mail, {"contents": contents, "ttlMs": 0})

    text = page(as_alice, call_id)
    drawn = as_alice.get(reverse("calls:piece", args=[call_id, 1]))
    kept = as_alice.get(reverse("calls:piece", args=[call_id, 2]))

    assert "Buy &lt;b&gt;milk&lt;/b&gt;." in text
    assert f'<img class="result-image" src="/calls/{call_id}/content/1/"' in text
    assert f'<a href="/calls/{call_id}/content/2/" download>' in text
    assert all(one["uri"] in text for one in contents)
    assert (drawn.content, drawn["Content-Type"]) == (png(), "image/png")
    assert (kept.content, kept["Content-Type"]) == (b"<b>hi</b>", "application/octet-stream")


def test_texts_that_were_read_are_drawn_by_their_types(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    contents = [
        {"uri": "notes://plan", "mimeType": "text/markdown; charset=utf-8", "text": MARKDOWN},
        {"uri": "notes://days", "mimeType": "application/json", "text": '[{"day": "Mon"}]'},
        {"uri": "notes://run.py", "mimeType": "text/x-python", "text": "# no heading\n"},
    ]
    text = page(as_alice, ended(scout, send_mail, {"contents": contents}))

    assert text.count('class="markdown"') == 1
    assert "<strong>Report</strong>" in text
    assert '<th scope="col">day</th>' in text
    assert "# no heading" in text
    assert all(one["uri"] in text and one["mimeType"].split(";")[0] in text for one in contents)


def test_a_prompts_messages_are_shown_with_who_says_them(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(png()).decode()}
    embedded = {"type": "resource", "resource": {"uri": "notes://a", "text": "in the note"}}
    messages = [
        {"role": "user", "content": {"type": "text", "text": "Review <i>this</i>."}},
        {"role": "assistant", "content": [image, embedded]},
        "no message at all",
    ]
    call_id = ended(scout, send_mail, {"messages": messages})

    text = page(as_alice, call_id)

    story = ["user:", "Review &lt;i&gt;this", "assistant:", "/content/3/", "in the note"]
    places = [text.index(f">{step}" if step.endswith(":") else step) for step in story]
    assert places == sorted(places)
    assert "no message at all" in text
    assert as_alice.get(reverse("calls:piece", args=[call_id, 3])).content == png()


@pytest.mark.long
def test_structured_rows_are_a_table(as_alice: Client, scout: Agent, send_mail: Tool) -> None:
    days = [{"day": "Mon", "high": 11}, {"day": "Tue", "sky": "rain"}]
    text = page(as_alice, ended(scout, send_mail, {"structuredContent": {"days": days}}))

    assert '<th scope="col">high</th>' in text
    assert '<td data-label="sky">' in text


def test_structured_content_is_a_tree_and_its_repetition_is_left_out(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    mail = {"id": "m-1", "envelope": {"size": 512}}
    again = [{"type": "text", "text": orjson.dumps(mail).decode()}]
    call_id = ended(scout, send_mail, {"content": again, "structuredContent": mail})

    text = page(as_alice, call_id)

    assert 'mono">envelope</span>' in text
    assert "512" in text
    # In the tree, and in the JSON under it.
    assert text.count("m-1") == 2


def test_an_image_comes_with_a_safe_type(as_alice: Client, scout: Agent, send_mail: Tool) -> None:
    image = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(png()).decode()}
    call_id = ended(scout, send_mail, {"content": [image]})

    response = as_alice.get(reverse("calls:piece", args=[call_id, 0]))

    assert response.content == png()
    assert response["Content-Type"] == "image/png"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "sandbox" in response["Content-Security-Policy"]


def test_records_deep_in_a_tree_are_a_table(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    found = {"pages": {"rows": [{"id": 1, "to": "ana"}, {"id": 2}], "more": [1, [2, {"x": None}]]}}

    text = page(as_alice, ended(scout, send_mail, {"structuredContent": found}))

    assert '<th scope="col">to</th>' in text
    assert 'mono">more</span>' in text


@pytest.mark.long
def test_a_tree_without_end_is_cut_and_says_so(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    deep: object = {"end": 1}
    for _level in range(20):
        deep = {"in": deep}
    wide = {f"member-{n}": {"n": {"m": n}} for n in range(3000)}

    for structured in (deep, wide):
        text = page(as_alice, ended(scout, send_mail, {"structuredContent": structured}))
        assert "more: the download has all" in text


@pytest.mark.long
def test_a_resources_bytes_are_for_downloading_whatever_they_call_themselves(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    resource = {"uri": "file:///a.html", "mimeType": "text/html", "blob": "PGI+aGk8L2I+"}
    call_id = ended(scout, send_mail, {"content": [{"type": "resource", "resource": resource}]})

    response = as_alice.get(reverse("calls:piece", args=[call_id, 0]))

    assert response.content == b"<b>hi</b>"
    assert response["Content-Type"] == "application/octet-stream"
    assert "attachment" in response["Content-Disposition"]
    assert "Download the file" in page(as_alice, call_id)


@pytest.mark.long
@pytest.mark.parametrize(
    "item",
    [
        {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zy8+"},
        {"type": "image", "mimeType": "text/html", "data": "PGI+"},
        {"type": "image", "mimeType": "image/png", "data": "not base64!"},
        {"type": "text", "text": "<script>"},
    ],
)
def test_what_a_browser_might_run_is_never_served(
    as_alice: Client, scout: Agent, send_mail: Tool, item: object
) -> None:
    call_id = ended(scout, send_mail, {"content": [item]})

    assert as_alice.get(reverse("calls:piece", args=[call_id, 0])).status_code == 404
    assert as_alice.get(reverse("calls:piece", args=[call_id, 9])).status_code == 404
    assert as_alice.get(reverse("calls:detail", args=[call_id])).status_code == 200


@pytest.mark.long
@pytest.mark.parametrize("result", [[], "text", {"content": "none"}, {"content": None}, 7, {}])
def test_an_odd_result_is_still_shown(
    as_alice: Client, scout: Agent, send_mail: Tool, result: object
) -> None:
    call_id = ended(scout, send_mail, result)

    assert as_alice.get(reverse("calls:detail", args=[call_id])).status_code == 200


def test_markup_in_a_result_stays_text(as_alice: Client, scout: Agent, send_mail: Tool) -> None:
    evil = '<img src=x onerror="alert(1)">\u202e'
    call_id = ended(scout, send_mail, {"content": [{"type": "text", "text": evil}]})

    text = page(as_alice, call_id)

    assert "<img src=x" not in text
    assert "⟦U+202E⟧" in text


def test_the_whole_result_is_for_downloading(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    long = {"content": [{"type": "text", "text": "x" * 300_000}]}
    call_id = ended(scout, send_mail, long)

    assert "Shown: 200000 of 300000 characters" in page(as_alice, call_id)
    assert as_alice.get(reverse("calls:result", args=[call_id])).content == orjson.dumps(long)


def test_progress_says_how_far_how_fast_and_how_long(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    call_id = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    scenery.run(call_id)
    Call.objects.filter(pk=call_id).update(
        progress=18, progress_total=30, progress_message="page 18"
    )

    text = page(as_alice, call_id)

    assert 'value="60"' in text
    assert "page 18" in text
    assert "18 of 30" in text


def progressing(client: Client, scout: Agent, tool: Tool, **said: Any) -> str:
    """The page's lines on how far a call is, whose server `said` that."""
    call_id = scenery.call(scout, tool, scenery.MAIL, State.QUEUED)
    scenery.run(call_id)
    Call.objects.filter(pk=call_id).update(**said)
    found = re.search(r'<section id="call-progress".*?</section>', page(client, call_id), re.DOTALL)
    assert found
    return found[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("done", "total", "percent"),
    [
        (9e307, 1.7e308, "52%"),
        (1.7e308, 5e-324, "100%"),
        (5e-324, 1.7e308, "0%"),
        (9e15, 1e16, "90%"),
        (12, 10, "100%"),
        (-1.7e308, 1.7e308, ""),
        (-5, 10, ""),
        (5, -10, ""),
        (5, 0, ""),
    ],
)
def test_absurd_progress_is_drawn_and_said_in_figures_that_make_sense(
    as_alice: Client, scout: Agent, send_mail: Tool, done: float, total: float, percent: str
) -> None:
    said = {"progress": done, "progress_total": total, "progress_message": "page 18"}

    text = progressing(as_alice, scout, send_mail, **said, progress_rate=done * 1e-9)

    assert "page 18" in text
    assert percent in text
    assert ("%" in text) == bool(percent)
    assert " left" not in text
    assert "-" not in re.sub("<[^>]*>", "", text)
    assert max(len(word) for word in re.sub("<[^>]*>", "", text).split()) < 20


@pytest.mark.long
@pytest.mark.parametrize(
    ("rate", "says"),
    [
        (0.1, "18 of 30&nbsp;· 0.1 a second&nbsp;· about 2 min left"),
        (4.0, "18 of 30&nbsp;· 4 a second&nbsp;· about 3 s left"),
        (1e-9, "18 of 30<"),
        (None, "18 of 30<"),
        (100.0, "18 of 30&nbsp;· 100 a second<"),
    ],
)
def test_rate_and_time_left_are_said_where_they_say_something(
    as_alice: Client, scout: Agent, send_mail: Tool, rate: float | None, says: str
) -> None:
    said = {"progress": 18, "progress_total": 30, "progress_rate": rate}

    assert says in progressing(as_alice, scout, send_mail, **said)


def test_control_characters_of_a_message_are_written_out(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    text = progressing(as_alice, scout, send_mail, progress_message="page \x1b[2J18\u202e")

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "U+001B" in text
    assert "U+202E" in text


def test_a_message_that_was_cut_says_so(as_alice: Client, scout: Agent, send_mail: Tool) -> None:
    whole, cut = storable("x" * MESSAGE_MAX), storable("x" * (MESSAGE_MAX + 1))

    assert "longer" not in progressing(as_alice, scout, send_mail, progress_message=whole)
    text = progressing(as_alice, scout, send_mail, progress_message=cut)

    assert len(cut) == MESSAGE_MAX
    assert "The server’s message is longer: these are its first 1,000 characters." in text


def shown(client: Client, **filters: str) -> list[UUID]:
    response = client.get(reverse("calls:list"), filters)
    return [call.pk for call in response.context["page"].rows]


@pytest.mark.long
def test_filters_find_calls(as_alice: Client, scout: Agent, send_mail: Tool, held: UUID) -> None:
    done = ended(scout, send_mail, {"content": []})

    assert shown(as_alice) == [done, held]
    assert shown(as_alice, state="live") == [held]
    assert shown(as_alice, state="succeeded") == [done]
    assert shown(as_alice, agent="scout", tool="mailer.send_mail") == [done, held]
    assert shown(as_alice, agent="nobody") == []
    assert shown(as_alice, state="no such state") == [done, held]


@pytest.mark.long
@pytest.mark.parametrize(
    ("language", "blocked", "invalid"),
    [("en", "Blocked by policy", "Invalid request"), ("zh-hans", "被策略拦截", "请求无效")],
)
def test_blocked_and_invalid_are_two_states_everywhere(
    client: Client,
    ines: User,
    scout: Agent,
    send_mail: Tool,
    language: str,
    blocked: str,
    invalid: str,
) -> None:
    User.objects.filter(pk=ines.pk).update(language=language)
    client.force_login(ines)
    client.cookies["django_language"] = language
    words = {State.REFUSED: (blocked, invalid), State.INVALID: (invalid, blocked)}
    effects = {State.REFUSED: "deny", State.INVALID: ""}
    refusals = {State.REFUSED: "policy", State.INVALID: "invalid"}
    for state, (word, other) in words.items():
        details = {"refusal": refusals[state]}
        made = {"effect": effects[state], "reason": "No.", "details": details}
        call_id = scenery.call(scout, send_mail, {}, state, **made)

        [row] = client.get(reverse("calls:list"), {"state": state}).context["page"].rows
        shown = client.get(reverse("calls:list"), {"state": state}).text
        text = page(client, call_id)
        report = client.get(reverse("audit:report"), {"state": state}).text
        steps = client.get(reverse("audit:list"), {"state": state}).text

        assert row.pk == call_id
        assert f"</svg>{word}" in shown
        assert f"</svg>{other}" not in shown
        assert f"</svg>{word}" in text
        assert f"<strong>{word}" in text
        assert f"<strong>{other}" not in text
        assert "No." in text.partition('id="call-result"')[2].partition("</section>")[0]
        assert word in report
        # As choices of their filters both are there.
        assert other not in report.partition("<h2")[2]
        assert word in steps.rpartition("<table")[2]
        assert other not in steps.rpartition("<table")[2]
    legend = {str(label) for _name, label in client.get("/overview/").context["chart"].legend}
    assert invalid in legend


@pytest.mark.long
def test_calls_of_a_range_and_from_the_oldest_on(
    as_alice: Client,
    scout: Agent,
    send_mail: Tool,
    held: UUID,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = ended(scout, send_mail, {"content": []})

    assert shown(as_alice, order="oldest") == [held, done]
    assert shown(as_alice, order="oldest", beyond=str(held)) == [done]
    assert shown(as_alice, order="oldest", back=str(done)) == [held]
    assert shown(as_alice, range="1h", order="oldest") == [held, done]
    assert shown(as_alice, range="no such range") == [done, held]
    later = timezone.now() + timedelta(hours=2)
    monkeypatch.setattr("calls.views.calls.timezone.now", lambda: later)
    assert shown(as_alice, range="1h") == []
    assert shown(as_alice, range="24h") == [done, held]
    text = as_alice.get(reverse("calls:list"), {"order": "oldest", "range": "7d"}).text
    assert 'aria-sort="ascending"' in text
    assert 'hx-trigger="live:calls' not in text


def test_a_list_that_is_open_learns_of_changes(
    as_alice: Client, scout: Agent, send_mail: Tool, held: UUID
) -> None:
    newer = ended(scout, send_mail, {"content": []})

    text = as_alice.get(reverse("calls:news"), {"live": str(held), "newest": str(held)}).text

    assert f'id="state-{held}"' in text
    assert 'hx-swap-oob="true"' in text
    assert "1 new call" in text
    assert str(newer) not in text


@pytest.mark.long
def test_an_operator_cancels_a_queued_call(
    client: Client, olga: User, scout: Agent, send_mail: Tool
) -> None:
    call_id = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    client.force_login(olga)
    address = reverse("approvals:cancel", args=[call_id])

    assert address in page(client, call_id)
    assert client.get(address).status_code == 405
    client.post(address)
    again = client.post(address, follow=True).text

    assert Call.objects.get(pk=call_id).state == State.CANCELLED
    assert "nothing was cancelled" in again


@pytest.fixture
def lost(scout: Agent, send_mail: Tool) -> UUID:
    """Sent, and nobody knows how it ended."""
    call_id = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    scenery.run(call_id)
    assert move_now(Move(call_id, State.RUNNING, State.UNKNOWN, SYSTEM))
    return call_id


def write_down(client: Client, call_id: UUID, **found: str) -> str:
    address = reverse("calls:resolve", args=[call_id])
    return client.post(
        address, {"executed": "yes", "note": "It is in the outbox.", **found}, follow=True
    ).text


@pytest.mark.long
def test_an_operator_writes_down_how_a_lost_call_ended(
    client: Client, olga: User, lost: UUID
) -> None:
    client.force_login(olga)
    assert "Unresolved" in page(client, lost)

    text = write_down(client, lost)

    assert Call.objects.get(pk=lost).state == State.RESOLVED
    assert "It is in the outbox." in text
    assert "no longer" in write_down(client, lost)


@pytest.mark.long
@pytest.mark.parametrize("found", [{"executed": "perhaps"}, {"note": " "}])
def test_what_was_found_must_be_said(
    client: Client, olga: User, lost: UUID, found: dict[str, str]
) -> None:
    client.force_login(olga)

    assert "Say whether it was executed" in write_down(client, lost, **found)
    assert Call.objects.get(pk=lost).state == State.UNKNOWN


def test_others_do_not_write_it_down(as_alice: Client, lost: UUID) -> None:
    assert "Unresolved" not in page(as_alice, lost)
    write_down(as_alice, lost)
    assert Call.objects.get(pk=lost).state == State.UNKNOWN


def test_a_calls_page_shows_what_its_agent_did_beside_it(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    first = ended(scout, send_mail, {"content": []})
    again = ended(scout, send_mail, {"content": []})

    text = page(as_alice, again)

    assert "What else scout asked within ten minutes" in text
    assert reverse("calls:detail", args=[first]) in text
    assert "retry" in text


@pytest.mark.long
def test_a_call_is_copied_as_a_command_that_hides_nothing(
    as_alice: Client, scout: Agent, send_mail: Tool, vera: User
) -> None:
    arguments = {**scenery.MAIL, "subject": "it's\u202e"}
    call_id = scenery.call(scout, send_mail, arguments, State.HELD)
    call = Call.objects.for_page().get(pk=call_id)

    command = shlex.split(as_curl(call))

    body = command[command.index("--data-binary") + 1]
    assert body.isascii()
    assert json.loads(body) == {
        "toolset": "office",
        "tool": "mailer.send_mail",
        "arguments": arguments,
    }
    assert "As a command for a shell" in page(as_alice, call_id)
    as_alice.force_login(vera)
    assert "As a command for a shell" not in page(as_alice, call_id)


def test_a_calls_page_asks_little_of_the_database(
    as_alice: Client, scout: Agent, send_mail: Tool, django_assert_max_num_queries: Any
) -> None:
    call_id = ended(scout, send_mail, {"content": []})

    with django_assert_max_num_queries(16):
        page(as_alice, call_id)
