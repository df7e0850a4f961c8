"""A tool's schema as providers of models take it: valid for each, and every loss is named."""

from __future__ import annotations

import re
from typing import Any

import jsonschema_rs
import pytest

from registry.publishing.tool_lists import FORMATS, NamedTool
from registry.schemas.subsets import of_functions, of_gemini
from tests.flows.chat import check_tool

Json = dict[str, Any]

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "boss": {"$ref": "#/$defs/person"}},
}
SCHEMAS: dict[str, Json] = {
    "plain": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}},
    "nothing": {"type": "object"},
    "at the top": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        "not": {"required": ["a", "b"]},
    },
    "reference at the top": {"$ref": "#/$defs/person", "$defs": {"person": PERSON}},
    "recursive": {
        "type": "object",
        "properties": {"person": {"$ref": "#/$defs/person"}},
        "$defs": {"person": PERSON},
    },
    "arrays": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "any": {"type": "array"},
            "pair": {
                "type": "array",
                "items": [{"type": "string"}, {"type": "number"}],
                "additionalItems": False,
            },
            "maybe": {"type": ["array", "null"]},
        },
    },
    "conditions": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "mode": {"const": "fast"},
            "level": {"enum": [1, 2, 3]},
            "when": {"type": "string", "format": "date"},
            "target": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "both": {
                "allOf": [
                    {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
                    {"type": "object", "properties": {"y": {"type": "number"}}, "required": ["y"]},
                ]
            },
            "limit": {"exclusiveMinimum": 0, "multipleOf": 5, "minimum": 0},
            "anything": {},
            "yes": True,
            "text or none": {"type": ["string", "null"], "x-order": 3, "examples": ["a"]},
        },
        "if": {"required": ["mode"]},
        "then": {"required": ["level"]},
    },
}


def written(form: str, schema: Json, description: str = "Does it.") -> Any:
    definition = {"name": "up_do", "description": description, "inputSchema": schema}
    return FORMATS[form](NamedTool("up_do", definition))


# What the Gemini API's Schema has, of what it answers 400 for all else.
GEMINI = {
    *("type", "format", "title", "description", "nullable", "enum", "items", "minItems"),
    *("maxItems", "properties", "required", "minProperties", "maxProperties", "minLength"),
    *("maxLength", "pattern", "minimum", "maximum", "anyOf", "default"),
}


def check_gemini(schema: Json) -> None:
    assert schema.keys() <= GEMINI
    assert "anyOf" not in schema or schema.keys() == {"anyOf"}
    assert "anyOf" in schema or schema["type"] in {
        *("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"),
    }
    assert schema.get("type") != "ARRAY" or "items" in schema
    assert all(isinstance(one, str) for one in schema.get("enum", ()))
    assert set(schema.get("required", ())) <= set(schema.get("properties", ()))
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for one in [*inner, *([schema["items"]] if "items" in schema else [])]:
        check_gemini(one)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_every_form_is_one_that_its_provider_takes(schema: Json) -> None:
    check_tool(written("openai", schema, "x" * 5000).tool["function"])
    anthropic = written("anthropic", schema).tool
    assert anthropic["input_schema"]["type"] == "object"
    assert not {"oneOf", "allOf", "anyOf"} & anthropic["input_schema"].keys()
    jsonschema_rs.Draft202012Validator(anthropic["input_schema"])
    gemini = written("gemini", schema).tool
    assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}", gemini["name"])
    if "parameters" in gemini:
        check_gemini(gemini["parameters"])
    assert written("mcp", schema).tool["inputSchema"] is schema
    jsonschema_rs.validator_for(written("json-schema", schema).tool)


def test_what_a_model_is_not_told_is_named_with_its_place() -> None:
    reduced = of_functions(SCHEMAS["at the top"])
    assert [(loss.path, loss.why) for loss in reduced.losses] == [
        ("", "“anyOf” is not taken where arguments begin."),
        ("", "“not” is not taken where arguments begin."),
    ]
    assert reduced.schema["properties"] == SCHEMAS["at the top"]["properties"]

    found = {(loss.path, loss.why) for loss in of_gemini(SCHEMAS["conditions"]).losses}
    assert found == {
        ("", "“additionalProperties” is left out."),
        ("", "“if” is left out."),
        ("", "“then” is left out."),
        ("/properties/level", "“enum” has other values than text, and is left out."),
        ("/properties/when", "The format “date” is left out."),
        ("/properties/target", "“oneOf” became “anyOf”."),
        ("/properties/limit", "“exclusiveMinimum” is left out."),
        ("/properties/limit", "“multipleOf” is left out."),
        ("/properties/anything", "Any value is taken: the model is told of text."),
        ("/properties/yes", "Any value is taken: the model is told of text."),
    }
    told = of_gemini(SCHEMAS["conditions"]).schema["properties"]
    assert told["both"]["required"] == ["x", "y"]
    assert told["text or none"] == {"type": "STRING", "nullable": True}
    assert told["mode"]["enum"] == ["fast"]


def test_a_schema_that_refers_to_itself_ends() -> None:
    reduced = of_gemini(SCHEMAS["recursive"])
    assert reduced.schema["properties"]["person"]["properties"]["boss"] == {"type": "OBJECT"}
    assert [loss.why for loss in reduced.losses] == ["What refers to itself ends here."]


def test_what_loses_nothing_says_nothing() -> None:
    for form in FORMATS:
        assert written(form, SCHEMAS["plain"]).losses == []
    assert SCHEMAS["plain"]["properties"]["n"] == {"type": "integer", "minimum": 1}
