import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from examples import agent
from tests.examples import gateway
from tests.examples.chat_server import (
    KEY,
    ChatServer,
    Step,
    answers,
    chat_server,
    parts,
    refuses,
    text_part,
    use_part,
    wants,
)
from tests.examples.running import EXAMPLES, http_server


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with gateway.serving(gateway.gateway()) as url:
        yield url


@pytest.fixture
def settings(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("COUNTERSIGN_URL", endpoint)
    monkeypatch.setenv("COUNTERSIGN_TOKEN", gateway.TOKEN)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_MODEL", "scripted")
    return monkeypatch


def run(monkeypatch: pytest.MonkeyPatch, *script: Step, options: str = "") -> tuple[int, Any]:
    with chat_server(*script) as chat:
        monkeypatch.setenv("OPENAI_BASE_URL", chat.url)
        monkeypatch.setattr(sys, "argv", ["agent.py", "How much?", *options.split()])
        return agent.main(), chat


def told(chat: ChatServer) -> list[str]:
    return list(chat.told().values())


def test_it_answers_without_a_tool(settings: pytest.MonkeyPatch, capsys: Any) -> None:
    code, chat = run(settings, answers("Four."))

    assert code == 0
    assert capsys.readouterr().out == "person    How much?\nanswer    Four.\n"
    (request,) = chat.requests
    assert (request["model"], request["tool_choice"]) == ("scripted", "auto")
    assert [each["role"] for each in request["messages"]] == ["system", "user"]


def test_it_uses_a_tool_and_gives_the_result_back(
    settings: pytest.MonkeyPatch, capsys: Any
) -> None:
    code, chat = run(
        settings, wants(("calculator__add", {"a": 2, "b": 2}), saying="A sum."), answers("Four.")
    )

    assert code == 0
    assert chat.told() == {"call_0": "4.0"}
    assert capsys.readouterr().out.splitlines()[1:] == [
        "model     A sum.",
        'call      calculator.add {"a": 2, "b": 2}',
        "result    calculator.add: 4.0",
        "answer    Four.",
    ]


def test_the_model_is_told_every_tool_as_a_function(settings: pytest.MonkeyPatch) -> None:
    _, chat = run(settings, answers("Four."))

    functions = {each["function"]["name"]: each["function"] for each in chat.requests[0]["tools"]}
    assert functions["calculator__add"]["description"] == "Add\nAdd two numbers."
    assert functions["calculator__add"]["parameters"]["required"] == ["a", "b"]
    assert {"camera__shoot", "countersign_await_call"} <= set(functions)


def test_a_name_too_long_for_the_endpoint_finds_its_way_back(settings: pytest.MonkeyPatch) -> None:
    (alias,) = agent.names_for_chat([gateway.LONG_NAME])
    assert len(alias) == 64

    _, chat = run(settings, wants((alias, {})), answers("Done."))

    assert told(chat) == ["the long one"]


def test_an_argument_that_endpoints_reject_finds_its_way_back(
    settings: pytest.MonkeyPatch,
) -> None:
    (alias,) = agent.arguments_for_chat(["a", "città", "b.c"])

    _, chat = run(settings, wants(("tickets__price", {alias: "Holm"})), answers("Done."))

    functions = {each["function"]["name"]: each["function"] for each in chat.requests[0]["tools"]}
    told_of = functions["tickets__price"]["parameters"]
    assert told_of["required"] == [alias]
    assert told_of["properties"][alias]["description"] == "città: A quay."
    assert told(chat) == ["To Holm: 62"]


def test_names_that_would_become_the_same_stay_apart() -> None:
    names = ["a.b", "a__b", "a b", "a_b", "b.c" * 40]

    aliases = agent.names_for_chat(names)

    assert list(aliases.values()) == names
    assert next(iter(aliases)) == "a__b"
    assert all(len(alias) <= 64 for alias in aliases)


def test_calls_of_one_turn_run_at_the_same_time(settings: pytest.MonkeyPatch) -> None:
    # Each of the two returns only once the other has arrived.
    _, chat = run(
        settings,
        wants(("pair__meet", {"place": 0}), ("pair__meet", {"place": 1})),
        answers("Both."),
    )

    assert chat.told() == {"call_0": "met", "call_1": "met"}


# Anthropic's form


def run_anthropic(
    monkeypatch: pytest.MonkeyPatch, *script: Step, options: str = ""
) -> tuple[int, Any]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_MODEL", "scripted")
    with chat_server(*script) as chat:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", chat.url)
        monkeypatch.setattr(
            sys, "argv", ["agent.py", "How much?", "--form", "anthropic", *options.split()]
        )
        return agent.main(), chat


def test_several_tools_of_a_turn_are_answered_in_one_message(
    settings: pytest.MonkeyPatch, capsys: Any
) -> None:
    # Each of the first two returns only once the other has arrived.
    first = (use_part(0, "pair__meet", place=0), use_part(1, "pair__meet", place=1))
    code, chat = run_anthropic(
        settings,
        parts(text_part("Both."), *first, stop="tool_use"),
        parts(use_part(2, "calculator__add", a=2, b=2), stop="tool_use"),
        parts(text_part("Four.")),
    )

    assert code == 0
    assert capsys.readouterr().out.splitlines()[-1] == "answer    Four."
    sent = chat.requests[-1]["messages"]
    assert [one["role"] for one in sent] == ["user", "assistant", "user", "assistant", "user"]
    assert [one["content"] for one in sent[2]["content"]] == ["met", "met"]
    assert sent[4]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "toolu_2",
        "content": "4.0",
    }
    assert {"name", "description", "input_schema"} == set(chat.requests[0]["tools"][0])


@pytest.mark.parametrize(
    ("step", "code", "words"),
    [
        (refuses(401, "invalid x-api-key", "authentication_error"), 4, "refuses the key"),
        (parts(text_part("Fo"), stop="max_tokens"), 6, "cut short (max_tokens)"),
        (Step(body={"content": None}), 6, "answered without a message"),
    ],
)
def test_its_failures_have_the_same_codes(
    settings: pytest.MonkeyPatch, capsys: Any, step: Step, code: int, words: str
) -> None:
    assert run_anthropic(settings, step)[0] == code
    assert words in capsys.readouterr().err


# A dialogue


@pytest.mark.parametrize("end", ["exit", "退出", None])
def test_a_dialogue_goes_on_until_a_person_ends_it(
    settings: pytest.MonkeyPatch, capsys: Any, end: str | None
) -> None:
    typed = iter(["How much?", "", "And twice that?", *([end] if end else [])])

    def read(prompt: str) -> str:
        if (line := next(typed, None)) is None:
            raise EOFError
        return line

    settings.setattr("builtins.input", read)
    with chat_server(answers("Four."), answers("Eight.")) as chat:
        settings.setenv("OPENAI_BASE_URL", chat.url)
        settings.setattr(sys, "argv", ["agent.py", "--language", "zh"])
        assert agent.main() == 0

    assert capsys.readouterr().out == "answer    Four.\nanswer    Eight.\n"
    kept = chat.requests[-1]["messages"]
    assert [one["role"] for one in kept] == ["system", "user", "assistant", "user"]
    assert "中文" in kept[0]["content"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("calculator__fail", {}), "Error: Error executing tool calculator.fail: no luck today"),
        (("calculator__break", {}), "Error -32602: arguments out of this world"),
        (("calculator__melt", {}), "Error: there is no tool 'calculator__melt'."),
        (("calculator.add", {}), "Error: there is no tool 'calculator.add'."),
        (("calculator__add", "{a: 1}"), "Error: the arguments are not JSON"),
        (("calculator__add", "[1]"), "Error: the arguments are not a JSON object."),
        (("calculator__fail", ""), "Error: Error executing tool calculator.fail: no luck today"),
        (("camera__lie", {}), "Error: Invalid structured content returned by tool camera.lie"),
        (("camera__shoot", {}), "[image, which cannot be shown as text]"),
    ],
)
def test_whatever_goes_wrong_with_a_call_is_told_to_the_model(
    settings: pytest.MonkeyPatch, call: tuple[str, Any], words: str
) -> None:
    code, chat = run(settings, wants(call), answers("I see."))

    assert code == 0
    assert told(chat)[0].startswith(words)


def test_it_shows_progress_when_it_has_something_new_to_say(
    settings: pytest.MonkeyPatch, capsys: Any
) -> None:
    run(settings, wants(("reports__write", {})), answers("Done."))

    assert [line for line in capsys.readouterr().out.splitlines() if "progress" in line] == [
        "progress  reports.write: Starting (0 of 3)",
        "progress  reports.write: Halfway (1 of 3)",
    ]


def test_it_asks_what_became_of_a_call_that_waits_for_a_person(
    settings: pytest.MonkeyPatch, capsys: Any
) -> None:
    code, chat = run(settings, wants(("mailer__send_mail", {"subject": "x"})), answers("Sent."))

    assert code == 0
    assert told(chat) == [f"sent, {gateway.CALL_ID}"]
    waiting = f"wait      mailer.send_mail: {gateway.HELD}"
    assert capsys.readouterr().out.splitlines().count(waiting) == 2


def test_it_leaves_the_waiting_to_the_model_when_its_patience_ends(
    settings: pytest.MonkeyPatch,
) -> None:
    _, chat = run(
        settings,
        wants(("mailer__send_mail", {"subject": "x"})),
        answers("Nobody decided yet."),
        options="--patience 0",
    )

    assert told(chat) == [f"Error: {gateway.HELD}"]


def test_it_shows_the_page_where_a_person_decides(
    settings: pytest.MonkeyPatch, capsys: Any
) -> None:
    _, chat = run(settings, wants(("mailer__shred", {})), answers("Done."))

    assert told(chat) == ["shredded"]
    assert f"wait      A person decides: {gateway.PAGE}\n" in capsys.readouterr().out


def test_it_declines_to_answer_for_its_user(settings: pytest.MonkeyPatch) -> None:
    _, chat = run(settings, wants(("mailer__quiz", {})), answers("Done."))

    assert told(chat) == ["decline"]


def test_it_gives_up_after_the_last_turn(settings: pytest.MonkeyPatch, capsys: Any) -> None:
    add = wants(("calculator__add", {"a": 1, "b": 1}))

    code, chat = run(settings, add, add, add, options="--max-turns 2")

    assert code == 7
    assert len(chat.requests) == 2
    assert "The model still wanted tools after 2 turns." in capsys.readouterr().err


BUSY = refuses(429, "Slow down.", "rate_limit_exceeded", Retry_After="0")


@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        ([refuses(403, "No access.", "forbidden")], 4, "refuses the key: No access. (forbidden)"),
        ([BUSY] * 4, 5, "answered 429: Slow down. (rate_limit_exceeded)"),
        ([refuses(429, "No money.", "insufficient_quota")], 5, "answered 429: No money."),
        ([refuses(429, "Later.", "rate", Retry_After="3600")], 5, "answered 429: Later."),
        ([refuses(404, "No such model.", "model_not_found")], 6, "answered 404: No such model."),
        ([Step(400, "<h1>Bad</h1>")], 6, "answered 400: <h1>Bad</h1>"),
        ([Step(200, "<h1>Hello</h1>")], 6, "did not answer with JSON."),
        ([Step(200, {"choices": []})], 6, "answered without a message."),
        ([Step(200, [])], 6, "answered without a message."),
        ([answers("Fo", finish_reason="length")], 6, "The model was cut short (length)."),
    ],
)
def test_each_failure_of_the_chat_endpoint_has_its_exit_code(
    settings: pytest.MonkeyPatch, capsys: Any, script: list[Step], code: int, reason: str
) -> None:
    ended, chat = run(settings, *script)

    assert ended == code
    assert reason in capsys.readouterr().err
    assert chat.script == []


def test_it_tries_again_when_the_chat_endpoint_is_busy(settings: pytest.MonkeyPatch) -> None:
    error = refuses(503, "Overloaded.", "overloaded", Retry_After="0")

    code, chat = run(settings, BUSY, error, answers("Four."))

    assert code == 0
    assert len(chat.requests) == 3


def test_it_says_when_the_chat_endpoint_refuses_its_key(
    settings: pytest.MonkeyPatch, capsys: Any
) -> None:
    settings.setenv("OPENAI_API_KEY", "sk-wrong")

    code, chat = run(settings, answers("Four."))

    assert code == 4
    assert "refuses the key: Incorrect API key provided. (invalid_api_key)" in (
        capsys.readouterr().err
    )
    assert chat.requests == []


def test_it_says_when_the_chat_endpoint_cannot_be_reached(
    settings: pytest.MonkeyPatch, capsys: Any, closed_port: int
) -> None:
    settings.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{closed_port}/v1")
    settings.setattr(sys, "argv", ["agent.py", "How much?"])

    assert agent.main() == 6
    assert "/v1/chat/completions cannot be reached" in capsys.readouterr().err


def test_it_says_when_countersign_refuses_its_token(
    settings: pytest.MonkeyPatch, capsys: Any
) -> None:
    settings.setenv("COUNTERSIGN_TOKEN", "csa_revoked")

    code, chat = run(settings, answers("Four."))

    assert code == 3
    assert "/mcp refuses the token." in capsys.readouterr().err
    assert chat.requests == []


def test_it_says_when_countersign_cannot_be_reached(
    settings: pytest.MonkeyPatch, capsys: Any, closed_port: int
) -> None:
    settings.setenv("COUNTERSIGN_URL", f"http://127.0.0.1:{closed_port}/mcp/default")

    code, _ = run(settings, answers("Four."))

    assert code == 3
    assert "cannot be used: All connection attempts failed" in capsys.readouterr().err


def test_it_names_every_setting_that_is_missing(settings: pytest.MonkeyPatch, capsys: Any) -> None:
    settings.delenv("COUNTERSIGN_TOKEN")
    settings.setenv("OPENAI_MODEL", "")

    with pytest.raises(SystemExit) as ended:
        run(settings)

    assert ended.value.code == 2
    assert "set OPENAI_MODEL, COUNTERSIGN_TOKEN" in capsys.readouterr().err


@pytest.mark.long
def test_as_a_program_it_uses_a_real_example_server() -> None:
    sum_of_three = wants(("evaluate", {"expression": "1 + 2"}), ("add", {"a": 1, "b": 2}))
    with http_server("calculator") as (url, _), chat_server(sum_of_three, answers("3")) as chat:
        ended = subprocess.run(
            [sys.executable, EXAMPLES / "agent.py", "What is 1 + 2?"],
            check=False,
            env=os.environ
            | {"OPENAI_BASE_URL": chat.url, "OPENAI_API_KEY": KEY, "OPENAI_MODEL": "scripted"}
            | {"COUNTERSIGN_URL": url, "COUNTERSIGN_TOKEN": gateway.TOKEN},
            capture_output=True,
            text=True,
        )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert told(chat) == ["3", "3.0"]
    assert ended.stdout.endswith("answer    3\n")
    assert gateway.TOKEN not in ended.stdout
    assert KEY not in json.dumps(chat.requests)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """Bound but not listening: nobody else can take it, and nobody answers."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]
