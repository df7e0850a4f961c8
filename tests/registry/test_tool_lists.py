"""A tool's schema as providers of models take it: valid for each, and every loss is named."""

from __future__ import annotations

import hashlib
import json
import re
from types import SimpleNamespace
from typing import Any

import jsonschema_rs
import pytest

from registry.publishing.published_tools import CALL, ParsedDefinition
from registry.publishing.tool_lists import FORMATS, NamedTool, tool_list
from registry.schemas.subsets import of_functions, of_gemini
from tests.flows.chat import check_anthropic, check_tool

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
    "recursive by a part": {
        "type": "object",
        "properties": {"person": {"$ref": "#/$defs/person"}},
        "$defs": {
            "person": {
                "type": "object",
                "properties": {"boss": {"allOf": [{"$ref": "#/$defs/person"}]}},
            }
        },
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
    "draft 4": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "id": "http://example.org/own",
        "type": "object",
        "properties": {
            "above": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "from": {"type": "number", "maximum": 9, "exclusiveMaximum": False},
            "any": {"type": "object"},
        },
        "dependencies": {"above": ["from"]},
    },
    "or none": {
        "type": "object",
        "properties": {
            "n": {
                "anyOf": [{"type": "integer"}, {"type": "null"}],
                "default": None,
                "description": "How many",
                "title": "N",
            },
            "mode": {"anyOf": [{"$ref": "#/$defs/mode"}, {"type": "null"}], "description": "How"},
            "either": {
                "oneOf": [{"type": "integer"}, {"type": "string", "description": "A name"}],
                "description": "Which",
                "default": 1,
            },
            "level": {"enum": ["a", None]},
            "size": {"enum": [1, 2]},
            "picture": {"type": "string", "contentEncoding": "base64"},
        },
        "$defs": {"mode": {"enum": ["a", "b"], "type": "string", "title": "Mode"}},
    },
    "names": {
        "type": "object",
        "properties": {
            "参数": {"type": "string", "description": "中文参数"},
            "filter[id]": {"type": "integer"},
            "$top": True,
            "a.b": {"$ref": "#/properties/filter%5Bid%5D"},
            "": {"type": "string"},
            "x" * 80: {"type": "string"},
            "within": {"$ref": "#"},
        },
        "required": ["参数", "filter[id]"],
        "dependentRequired": {"$top": ["参数"]},
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
    "formats": {
        "type": "object",
        "properties": {
            "of protobuf": {"type": "string", "format": "int64"},
            "time of a number": {"type": "integer", "format": "date-time"},
            "double": {"type": "integer", "format": "double"},
            "long": {"type": "integer", "format": "int64"},
            "list": {"type": "array", "format": "enum", "items": {"type": "number"}},
            "either": {"type": ["string", "integer"], "minLength": 3, "maximum": 9},
            "any": {"anyOf": [{"type": "string"}, {"type": "integer"}], "format": "date-time"},
            "bounds of another": {"type": "integer", "minimum": 1, "minLength": 2},
        },
    },
    "enums": {
        "type": "object",
        "properties": {
            "mixed": {"enum": ["x", 1]},
            "of a list": {"type": "array", "enum": ["a"]},
            "no filter": {"type": "string", "enum": ["", "x"]},
            "nothing": {"type": "string", "enum": [""]},
            "of one type": {"type": ["string", "integer"], "enum": ["a", "b"]},
            "numbers": {"type": ["number", "string"], "enum": [1, "b"]},
        },
    },
    "anchor": {
        "type": "object",
        "properties": {"q": {"$ref": "#q"}},
        "$defs": {"q": {"$anchor": "q", "type": "string"}},
    },
    "parts": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "no": False},
        "allOf": [
            {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
            {"$ref": "#/$defs/more"},
            {"properties": {"a": {"maxLength": 9}}, "minProperties": 2},
            True,
        ],
        "minProperties": 1,
        "$defs": {"more": {"allOf": [{"properties": {"c": {"type": "boolean"}}}]}},
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


# "Must start with a letter or an underscore", in the words of FunctionDeclaration.
GEMINI_ARGUMENT = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}").fullmatch


# "only 'enum' and 'date-time' are supported for STRING type".
GEMINI_FORMATS = {
    "STRING": {"enum", "date-time"},
    "INTEGER": {"int32", "int64"},
    "NUMBER": {"float", "double"},
}
# "only allowed for STRING type".
ONLY_FOR = {
    "enum": ("STRING",),
    **dict.fromkeys(("properties", "required", "minProperties", "maxProperties"), ("OBJECT",)),
    **dict.fromkeys(("items", "minItems", "maxItems"), ("ARRAY",)),
    **dict.fromkeys(("minLength", "maxLength", "pattern"), ("STRING",)),
    **dict.fromkeys(("minimum", "maximum"), ("INTEGER", "NUMBER")),
}


def check_gemini(schema: Json) -> None:
    assert schema.keys() <= GEMINI
    assert "anyOf" not in schema or schema.keys() == {"anyOf"}
    assert "anyOf" in schema or schema["type"] in {
        *("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"),
    }
    assert schema.get("type") != "ARRAY" or "items" in schema
    assert all(isinstance(one, str) and one for one in schema.get("enum", ["any"]))
    assert "enum" not in schema or schema["enum"]
    assert "format" not in schema or schema["format"] in GEMINI_FORMATS[schema["type"]]
    assert all(schema["type"] in types for word, types in ONLY_FOR.items() if word in schema)
    assert set(schema.get("required", ())) <= set(schema.get("properties", ()))
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for one in [*inner, *([schema["items"]] if "items" in schema else [])]:
        check_gemini(one)


def check_gemini_tool(tool: Json) -> None:
    assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}", tool["name"])
    if "parameters" in tool:
        check_gemini(tool["parameters"])
        assert all(map(GEMINI_ARGUMENT, tool["parameters"]["properties"]))


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_every_form_is_one_that_its_provider_takes(schema: Json) -> None:
    check_tool(written("openai", schema, "x" * 5000).tool["function"])
    check_anthropic(written("anthropic", schema).tool)
    check_gemini_tool(written("gemini", schema).tool)
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
        ("/properties/text or none", "“examples” is left out."),
    }
    told = of_gemini(SCHEMAS["conditions"]).schema["properties"]
    assert told["both"]["required"] == ["x", "y"]
    assert told["text or none"] == {"type": "STRING", "nullable": True}
    assert told["mode"]["enum"] == ["fast"]


def test_older_drafts_come_in_the_words_of_the_newest() -> None:
    for form, place in (("anthropic", "input_schema"), ("openai", "function")):
        tool = written(form, SCHEMAS["draft 4"]).tool[place]
        told = tool if form == "anthropic" else tool["parameters"]
        assert told["properties"] == {
            "above": {"type": "number", "exclusiveMinimum": 0},
            "from": {"type": "number", "maximum": 9},
            "any": {"type": "object", "properties": {}},
        }
        assert told["dependentRequired"] == {"above": ["from"]}
        assert written(form, SCHEMAS["nothing"]).losses == []
        invalid = written(form, {"type": "object", "properties": {"a": {"type": "strin"}}})
        assert invalid.tool is None
        assert "the tool is left out" in invalid.losses[0].why


def test_what_may_be_null_keeps_its_type_and_its_description() -> None:
    reduced = of_gemini(SCHEMAS["or none"])
    either = [
        {"type": "INTEGER", "description": "Which"},
        {"type": "STRING", "description": "Which\nA name"},
    ]
    about = {"description": "How many", "title": "N", "default": None}
    mode = {"enum": ["a", "b"], "type": "STRING", "title": "Mode", "description": "How"}

    assert reduced.schema["properties"] == {
        "n": {"type": "INTEGER", "nullable": True, **about},
        "mode": {**mode, "nullable": True},
        "either": {"anyOf": either},
        "level": {"type": "STRING", "enum": ["a"], "nullable": True},
        "size": {"type": "INTEGER"},
        "picture": {"type": "STRING"},
    }
    assert [tuple(loss) for loss in reduced.losses] == [
        ("/properties/either", "“oneOf” became “anyOf”."),
        ("/properties/either", "“default” beside “anyOf” is left out."),
        ("/properties/size", "“enum” has other values than text, and is left out."),
        ("/properties/picture", "“contentEncoding” is left out."),
    ]


def test_what_one_list_lacks_is_a_loss_in_it() -> None:
    """Numbers beyond 64 bits, and names that an API rejects."""
    schema = {"type": "object", "properties": {"n": {"maximum": 99999999999999999999}}}
    definition = {"name": "2fa", "inputSchema": schema}
    content = ParsedDefinition(json.dumps(definition)).content
    one = SimpleNamespace(method=CALL)
    toolset: Any = SimpleNamespace(
        by_exposed={"2fa": one}, definition_for=lambda _name, _tool: content
    )

    for form in FORMATS:
        found = tool_list(toolset, form)
        assert (bool(found.tools), form) == (form != "gemini", form)
        assert found.losses[0] == {
            "tool": "2fa",
            "path": "/properties/n/maximum",
            "why": "A number beyond 64 bits is rounded: 1e+20.",
        }
    assert "rejects its name" in tool_list(toolset, "gemini").losses[-1]["why"]


def test_arguments_are_renamed_where_a_provider_rejects_their_names() -> None:
    tool, losses = written("anthropic", SCHEMAS["names"])
    told, digest = tool["input_schema"], hashlib.sha256("参数".encode()).hexdigest()[:8]
    by_name = {loss.path: loss.why for loss in reversed(losses)}

    assert told["properties"][f"arg_{digest}"]["description"] == "参数: 中文参数"
    assert f"arg_{digest}" in told["required"]
    assert "a.b" in told["properties"]
    pointed = told["properties"]["a.b"]["$ref"].removeprefix("#/properties/")
    assert told["properties"][pointed] == {"type": "integer", "description": "filter[id]"}
    assert by_name["/properties/参数"] == f"The argument “参数” is called “arg_{digest}”."
    assert by_name[""] == "“dependentRequired” is left out, since arguments are renamed."
    assert told["properties"]["within"] == {"type": "object"}
    assert len(losses) == 7
    gemini = {loss.path for loss in written("gemini", SCHEMAS["names"]).losses}
    assert {*by_name, "/properties/a.b"} <= gemini
    assert "参数" in SCHEMAS["names"]["properties"]


def test_a_schema_that_refers_to_itself_ends() -> None:
    for name in ("recursive", "recursive by a part"):
        reduced = of_gemini(SCHEMAS[name])
        assert reduced.schema["properties"]["person"]["properties"]["boss"] == {"type": "OBJECT"}
        assert [loss.why for loss in reduced.losses] == ["What refers to itself ends here."]


def test_what_loses_nothing_says_nothing() -> None:
    for form in FORMATS:
        assert written(form, SCHEMAS["plain"]).losses == []
    assert SCHEMAS["plain"]["properties"]["n"] == {"type": "integer", "minimum": 1}


def losses_of(form: Any, name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for loss in form(SCHEMAS[name]).losses:
        found.setdefault(loss.path.removeprefix("/properties/"), []).append(loss.why)
    return found


def test_gemini_is_told_only_formats_and_bounds_of_a_type() -> None:
    told = of_gemini(SCHEMAS["formats"]).schema["properties"]
    assert told["long"] == {"type": "INTEGER", "format": "int64"}
    assert told["of protobuf"] == {"type": "STRING"}
    assert told["either"] == {
        "anyOf": [{"type": "STRING", "minLength": 3}, {"type": "INTEGER", "maximum": 9}]
    }
    assert losses_of(of_gemini, "formats") == {
        "of protobuf": ["The format “int64” is left out."],
        "time of a number": ["The format “date-time” is left out."],
        "double": ["The format “double” is left out."],
        "list": ["“format” beside the type “array” is left out."],
        "any": ["The format “date-time” is left out."],
        "bounds of another": ["“minLength” beside the type “integer” is left out."],
    }


def test_gemini_is_told_of_values_only_where_they_are_text() -> None:
    told = of_gemini(SCHEMAS["enums"]).schema["properties"]
    assert told == {
        "mixed": {"anyOf": [{"type": "STRING", "enum": ["x"]}, {"type": "INTEGER"}]},
        "of a list": {"type": "ARRAY", "items": {"type": "STRING"}},
        "no filter": {"type": "STRING", "enum": ["x"]},
        "nothing": {"type": "STRING"},
        "of one type": {"type": "STRING", "enum": ["a", "b"]},
        "numbers": {"anyOf": [{"type": "NUMBER"}, {"type": "STRING", "enum": ["b"]}]},
    }
    other = ["“enum” has other values than text, and is left out."]
    empty = ["The empty text in “enum” is left out."]
    assert losses_of(of_gemini, "enums") == {
        **dict.fromkeys(("mixed", "of a list", "numbers"), other),
        **dict.fromkeys(("no filter", "nothing"), empty),
    }


def test_an_anchor_is_not_taken_for_the_arguments() -> None:
    assert of_gemini(SCHEMAS["anchor"]).schema["properties"] == {"q": {"type": "STRING"}}
    assert losses_of(of_gemini, "anchor") == {
        "q": ["Any value is taken: the model is told of text."]
    }


def test_parts_of_the_arguments_are_merged_in_every_list() -> None:
    conflict = "“allOf” has more than one “minProperties”: the first is told."
    told = of_functions(SCHEMAS["parts"]).schema
    assert told["properties"] == {
        "a": {"allOf": [{"type": "string"}, {"maxLength": 9}]},
        "no": False,
        "b": {"type": "integer"},
        "c": {"type": "boolean"},
    }
    assert (told["required"], told["minProperties"]) == (["b"], 1)
    assert losses_of(of_functions, "parts") == {"": [conflict]}

    reduced = of_gemini(SCHEMAS["parts"]).schema
    assert reduced["properties"] == {
        "a": {"type": "STRING", "maxLength": 9},
        "b": {"type": "INTEGER"},
        "c": {"type": "BOOLEAN"},
    }
    assert reduced["required"] == ["b"]
    assert losses_of(of_gemini, "parts") == {
        "": [conflict],
        "no": ["It is forbidden: left out."],
    }
