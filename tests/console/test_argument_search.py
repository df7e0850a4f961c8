"""A text in the arguments of calls is found in any database locale, by looking through them."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from audit import finding
from calls.record.states import State
from registry.models import Tool
from tests.console import scenery

Ask = Callable[[dict[str, Any]], UUID]


@pytest.fixture
def as_ines(client: Client, ines: User) -> Client:
    client.force_login(ines)
    return client


@pytest.fixture
def ask(scout: Agent, send_mail: Tool) -> Ask:
    """A call of scout's with these arguments, and after it another one."""

    def asked(arguments: dict[str, Any]) -> UUID:
        call_id = scenery.call(scout, send_mail, {**scenery.MAIL, **arguments}, State.HELD)
        scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "nothing"}, State.REFUSED)
        return call_id

    return asked


def found(client: Client, text: str, **more: str) -> set[UUID | None]:
    page = client.get(reverse("audit:list"), {"text": text, **more})
    return {entry.call_id for entry in page.context["page"].rows}


@pytest.mark.long
@pytest.mark.parametrize(
    "text", ["天气", "构化", "气", "结构化天气", "FIGURES", "igur", "q3 figures: "]
)
def test_every_part_of_a_text_finds_its_call(as_ines: Client, ask: Ask, text: str) -> None:
    call_id = ask({"subject": "Q3 figures: 结构化天气"})

    for group in ("", "call"):
        assert found(as_ines, text, group=group) == {call_id}
    assert found(as_ines, text, state="held") == {call_id}
    assert found(as_ines, text, state="refused") == set()
    assert found(as_ines, f"{text}雪") == set()


def test_what_an_agent_wrote_in_escapes_is_found(
    as_ines: Client, scout: Agent, send_mail: Tool
) -> None:
    body = rb'{"to": ["a@b.c"], "subject": "\u7ed3\u6784\u5316\u5929\u6C14", "body": ""}'
    call_id = scenery.call(scout, send_mail, orjson.Fragment(body), State.REFUSED)

    assert found(as_ines, "天气") == {call_id}


@pytest.mark.long
@pytest.mark.parametrize("group", ["", "call"])
@pytest.mark.parametrize(("name", "value"), [("LOOK", 2), ("LONGEST_S", -1)])
def test_a_page_says_how_far_it_looked_and_goes_on_from_there(
    as_ines: Client,
    ask: Ask,
    name: str,
    value: int,
    group: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(finding, "CHUNK", 2)
    monkeypatch.setattr(finding, name, value)
    calls = [ask({"subject": f"结构化天气 {n}"}) for n in range(3)]

    seen: list[UUID | None] = []
    address = f"?text=天气&group={group}"
    for _ in range(20):
        page = as_ines.get(reverse("audit:list") + address)
        seen += [entry.call_id for entry in page.context["page"].rows]
        if not page.context["looked_to"]:
            break
        assert "Arguments were searched back to" in page.text
        address = page.context["further"]
    assert list(dict.fromkeys(seen)) == calls[::-1]
    assert len(seen) == 3


@pytest.mark.long
def test_pages_of_what_was_found_follow_each_other(
    as_ines: Client, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "SIZE", 2)
    calls = [ask({"subject": f"结构化天气 {n}"}) for n in range(5)]

    seen: list[UUID | None] = []
    asked = {"text": "天气"}
    while True:
        page = as_ines.get(reverse("audit:list"), asked).context["page"]
        seen += [entry.call_id for entry in page.rows]
        if not page.next:
            break
        asked["beyond"] = page.next
    assert seen == calls[::-1]
