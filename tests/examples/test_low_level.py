from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import MCPError

from tests.examples.running import Connection, text_of

EXAMPLE = "low_level"


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (212, "fahrenheit", "celsius", 100),
        (-40, "celsius", "fahrenheit", -40),
        (0, "kelvin", "celsius", -273.15),
        (1.5, "nautical mile", "metre", 2778),
        (1, "pound", "gram", 453.59237),
    ],
)
def test_it_converts(
    server: Connection, value: float, source: str, target: str, result: float
) -> None:
    answer = server.call("convert", **{"value": value, "from": source, "to": target})

    assert answer.structured_content == {"value": pytest.approx(result), "unit": target}
    assert text_of(answer).startswith(f"{value} {source} = ")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"value": 1, "from": "metre", "to": "pound"}, "metre is a length, pound is a mass"),
        ({"value": 1, "from": "cubit", "to": "metre"}, "There is no unit 'cubit'"),
        ({"value": 1, "from": "metre", "to": "cubit"}, "There is no unit 'cubit'"),
        ({"value": "1", "from": "metre", "to": "foot"}, "needs a number in value"),
        ({"value": True, "from": "metre", "to": "foot"}, "needs a number in value"),
        ({}, "needs a number in value"),
    ],
)
def test_it_refuses_what_its_schema_does_not_allow(
    server: Connection, arguments: dict[str, Any], reason: str
) -> None:
    assert reason in server.error("convert", **arguments)


def test_it_lists_its_units(server: Connection) -> None:
    assert "mass: kilogram, gram, pound, tonne" in text_of(server.call("list_units"))


def test_an_unknown_tool_is_an_error_of_the_protocol(server: Connection) -> None:
    with pytest.raises(MCPError, match="There is no tool 'melt'") as refusal:
        server.call("melt")

    assert refusal.value.code == -32602


def test_its_schemas_are_written_by_hand_and_valid(server: Connection) -> None:
    tools = server.tools()

    for tool in tools.values():
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations
        assert tool.annotations.read_only_hint is True
    assert "title" not in tools["convert"].input_schema
    assert tools["convert"].output_schema
