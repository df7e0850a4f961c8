"""The smallest pieces: cutting out results, event streams, lines, headers."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import header_params
from registry.upstream import param_headers, wire
from registry.upstream.transport.event_stream import EventStream
from registry.upstream.transport.line_reader import LineReader, Overlong
from registry.upstream.values import ResultTooLarge

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
results = st.dictionaries(st.text(), values, max_size=4)
spaces = st.sampled_from(["", " ", "\n", "\t \r\n"])


@given(results, st.permutations(["jsonrpc", "id", "result"]), spaces, st.booleans(), st.randoms())
def test_the_result_is_cut_out_as_it_was_written(
    result: dict[str, Any],
    order: list[str],
    space: str,
    ascii_only: bool,
    chance: random.Random,
) -> None:
    written = json.dumps(result, ensure_ascii=ascii_only, indent=chance.choice([None, 1]))
    members = {"jsonrpc": '"2.0"', "id": "7", "result": written}
    body = f",{space}".join(f'"{name}"{space}:{space}{members[name]}{space}' for name in order)
    data = f"{space}{{{space}{body}}}{space}".encode(errors="replace")

    message = wire.read(data)

    assert message.id == 7
    assert message.result == written.encode(errors="replace")
    assert message.value == json.loads(message.result)


@given(st.text(), st.integers(1, 9), st.sampled_from(["\n", "\r\n", "\r"]))
def test_an_event_is_the_same_however_it_is_cut(text: str, size: int, ending: str) -> None:
    message = json.dumps({"text": text}, indent=1, ensure_ascii=False)
    message = message.encode(errors="replace").decode()
    lines = [": comment", "id: 1", *(f"data: {line}" for line in message.split("\n")), "", ""]
    stream = ending.join(lines).encode()
    events = EventStream(limit=1_000_000)

    got = [
        data
        for start in range(0, len(stream), size)
        for data in events.feed(stream[start : start + size])
    ]

    assert got == [message.encode()]
    assert events.last_id == "1"


def test_an_event_without_its_end_is_none() -> None:
    events = EventStream(limit=100)

    assert events.feed(b"id: 9\ndata: {}\n") == []
    assert events.last_id == ""


def test_the_limit_counts_comments_too() -> None:
    events = EventStream(limit=100)
    events.feed(b": " + b"x" * 90)
    with pytest.raises(ResultTooLarge):
        events.feed(b": xxxxxxxx\n")


def test_other_events_carry_no_message() -> None:
    events = EventStream(limit=1000)

    assert events.feed(b"event: ping\ndata: {}\n\ndata\n\nevent: message\ndata:1\n\n") == [b"1"]


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)), st.integers(1, 9))
def test_lines_are_the_same_however_they_are_cut(written: list[bytes], size: int) -> None:
    stream = b"".join(line + b"\n" for line in written)
    lines = LineReader(limit=100)

    got = [
        line
        for start in range(0, len(stream), size)
        for line in lines.feed(stream[start : start + size])
    ]

    assert got == [line for line in written if line]


def test_of_a_line_that_is_too_long_both_ends_are_kept() -> None:
    lines = LineReader(limit=1000)
    got = lines.feed(b"HEAD" + b"x" * 1500)
    got += lines.feed(b"y" * 1500 + b"TAIL\nnext\n")

    [long, after] = got
    assert isinstance(long, Overlong)
    assert long.ends.startswith(b"HEAD")
    assert long.ends.endswith(b"TAIL")
    assert len(long.ends) < 1000
    assert long.size == 3008
    assert after == b"next"


def test_a_line_that_does_not_end_is_given_up() -> None:
    lines = LineReader(limit=1000)
    for _ in range(8):
        lines.feed(b"x" * 1000)
    with pytest.raises(ResultTooLarge):
        lines.feed(b"x")


NESTED = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "page": {
            "type": "object",
            "properties": {"size": {"type": "integer", "x-mcp-header": "Size"}},
        },
    },
}


def test_parameters_become_headers() -> None:
    declared = header_params.declared(NESTED)
    arguments = {"region": "zürich", "dry": True, "page": {"size": 3}}

    assert param_headers(declared, arguments) == {
        "Mcp-Param-Region": "=?base64?esO8cmljaA==?=",
        "Mcp-Param-Dry-Run": "true",
        "Mcp-Param-Size": "3",
    }


def test_parameters_that_are_not_there_are_left_out() -> None:
    declared = header_params.declared(NESTED)

    several: list[dict[str, Any]] = [{}, {"page": 1, "region": None}, {"page": {}}, {"dry": [True]}]
    for arguments in several:
        assert param_headers(declared, arguments) == {}


@pytest.mark.parametrize(
    "schema",
    [
        {"x-mcp-header": "Root"},
        {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        {"properties": {"a": {"type": ["string", "null"], "x-mcp-header": "A"}}},
        {"properties": {"a": {"x-mcp-header": "A"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "not a name"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": ""}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "A\r\nB: c"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": 1}}},
        {"properties": {"a": {"items": {"type": "string", "x-mcp-header": "A"}}}},
        {"properties": {"a": {"items": [{"type": "string", "x-mcp-header": "A"}]}}},
        {"additionalItems": {"type": "string", "x-mcp-header": "A"}},
        {"dependencies": {"b": {"type": "string", "x-mcp-header": "A"}}},
        {"anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]},
        {"$defs": {"d": {"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}}},
        {
            "properties": {
                "a": {"type": "string", "x-mcp-header": "A"},
                "b": {"type": "string", "x-mcp-header": "a"},
            }
        },
    ],
)
def test_an_annotation_that_cannot_be_followed_is_invalid(schema: dict[str, Any]) -> None:
    with pytest.raises(header_params.InvalidAnnotation):
        header_params.declared(schema)


def test_data_that_looks_like_an_annotation_is_none() -> None:
    schema = {"properties": {"a": {"type": "string", "default": {"x-mcp-header": "A"}}}}

    assert header_params.declared(schema) == {}
