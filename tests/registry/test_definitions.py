"""Hostile definitions are kept, never published, and say why; honest ones pass."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from registry import services
from registry.models import Discovery, Server, Tool
from registry.models.versioned import difference
from registry.publishing.published_tools import ParsedDefinition
from registry.schemas import arguments, compiled, definitions
from registry.schemas.violations import violations
from tests.registry.offering import ADD, Offering, serving

Schema = dict[str, Any]


def _nested(depth: int) -> Schema:
    schema: Schema = {"type": "string"}
    for _level in range(depth):
        schema = {"type": "object", "properties": {"inner": schema}}
    return schema


def _doubling(steps: int) -> Schema:
    defs: Schema = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(steps)}
    return {"type": "object", "$ref": "#/$defs/d0", "$defs": {**defs, f"d{steps}": {}}}


def _chain(length: int) -> Schema:
    defs = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(length)}
    return {"type": "object", "$ref": "#/$defs/d0", "$defs": {**defs, f"d{length}": {}}}


def _object(**properties: Any) -> Schema:
    return {"type": "object", "properties": properties}


NOT_LOCAL = "only references within it"
HOSTILE: dict[str, tuple[Any, str]] = {
    "no schema": (None, "not a JSON object"),
    "text": ("object", "not a JSON object"),
    "true": (True, "not a JSON object"),
    "no object": ({"type": "string"}, "type must be “object”"),
    "several types": ({"type": ["object", "null"]}, "type must be “object”"),
    "unknown type": (_object(a={"type": "strin"}), "#/properties/a/type"),
    "minimum that is text": (_object(a={"minimum": "0"}), "#/properties/a/minimum"),
    "enum that is text": (_object(a={"enum": "x"}), "#/properties/a/enum"),
    "required that is text": ({"type": "object", "required": "a"}, "#/required"),
    "remote reference": (_object(a={"$ref": "http://127.0.0.1:1/x"}), NOT_LOCAL),
    "remote reference, https": (_object(a={"$ref": "https://example.org/x#/a"}), NOT_LOCAL),
    "file": (_object(a={"$ref": "file:///etc/passwd"}), NOT_LOCAL),
    "metaschema": (_object(a={"$ref": "https://json-schema.org/draft/2020-12/schema"}), NOT_LOCAL),
    "relative reference": (_object(a={"$ref": "other.json"}), NOT_LOCAL),
    "anchor": (_object(a={"$ref": "#there"}, b={"$anchor": "there"}), NOT_LOCAL),
    "reference that is no text": (_object(a={"$ref": 5}), NOT_LOCAL),
    "reference to nothing": (_object(a={"$ref": "#/$defs/x"}), "which is not in it"),
    "reference to nothing, percent-encoded": (
        {**_object(a={"$ref": "#/$defs/a%2520b"}), "$defs": {"a b": {"type": "string"}}},
        "which is not in it",
    ),
    "reference to text": (_object(a={"$ref": "#/type"}), "which is not in it"),
    "reference to itself": (_object(a={"$ref": "#/properties/a"}), "refers to itself"),
    "reference to all of it in place": (
        {**_object(), "allOf": [{"$ref": "#"}]},
        "refers to itself without going deeper",
    ),
    "circle of alternatives": (
        {
            **_object(a={"$ref": "#/$defs/x"}),
            "$defs": {
                "x": {"items": {"$ref": "#/$defs/y"}, "anyOf": [{"$ref": "#/$defs/y"}]},
                "y": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/x"}]},
            },
        },
        "refers to itself",
    ),
    "circle through what is no schema": (
        {**_object(a={"$ref": "#/x"}), "x": {"not": {"$ref": "#/x"}}},
        "refers to itself",
    ),
    "remote reference in what is no schema": (
        {**_object(a={"$ref": "#/x"}), "x": {"$ref": "http://127.0.0.1:1/x"}},
        NOT_LOCAL,
    ),
    "dynamic reference": (_object(a={"$dynamicRef": "#a"}), "uses $dynamicRef"),
    "recursive reference": (_object(a={"$recursiveRef": "#"}), "uses $recursiveRef"),
    "other base": (_object(a={"$id": "http://127.0.0.1:1/"}), "changes the base"),
    "other base in draft 4": (
        {"$schema": "http://json-schema.org/draft-04/schema#", **_object(a={"id": "http://x/"})},
        "changes the base",
    ),
    "unknown dialect": ({"$schema": "http://127.0.0.1:1/schema", "type": "object"}, "$schema"),
    "dialect that is no text": ({"$schema": {"a": 1}, "type": "object"}, "$schema"),
    "doubling": (_doubling(30), "unfold to more than 10000"),
    "long chain": (_chain(200), "nested too deeply"),
    "too deep": (_nested(20), "nested deeper than 16"),
    "far too deep": (_nested(120), "nested deeper than 16"),
    "too many": (_object(**{f"p{i}": {"not": {}} for i in range(600)}), "more than 1000"),
    "too large": (_object(a={"description": "x" * 70_000}), "at most 65536"),
    "no regular expressions of names": (
        {"type": "object", "patternProperties": {"a": 5}},
        "#/patternProperties/a",
    ),
}


@pytest.mark.parametrize(("schema", "why"), HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("field", ["inputSchema", "outputSchema"])
def test_a_hostile_schema_is_refused_with_its_reason(field: str, schema: Any, why: str) -> None:
    if field == "outputSchema" and "must be “object”" in why:
        schema, why = {"type": "strin"}, "#/type"
    began = time.thread_time()

    found = definitions.problems({**ADD, field: schema})

    assert len(found) >= 1
    assert found[0].startswith(f"{field}: ")
    assert why in found[0]
    assert time.thread_time() - began < 0.2


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("title", 5, "The title is not text."),
        ("title", None, "The title is not text."),
        ("description", ["x"], "The description is not text."),
        ("annotations", [], "The annotations are not an object."),
        ("annotations", "readOnlyHint", "The annotations are not an object."),
    ],
)
def test_a_field_of_another_kind_is_refused(field: str, value: object, why: str) -> None:
    assert definitions.problems({**ADD, field: value}) == [why]


TREE: Schema = _object(
    name={"type": "string", "pattern": "^[a-z]+$"},
    children={"type": "array", "items": {"$ref": "#"}},
)
JSON_VALUE: Schema = {
    "anyOf": [
        {"type": ["string", "number", "boolean", "null"]},
        {"type": "array", "items": {"$ref": "#/$defs/json"}},
        {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}},
    ]
}
OPERATORS = ("and", "or", "xor", "nor")
FILTER: Schema = {
    "oneOf": [
        _object(
            op={"const": name},
            left={"$ref": "#/$defs/filter"},
            right={"$ref": "#/$defs/filter"},
        )
        for name in OPERATORS
    ]
}


def _everyone(count: int) -> Schema:
    names = {f"p{i}": {"$ref": f"#/$defs/d{i}"} for i in range(count)}
    return {**_object(**names), "$defs": {f"d{i}": _object(**names) for i in range(count)}}


HONEST: dict[str, Schema] = {
    "empty": {"type": "object"},
    "draft 7": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
    "draft 2020-12": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.org/own-name",
        **_object(a={"type": "string"}),
    },
    "definitions": {
        **_object(a={"$ref": "#/$defs/point"}, b={"$ref": "#/$defs/point"}),
        "$defs": {"point": _object(x={"type": "number"}, y={"type": "number"})},
    },
    "escaped reference": {**_object(a={"$ref": "#/$defs/a~1b~0c"}), "$defs": {"a/b~c": {}}},
    "percent-encoded reference": {
        **_object(a={"$ref": "#/$defs/a~1b%20c"}),
        "$defs": {"a/b c": {"type": "string"}},
    },
    "arguments named like keywords": _object(**{"$ref": {"type": "string"}, "id": {}, "not": {}}),
    "data that looks like a reference": _object(a={"const": {"$ref": "http://x"}, "default": {}}),
    "the whole vocabulary": _object(
        a={"type": "string", "pattern": "^[a-z]+$", "enum": ["a", "b"], "default": "a"},
        b={"type": "integer", "minimum": 0, "maximum": 9, "multipleOf": 3},
        c={"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
        d={"anyOf": [{"type": "null"}, {"format": "date-time"}], "description": "when"},
        e={"if": {"type": "string"}, "then": {"minLength": 1}, "else": False},
    ),
    "deep enough": _nested(15),
    "tree": TREE,
    "any JSON": {**_object(a={"$ref": "#/$defs/json"}), "$defs": {"json": JSON_VALUE}},
    "filter": {**_object(a={"$ref": "#/$defs/filter"}), "$defs": {"filter": FILTER}},
    "every one has every other": _everyone(30),
}


@pytest.mark.parametrize("schema", HONEST.values(), ids=HONEST)
def test_an_honest_schema_passes(schema: Schema) -> None:
    assert definitions.problems({**ADD, "inputSchema": schema}) == []
    assert compiled.compiled(schema).is_valid({})


SLOW = [
    "^(a+)+$",
    "^(a|a)*$",
    "^(a|aa)+$",
    "(.*a){20}",
    "^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}$",
    "(x+x+)+y",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(\\w+\\s?)*$",
    "^(.*?,){11}P",
    "(?:a?){30}a{30}",
    "\\d+\\d+\\d+\\d+\\d+\\d+x",
    "(a{1,100}){1,100}",
]


def _deep(levels: int, member: str = "left") -> Any:
    value: Any = {"op": "xor"}
    for _ in range(levels - 1):
        value = {"op": "xor", member: value}
    return value


def test_recursion_ends_with_the_arguments() -> None:
    shape = ParsedDefinition.of(TREE)

    right = {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}
    wrong = {"name": "a", "children": [{"name": "b", "children": [{"name": "C"}]}]}

    assert shape.violations(right) == []
    (violation,) = shape.violations(wrong)
    assert violation.path == "$.children[0].children[0].name"


@pytest.mark.parametrize("wrong", [False, True])
def test_alternatives_that_multiply_are_checked_as_far_as_that_takes_no_time(wrong: bool) -> None:
    shape = ParsedDefinition.of(
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/filter"}},
            "$defs": {"filter": FILTER},
        }
    )
    (note,) = definitions.notes({"inputSchema": shape.content["inputSchema"]})
    most = int(note.split()[-2])
    began = time.thread_time()

    fits = shape.violations({"a": _deep(most - 1) | ({"op": "not"} if wrong else {})})
    (deep,) = shape.violations({"a": _deep(28) | ({"op": "not"} if wrong else {})})

    assert most >= 5
    assert bool(fits) == wrong
    assert str(deep) == f"$: is nested too deeply to be checked: give at most {most} levels"
    assert time.thread_time() - began < 1.0


# As Playwright's tools are listed: the SDK shows what is there once its defaults are.
SCREENSHOT: Schema = {
    "type": "object",
    "properties": {
        "type": {"enum": ["png", "jpeg"], "default": "png"},
        "url": {"type": "string"},
        "clip": {
            "type": "object",
            "properties": {"scale": {"$ref": "#/$defs/scale"}, "x": {"type": "integer"}},
            "required": ["scale", "x"],
        },
    },
    "required": ["type", "url"],
    "additionalProperties": False,
    "$defs": {"scale": {"type": "number", "default": 1}},
}


def test_what_has_a_default_may_be_missing_and_must_fit_where_it_is_not() -> None:
    shape = ParsedDefinition.of(SCREENSHOT)

    assert shape.violations({"url": "x", "clip": {"x": 1}}) == []
    assert [str(one) for one in shape.violations({"clip": {}})] == [
        "$.clip.x: is required",
        "$.url: is required",
    ]
    assert [one.path for one in shape.violations({"url": "x", "type": "gif"})] == ["$.type"]
    # What is forbidden together stays so.
    both = {"properties": {"a": {"default": 1}}, "not": {"required": ["a"]}}
    assert ParsedDefinition.of({"type": "object", **both}).violations({"a": 1})


def test_tables_and_approvers_see_what_the_server_puts_in() -> None:
    row = {row.name: row for row in arguments.rows(SCREENSHOT)}["type"]
    shown = arguments.arguments(SCREENSHOT, {"url": "x", "clip": {"x": 1}})
    page = render_to_string("ui/arguments.html", {"arguments": shown})

    assert (row.required, row.default_label, row.default) == (False, "server default", "png")
    assert [one.name for one in shown.left_out] == ["type", "clip.scale"]
    assert " ".join(page.split()).count("(server default") == 2


def test_a_table_of_arguments_shows_recursion_once() -> None:
    wide = {f"p{n}": {"$ref": "#"} for n in range(10)}
    rows = arguments.rows({"type": "object", "properties": {**wide, "last": TREE | {"$id": "x"}}})

    assert [row.name for row in rows if row.depth == 0] == [*wide, "last"]
    assert all("recursive" in row.constraints for row in rows[:10])
    assert len(rows) < 20


def test_a_table_of_a_tree() -> None:
    rows = arguments.rows(TREE)

    assert [(row.name, row.type, row.depth) for row in rows] == [
        ("name", "string", 0),
        ("children", "array of object", 0),
    ]
    assert rows[1].constraints == ["recursive"]


@pytest.mark.parametrize("pattern", SLOW)
@pytest.mark.parametrize("text", ["a" * 50_000 + "!", "1" * 50_000 + "!", "x" * 50_000])
def test_no_pattern_stalls(pattern: str, text: str) -> None:
    schema = _object(a={"type": "string", "pattern": pattern})
    assert definitions.problems({**ADD, "inputSchema": schema}) == []
    validator = compiled.compiled(schema)
    began = time.thread_time()

    violations(validator, {"a": text}, subschemas=2)

    assert time.thread_time() - began < 0.1


@pytest.mark.parametrize(
    "pattern", ["^(?!admin)", "(?<=a)b", "(a)\\1", "a{1,9}{1,9999}{1,999}", "(", "x" * 600]
)
def test_a_pattern_that_only_backtracking_could_run_is_named_and_not_enforced(
    pattern: str,
) -> None:
    schema = {
        **_object(a={"type": "string", "pattern": pattern, "minLength": 2, "enum": ["user", "x"]}),
        "patternProperties": {pattern: {"type": "integer"}, "^y": {"type": "integer"}},
        "default": {"pattern": pattern},
    }
    tool = {**ADD, "inputSchema": schema}

    validator = compiled.compiled(schema)

    assert definitions.problems(tool) == []
    assert [pattern in note for note in definitions.notes(tool)] == [True]
    assert validator.is_valid({"a": "user"})
    assert not validator.is_valid({"a": "x"})
    assert not validator.is_valid({"y": "text"})
    assert schema["properties"]["a"]["pattern"] == pattern


@pytest.fixture
def canary() -> Iterator[tuple[str, Offering]]:
    """A server that nobody should ever ask for a schema."""
    listening = Offering()
    with serving(listening) as url:
        yield url, listening


@pytest.mark.django_db(transaction=True)
def test_a_hostile_definition_is_kept_and_cannot_be_published(
    calculator: Server,
    look: Callable[[Server], Discovery],
    offering: Offering,
    canary: tuple[str, Offering],
    client: Client,
    olga: User,
) -> None:
    url, listening = canary
    hostile = {**ADD, "inputSchema": _object(a={"$ref": f"{url}/schema.json"})}
    offering.tools = [hostile, {**ADD, "name": "honest"}]
    look(calculator)
    tool = Tool.objects.for_catalogue().get(name="add")
    assert tool.latest is not None

    with pytest.raises(services.PublicationRefused, match="only references within it"):
        services.publish(tool, difference=difference(tool), by=olga)
    refused = services.publish_all(calculator, by=olga)

    tool.refresh_from_db()
    assert tool.latest.content == hostile
    assert tool.state == Tool.State.NEW
    assert [reason.split(":")[0] for reason in refused] == ["“calculator.add” cannot be published"]
    assert Tool.objects.get(name="honest").state == Tool.State.PUBLISHED
    assert listening.asked == []

    client.force_login(olga)
    page = client.get(reverse("registry:tool", args=["calculator.add"])).content.decode()
    assert "It cannot be published:" in page
    assert f"refers to {url}/schema.json" in page
    assert '<button class="button primary">' not in page


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-1e9, 1e9)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def _shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shuffled(value[key]) for key in reversed(value)}
    return [_shuffled(child) for child in value] if isinstance(value, list) else value


@pytest.mark.long
@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_the_digest_is_of_the_content_and_not_of_its_spelling(tool: Schema) -> None:
    digest = definitions.digest({"url": "x"}, tool)

    assert definitions.digest({"url": "x"}, _shuffled(tool)) == digest
    assert definitions.digest({"url": "x"}, orjson.loads(orjson.dumps(tool))) == digest
    assert definitions.digest({"url": "y"}, tool) != digest
    assert definitions.digest({"url": "x"}, {**tool, "one more": 1}) != digest


@given(JSON)
def test_no_schema_breaks_the_checks(schema: Any) -> None:
    found = definitions.problems({**ADD, "inputSchema": schema})

    assert isinstance(schema, dict) or found


def test_a_command_with_other_words_is_another_server() -> None:
    def digest(*argv: str) -> str:
        return definitions.digest(
            definitions.identity(transport="stdio", url="", argv=list(argv)), ADD
        )

    assert digest("server", "--read-only") != digest("server")
    assert digest("a", "b c") != digest("a b", "c")
