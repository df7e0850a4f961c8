"""A tool's schema as a form: what went in comes out, exactly, through a browser."""

import json
from typing import Any

import pytest
from django.http import QueryDict
from django.template.loader import render_to_string
from django.utils.translation import override
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import exact_json
from registry.publishing.published_tools import ParsedDefinition
from registry.schema_forms import schema_form
from registry.schema_forms.schema_form import SchemaForm, filled, posted
from registry.schema_forms.violation_words import in_words
from tests.forms import submitted

EVERYTHING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "array", "items": {"type": "string"}},
        "subject": {"type": "string", "maxLength": 100},
        "body": {"type": "string"},
        "amount": {"type": "number", "maximum": 10},
        "count": {"type": "integer"},
        "urgent": {"type": "boolean"},
        "priority": {"enum": ["low", "high", 3, None]},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "limit": {"type": ["integer", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "options": {
            "type": "object",
            "properties": {"copies": {"type": "integer"}, "deep": {"$ref": "#/$defs/deep"}},
            "required": ["copies"],
        },
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "n": {"type": "integer"}},
            },
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "anything": True,
    },
    "required": ["body"],
    "$defs": {"deep": {"type": "object", "properties": {"on": {"type": "boolean"}}}},
}


def html(form: SchemaForm) -> str:
    return render_to_string("ui/schema_form.html", {"form": form, "action": "/here/"})


def sent(form: SchemaForm, **changes: str) -> SchemaForm:
    """The form's page, through a browser."""
    data = QueryDict(mutable=True)
    data.update(submitted(html(form), **changes))
    return posted(form.schema, data)


def key(form: SchemaForm, path: str) -> str:
    assert form.root is not None
    return next(field.key for field in form.root.every() if field.json_path == path)


def errors(form: SchemaForm) -> dict[str, list[str]]:
    assert form.root is not None
    return {field.json_path: field.errors for field in form.root.every() if field.errors}


words = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBER = r"-?(0|[1-9][0-9]{0,10})(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?"
numbers = st.from_regex(NUMBER, fullmatch=True).map(exact_json.Number)
integers = st.integers(-(2**53) + 1, 2**53 - 1).map(lambda n: exact_json.Number(str(n)))
deep = st.fixed_dictionaries({}, optional={"on": st.booleans()})
values: dict[str, st.SearchStrategy[Any]] = {
    "to": st.lists(words, max_size=4),
    "subject": words,
    "body": words,
    "amount": numbers,
    "count": integers,
    "urgent": st.booleans(),
    "priority": st.sampled_from(["low", "high", exact_json.Number("3"), None]),
    "note": st.none() | words,
    "limit": st.none() | integers,
    "either": words | integers,
    "options": st.fixed_dictionaries(
        {},
        optional={
            "copies": integers,
            "deep": st.fixed_dictionaries({}, optional={"on": st.booleans()}),
            "x": words,
        },
    ),
    "lines": st.lists(
        st.fixed_dictionaries({}, optional={"sku": words, "n": integers}), max_size=3
    ),
    "labels": st.dictionaries(words, words, max_size=3),
    "anything": st.none() | words | numbers | st.lists(words, max_size=2),
    "unknown": words | st.booleans(),
}


@pytest.mark.long
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.fixed_dictionaries({}, optional=values))
def test_what_goes_in_comes_out(document: dict[str, Any]) -> None:
    form = sent(filled(EVERYTHING, exact_json.dumps(document).encode()))

    assert form.ok
    assert form.document is not None
    assert exact_json.loads(form.document) == document


@pytest.mark.long
@settings(max_examples=50, deadline=None)
@given(st.fixed_dictionaries({}, optional=values))
def test_raw_and_back_changes_nothing(document: dict[str, Any]) -> None:
    raw = sent(filled(EVERYTHING, exact_json.dumps(document).encode()), do="json")
    fields = sent(raw, do="form")
    form = sent(fields)

    assert (raw.mode, raw.redraw, fields.mode, fields.redraw) == ("json", True, "form", True)
    assert form.document is not None
    assert exact_json.loads(form.document) == document


def test_numbers_keep_their_digits() -> None:
    form = filled(EVERYTHING, b'{"amount": 1.10, "count": 10e2}')

    assert sent(form).document == b'{"amount":1.10,"count":10e2}'


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("ten", "not a number"),
        ("1,5", "not a number"),
        ("0x10", "not a number"),
        ("\u0661", "not a number"),
        ("NaN", "not a number"),
        ("9007199254740993", "parsers begin to disagree"),
    ],
)
def test_what_is_no_exact_number_is_said_at_its_field(written: str, said: str) -> None:
    form = filled(EVERYTHING)

    answer = sent(form, **{key(form, "$.amount"): written})

    assert answer.document is None
    assert said in errors(answer)["$.amount"][0]
    assert written in html(answer)


def test_an_empty_field_is_left_out_unless_it_stands_for_something() -> None:
    form = filled(EVERYTHING, b'{"subject": "Hello", "limit": 3}')
    subject, limit = key(form, "$.subject"), key(form, "$.limit")

    left_out = sent(form, **{subject: "", limit: ""})
    said = sent(
        form, **{subject: "", f"{subject}:empty": "empty", limit: "", f"{limit}:empty": "null"}
    )

    assert left_out.document == b"{}"
    assert said.document == b'{"subject":"","limit":null}'


REQUIRED = {
    "type": "object",
    "properties": {
        "to": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "body": {"type": "string"},
        "note": {"type": "string"},
        "limit": {"type": ["integer", "null"]},
    },
    "required": ["to", "body", "limit"],
}


def test_a_required_field_has_no_choice_to_be_left_out() -> None:
    form = filled(REQUIRED)
    assert form.root
    ways = {field.json_path: [way for way, _label in field.ways] for field in form.root.every()}

    assert ways["$.to"] == ["empty"]
    assert ways["$.body"] == ["out"]
    assert ways["$.note"] == ["out", "empty"]
    assert ways["$.limit"] == ["out", "null"]
    assert html(form).count("If left empty:") == 2


def test_a_required_text_that_is_empty_stays_so() -> None:
    form = filled(REQUIRED, b'{"to": ["ana"], "body": "", "limit": null}')

    assert sent(form).document == b'{"to":["ana"],"body":"","limit":null}'


def test_items_are_added_and_removed_by_buttons() -> None:
    form = filled(EVERYTHING, b'{"to": ["ana", "ben"]}')
    to = key(form, "$.to")

    more = sent(form, do=f"add {to}")
    less = sent(sent(more, **{f"{to}.2": "cid"}), do=f"remove {to}.0")

    assert more.redraw
    assert "autofocus" in html(more)
    assert sent(more, **{f"{to}.2": "cid"}).document == b'{"to":["ana","ben","cid"]}'
    assert sent(less).document == b'{"to":["ben","cid"]}'


def test_the_last_item_removed_leaves_an_empty_list_if_that_is_chosen() -> None:
    form = filled(EVERYTHING, b'{"to": ["ana"]}')
    to = key(form, "$.to")
    none = sent(form, do=f"remove {to}.0")

    assert sent(none).document == b"{}"
    assert sent(none, **{f"{to}:empty": "empty"}).document == b'{"to":[]}'


def test_violations_stand_at_their_fields() -> None:
    form = filled(EVERYTHING, b'{"amount": 11, "options": {}, "lines": [{"n": 1.5}], "new": 1}')
    shape = ParsedDefinition(
        '{"inputSchema": ' + exact_json.dumps(exact_json.exact(EVERYTHING)) + "}"
    )

    form.show(shape.violations(form.value))

    assert errors(form) == {
        "$.amount": ["“amount” must be at most 10"],
        "$.body": ["“body” is required"],
        "$.options.copies": ["“options.copies” is required"],
        "$.lines[0].n": ["“lines[0].n” must be of type integer"],
    }
    assert not form.ok


def test_violations_are_said_in_the_language_of_the_page() -> None:
    schema = {
        "required": ["body"],
        "properties": {
            "count": {"minItems": 2},
            "kind": {"enum": ["a", "b"]},
            "size": {"anyOf": [{"type": "string"}, {"maximum": 3}]},
        },
        "additionalProperties": False,
    }
    shape = ParsedDefinition(json.dumps({"inputSchema": {"type": "object", **schema}}))
    found = shape.violations({"count": [1], "kind": "c", "size": 4, "more": 1})

    with override("zh-hans"):
        said = {one.path: in_words(one) for one in found}

    assert said == {
        "$.body": "必填",
        "$.count": "至少须有 2 个元素",
        "$.kind": '须为以下之一：["a","b"]',
        "$.size": "须至少符合以下一项：$.size 类型须为 string; $.size 不得大于 3",
        "$.more": "不是已知的属性",
    }
    assert {one.path: in_words(one) for one in found} == {one.path: one.expected for one in found}


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('{"a": 1, "a": 2}', "appears twice"),
        ('{"a": 9007199254740993}', "parsers begin to disagree"),
        ("{", "Not JSON"),
        ("", "Not JSON"),
        ("{} {}", "more after the end"),
    ],
)
def test_raw_json_is_as_strict_as_the_door(raw: str, said: str) -> None:
    form = sent(filled(EVERYTHING), do="json")

    answer = sent(form, raw=raw)

    assert answer.document is None
    assert said in answer.errors[0]


def test_raw_json_is_taken_as_it_stands() -> None:
    form = sent(filled(EVERYTHING), do="json")

    assert sent(form, raw='{"b" : 1.0,\r\n "a":\t2}').document == b'{"b" : 1.0,\n "a":\t2}'


def test_what_cannot_be_seen_is_shown_as_an_escape() -> None:
    form = filled(EVERYTHING, '{"subject": "pay\u200b \u202enow"}'.encode())

    page = html(form)

    assert "\u200b" not in page
    assert r"&quot;pay\u200b \u202enow&quot;" in page
    assert sent(form).document == '{"subject":"pay\u200b \u202enow"}'.encode()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"anyOf": [{"type": "object"}, {"type": "string"}]},
        {
            "type": "object",
            "properties": {f"p{n}": {"type": "string"} for n in range(300)},
        },
    ],
)
def test_what_cannot_be_a_form_is_raw_json(schema: dict[str, Any]) -> None:
    form = filled(schema, b'{"a": 1.0}')

    assert form.mode == "json"
    assert form.why_raw
    assert sent(form).document == b'{\n  "a": 1.0\n}'


def test_a_tool_without_arguments_says_so() -> None:
    form = filled({"type": "object", "properties": {}})

    assert "takes no arguments" in html(form)
    assert sent(form).document == b"{}"


def test_another_schema_is_another_form() -> None:
    form = filled(EVERYTHING, b'{"subject": "x"}')
    data = QueryDict(mutable=True)
    data.update(submitted(html(form)))

    answer = posted({"type": "object", "properties": {"other": {"type": "string"}}}, data)

    assert answer.document is None
    assert "definition changed" in answer.errors[0]


def test_a_member_that_has_a_field_is_not_said_twice() -> None:
    form = filled(EVERYTHING, b'{"subject": "x", "extra": 1}')
    rest = next(f for f in form.root.every() if f.is_rest) if form.root else None
    assert rest is not None

    answer = sent(form, **{rest.key: '{"subject": "y"}'})

    assert answer.document is None
    assert "has its own field" in rest_errors(answer)


def rest_errors(form: SchemaForm) -> str:
    assert form.root is not None
    return " ".join(e for field in form.root.every() if field.is_rest for e in field.errors)


def test_the_form_knows_what_everybody_else_will_read() -> None:
    form = sent(filled(EVERYTHING, b'{"amount": 1.10}'))

    assert form.value == {"amount": 1.1}
    assert form.mode == schema_form.FORM


TARGET: dict[str, Any] = {
    "type": "object",
    "properties": {
        "target": {
            "oneOf": [
                {
                    "title": "A person",
                    "type": "object",
                    "properties": {"kind": {"const": "person"}, "name": {"type": "string"}},
                    "required": ["kind", "name"],
                },
                {"$ref": "#/$defs/place"},
                {"type": "string"},
                {"type": "null"},
            ]
        },
        "photo": {"type": "string", "contentEncoding": "base64"},
        "day": {"type": "string", "format": "date", "examples": ["2026-01-01"]},
    },
    "required": ["target"],
    "$defs": {
        "place": {
            "type": "object",
            "properties": {"kind": {"const": "place"}, "floor": {"type": "integer"}},
            "required": ["kind"],
        }
    },
}


@pytest.mark.parametrize(
    "document",
    [
        b'{"target":{"kind":"person","name":"Ana"}}',
        b'{"target":{"kind":"place","floor":1.0}}',
        b'{"target":"nobody"}',
        b'{"target":null}',
        # Of no branch: it stays as it is.
        b'{"target":{"kind":"thing"}}',
        b'{"target":[1]}',
        b'{"target":"a\\u200bb"}',
    ],
)
def test_one_of_several_schemas_keeps_what_it_holds(document: bytes) -> None:
    back = sent(filled(TARGET, document))

    assert back.document is not None
    assert exact_json.loads(back.document) == exact_json.loads(document)


def test_another_of_several_schemas_is_chosen_and_filled_in() -> None:
    form = filled(TARGET)
    of = key(form, "$.target")

    form = sent(form, **{f"{of}:which": "1", "do": f"vary {of}"})

    assert form.redraw
    assert form.document is None
    labels = {field.row.name for field in form.root.every()} if form.root else set()
    assert {"kind", "floor"} <= labels
    done = sent(form, **{key(form, "$.target.kind"): "0", key(form, "$.target.floor"): "3"})
    assert done.document == b'{"target":{"kind":"place","floor":3}}'


def test_branches_are_called_by_what_tells_them_apart() -> None:
    assert filled(TARGET).root
    target = next(f for f in filled(TARGET).root.every() if f.kind == "variant")  # type: ignore[union-attr]

    assert target.variants == ["A person", "place", "string", "null"]


def test_a_file_a_date_and_an_example_have_their_own_controls() -> None:
    page = html(filled(TARGET))

    assert 'type="file"' in page
    assert 'type="date"' in page
    assert '<option value="2026-01-01">' in page
    assert 'type="date"' not in html(filled(TARGET, b'{"target":null,"day":"tomorrow"}'))


TREE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "left": {"$ref": "#"},
        "right": {"$ref": "#"},
        "children": {"type": "array", "items": {"$ref": "#"}},
    },
}


def test_recursion_is_drawn_as_far_as_it_is_asked_for() -> None:
    """What a schema would repeat without end is JSON; items of a list are fields, one by one."""
    form = filled(TREE)
    page = html(form)
    given = b'{"name": "a", "left": {"name": "b"}, "children": [{"name": "c", "children": []}]}'
    whole = filled(TREE, given)

    assert form.root is not None
    assert [field.kind for field in form.root.children] == ["text", "json", "json", "list"]
    assert page.count("<textarea") < 6
    assert whole.root is not None
    (child,) = whole.root.children[3].children
    assert [field.kind for field in child.children] == ["text", "json", "json", "list"]
    assert json.loads(sent(whole).document or b"") == json.loads(given)
