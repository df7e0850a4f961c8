"""What agents get, quickly, and what is wrong with what they send."""

import re
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import orjson
import pytest
from django.db import connection
from django.db.models import OuterRef, Subquery
from django.test.utils import CaptureQueriesContext

from accounts.models import Agent, User
from registry import services
from registry.methods import READ
from registry.models import Definition, Item, ItemVersion, Server, ShownTool, Tag, Tool, Toolset
from registry.publishing import changes, published_catalogue, published_items
from registry.schemas import compiled, definitions
from registry.schemas.violations import MAX_VIOLATIONS, Violation, violations

Schema = dict[str, Any]


@pytest.fixture
def offer(olga: User) -> Callable[..., list[Tool]]:
    """Many published tools of one server in the toolset `all`, the short way into the tables."""
    server = services.register(
        "many", transport="http", url="http://127.0.0.1:9/", owner=olga, by=olga
    )
    toolset = services.create_toolset("all", by=olga)
    services.add_server(toolset, server, by=olga)
    return lambda *contents: _insert(server, contents)


def _insert(server: Server, contents: tuple[Schema, ...]) -> list[Tool]:
    tools = Tool.objects.bulk_create(
        Tool(server=server, name=c["name"], exposed_name=f"many.{c['name']}") for c in contents
    )
    identity = services.identity_of(server)
    kept = Definition.objects.bulk_create(
        Definition(
            tool=tool,
            version=1,
            digest=definitions.digest(identity, content),
            body=definitions.body(content),
        )
        for tool, content in zip(tools, contents, strict=True)
    )
    for tool, definition in zip(tools, kept, strict=True):
        tool.latest = tool.published = definition
        tool.state = Tool.State.PUBLISHED
    of_tool = Definition.objects.filter(tool=OuterRef("pk")).values("pk")
    Tool.objects.filter(server=server).update(
        latest=Subquery(of_tool), published=Subquery(of_tool), state=Tool.State.PUBLISHED
    )
    return tools


Offer = Callable[..., list[Tool]]


def _content(name: str, **schema: Any) -> Schema:
    return {"name": name, "description": "Does it.", "inputSchema": {"type": "object", **schema}}


def test_it_knows_everything_that_a_call_needs(offer: Offer) -> None:
    content = {**_content("do"), "annotations": {"readOnlyHint": False, "title": "Do"}, "x": [1]}
    (tool,) = offer(content)

    known = published_catalogue.load().tool(tool.pk)

    assert known is not None
    assert known.content == content
    assert known.hints == {"readOnlyHint": False}
    assert (known.server_slug, known.name, known.exposed_name) == ("many", "do", "many.do")
    assert known.digest == tool.latest.digest  # type: ignore[union-attr]
    assert known.connection.url == "http://127.0.0.1:9/"
    assert known == published_catalogue.one(tool.pk)


def test_lists_come_out_alike_in_every_process(offer: Offer) -> None:
    names = ["b", "a.z", "a", "C", "a-b", "_", "10", "9"]
    offer(*map(_content, names))

    toolset = published_catalogue.load().toolset("all")

    assert toolset is not None
    shown = [name.replace(".", "_") for name in names]
    assert list(toolset.by_exposed) == sorted(f"many_{name}" for name in shown)
    assert list(toolset.by_server["many"]) == sorted(shown)


def test_a_name_that_two_tools_come_to_finds_neither(offer: Offer) -> None:
    (dotted,) = offer(_content("a.b"))
    before = published_catalogue.load().toolset("all")
    offer(_content("a_b"))

    after = published_catalogue.load().toolset("all")

    assert before is not None
    assert after is not None
    found = before.by_server["many"].find("a_b")
    assert found is not None
    assert found.tool_id == dotted.pk
    # Who has the list of before does not reach the other tool.
    assert after.by_server["many"].find("a_b") is None
    assert after.by_server["many"].find("a.b") is not None
    assert len(after.by_server["many"]) == 2


def test_what_is_not_there_is_not_there(offer: Offer) -> None:
    catalogue = published_catalogue.load()

    assert catalogue.toolset("nothing") is None
    assert catalogue.tool(0) is None
    assert published_catalogue.one(0) is None


def test_a_later_load_reads_only_what_it_has_not_seen(offer: Offer) -> None:
    (first,) = offer(_content("first"))
    before = published_catalogue.load().tool(first.pk)
    offer(_content("second"))

    with CaptureQueriesContext(
        connection,
    ) as queries:
        after = published_catalogue.load().tool(first.pk)

    assert before is not None
    assert after is not None
    assert after.shape is before.shape
    assert len(queries) <= 10
    assert "Does it." not in str(queries.captured_queries)


def test_what_is_not_offered_any_more_is_not_kept_in_memory(offer: Offer, olga: User) -> None:
    (tool,) = offer(_content("first"))
    published_catalogue.load()
    key = (tool.latest_id, tool.latest.digest)  # type: ignore[union-attr]
    assert key in published_catalogue._shapes

    services.retire(tool, by=olga)
    published_catalogue.load()

    assert key not in published_catalogue._shapes


def test_a_change_makes_only_what_it_concerns_anew(offer: Offer, olga: User) -> None:
    first, second = offer(_content("first"), _content("second"))
    before = published_catalogue.load()
    assert published_catalogue.load().toolset("all") is before.toolset("all")

    Tool.objects.filter(pk=first.pk).update(timeout_s=7)
    after = published_catalogue.load()

    changed = after.tool(first.pk)
    assert changed is not None
    assert changed.timeout_s == 7
    assert after.tool(second.pk) is before.tool(second.pk)
    mine = after.toolset("all")
    assert mine is not None
    assert mine.by_exposed["many_first"] is mine.by_server["many"]["first"] is changed


CHANGES: dict[str, Callable[[list[Tool], User], object]] = {
    "a tool": lambda tools, _: Tool.objects.filter(pk=tools[1].pk).update(mode="background"),
    "its tags": lambda tools, _: tools[1].tags.add(Tag.objects.create(name="slow")),
    "a tag taken away": lambda tools, _: tools[2].tags.clear(),
    "a tag's name": lambda _, __: Tag.objects.update(name="quick"),
    "gone": lambda tools, olga: services.retire(tools[0], by=olga),
    "one gone, one new": lambda tools, olga: _replace(tools[0], olga),
    "a new version": lambda tools, olga: _publish_anew(tools[0], olga),
    "a name of ours": lambda tools, _: Tool.objects.filter(pk=tools[0].pk).update(
        exposed_name="many.zzz"
    ),
    "all of them": lambda _, __: Tool.objects.update(timeout_s=9),
    "its server": lambda _, __: Server.objects.update(
        slug="more", url="http://127.0.0.1:10/", connection_version=2
    ),
    "what it may ask": lambda _, __: Server.objects.update(relays=[]),
    "the server is off": lambda _, __: Server.objects.update(enabled=False),
    "a name": lambda tools, _: ShownTool.objects.create(
        toolset=Toolset.objects.get(slug="all"), tool=tools[0], name="other"
    ),
    "the separator": lambda _, __: Toolset.objects.update(separator="-"),
    "how long is waited": lambda _, __: Toolset.objects.update(hold_s=3),
    "search mode": lambda _, __: Toolset.objects.update(search_mode=True),
    "own tools": lambda _, __: Toolset.objects.update(own_tools=["get_call"]),
    "agents": lambda _, olga: Toolset.objects.get(slug="all").agents.add(
        Agent.objects.create(name="scout", owner=olga)
    ),
    "another server": lambda tools, _: Toolset.objects.get(slug="all").servers.clear(),
    "one tool alone": lambda tools, _: _one_alone(tools[1]),
    "a resource": lambda tools, _: _publish_resource(tools[0]),
}


def _alone(look: Callable[[Any], changes.Look]) -> Callable[[Any], changes.Look]:
    """As if no transaction were under way in other databases, as other tests' are."""

    def looking(before: changes.Look | None) -> changes.Look:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
            return look(before)._replace(oldest=cursor.fetchone()[0])

    return looking


# Committed, as other processes do: of a transaction's own rows nothing can be told.
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("change", ["a tool", "gone", "one gone, one new", "a new version"])
def test_of_many_tools_only_those_that_changed_are_read_again(
    offer: Offer, olga: User, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = offer(*(_content(f"tool{n}") for n in range(30)))
    monkeypatch.setattr(changes, "look", _alone(changes.look))
    published_catalogue.load()
    read: list[int] = []
    rows = published_catalogue._rows

    def reading(*candidates: Any, **options: Any) -> Any:
        found = rows(*candidates, **options)
        read.append(len(found))
        return found

    monkeypatch.setattr(published_catalogue, "_rows", reading)
    CHANGES[change](tools, olga)

    published_catalogue.load()

    assert read == [0 if change == "gone" else 1]


@pytest.mark.django_db(transaction=True)
def test_what_was_being_written_while_it_was_read_is_read_the_next_time(offer: Offer) -> None:
    first, second, third = offer(_content("first"), _content("second"), _content("third"))
    published_catalogue.load()
    with closing(connection.copy()) as slow:
        slow.set_autocommit(False)
        slow.cursor().execute("UPDATE registry_tool SET timeout_s = 7 WHERE id = %s", [first.pk])
        with closing(connection.copy()) as quick:
            # Whose transaction is younger, and ends first. Past the number that all changes count
            # in, which would make it wait.
            quick.cursor().execute("SELECT pg_current_xact_id()")
            quick.cursor().execute(
                "UPDATE registry_tool SET used_on = now() WHERE id <> %s", [first.pk]
            )
        published_catalogue.load()
        slow.commit()

    found = published_catalogue.load()

    assert [found.tool(tool.pk).timeout_s for tool in (first, second, third)] == [7, 120, 120]  # type: ignore[union-attr]


def _replace(tool: Tool, olga: User) -> None:
    services.retire(tool, by=olga)
    new = Tool.objects.create(server=tool.server, name="another", exposed_name="many.another")
    _publish_anew(new, olga)


def _publish_anew(tool: Tool, olga: User) -> None:
    content = _content(tool.name, properties={"a": {"type": "string"}})
    digest = definitions.digest(services.identity_of(tool.server), content)
    body = definitions.body(content)
    made = Definition.objects.create(tool=tool, version=2, digest=digest, body=body)
    Tool.objects.filter(pk=tool.pk).update(latest=made, published=made, state=Tool.State.PUBLISHED)


def _one_alone(tool: Tool) -> None:
    toolset = Toolset.objects.get(slug="all")
    toolset.servers.clear()
    toolset.tools.add(tool)


def _publish_resource(tool: Tool) -> None:
    server = tool.server
    Tool.objects.filter(pk=tool.pk).update(name=READ)
    item = Item.objects.create(server=server, kind=Item.Kind.RESOURCE, key="file:///a")
    version = ItemVersion.objects.create(item=item, version=1, digest="d" * 64, body='{"uri":"a"}')
    Item.objects.filter(pk=item.pk).update(
        state=Item.State.PUBLISHED, latest=version, published=version
    )


def test_what_python_calls_equal_is_a_change_of_a_resource(offer: Offer) -> None:
    (tool,) = offer(_content("first"))
    _publish_resource(tool)
    _publish_version('{"uri":"a","x":true,"y":1}', "e")
    before = _resource()

    _publish_version('{"uri":"a","x":1,"y":1.0}', "f")
    after = _resource()

    assert str(after) == "{'uri': 'a', 'x': 1, 'y': 1.0}"
    # So that whoever listens is told.
    assert before != after


def _publish_version(body: str, digest: str) -> None:
    item = Item.objects.get()
    made = ItemVersion.objects.create(item=item, version=ord(digest), digest=digest * 64, body=body)
    Item.objects.update(latest=made, published=made)


def _resource() -> Any:
    toolset = published_catalogue.load().toolset("all")
    assert toolset is not None
    return toolset.offered["many"].resources["file:///a"]


@pytest.mark.parametrize("change", CHANGES)
def test_what_changed_is_what_everything_made_anew_is(
    offer: Offer, olga: User, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = offer(_content("first"), _content("second"), _content("third"))
    tools[2].tags.add(Tag.objects.create(name="fast"))
    before = published_catalogue.load()
    CHANGES[change](tools, olga)

    after = published_catalogue.load()

    for kept, nothing in (
        (published_catalogue._Before, {"servers": {}, "loaded": None, "toolsets": {}}),
        (published_items._LastRead, {"loaded": ([], {})}),
    ):
        for name, value in nothing.items():
            monkeypatch.setattr(kept, name, value)
    anew = published_catalogue.load()
    assert vars(after)["_tools"].keys() == vars(anew)["_tools"].keys()
    assert [_plain(tool) for tool in vars(after)["_tools"].values()] == [
        _plain(tool) for tool in vars(anew)["_tools"].values()
    ]
    assert _plain(after.toolset("all")) == _plain(anew.toolset("all"))
    assert _plain(after.toolset("all")) != _plain(before.toolset("all"))


def _plain(made: Any) -> str:
    """What it says, without what only this process knows it by."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(made))


@pytest.mark.long
def test_ten_thousand_tools_are_read_again_in_a_moment(offer: Offer) -> None:
    offer(*(_content(f"tool{n}") for n in range(10_000)))
    published_catalogue.load()
    began = time.thread_time()

    toolset = published_catalogue.load().toolset("all")

    assert toolset is not None
    assert len(toolset.by_exposed) == 10_000
    # 0.12 s alone on the machine; parsing everything again would take a second or more.
    assert time.thread_time() - began < 1.0


def test_a_schema_that_is_no_longer_accepted_accepts_nothing(offer: Offer) -> None:
    (tool,) = offer(_content("old", properties={"a": {"$ref": "http://127.0.0.1:1/x"}}))

    known = published_catalogue.one(tool.pk)

    assert known is not None
    assert [str(v) for v in known.violations({})] == [
        "$: cannot be checked: the tool's schema is not accepted here"
    ]


SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 150},
        "size": {"enum": ["small", "large", None]},
        "kind": {"const": "cat"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "step": {"type": "number", "multipleOf": 0.5},
        "id": {"anyOf": [{"type": "integer"}, {"type": "string", "minLength": 3}]},
        "one": {"oneOf": [{"type": "integer"}, {"minimum": 5}]},
        "map": {"type": "object", "propertyNames": {"maxLength": 3}, "minProperties": 1},
        "odd name": {"type": ["string", "null"]},
        "none": False,
        "any": {"not": {"type": "null"}},
    },
    "required": ["name"],
    "additionalProperties": False,
}
WRONG: dict[str, tuple[Schema, list[str]]] = {
    "missing": ({}, ["$.name: is required"]),
    "unknown": (
        {"name": "ann", "nick": 1, "é": 2},
        ["$.nick: is not a known property", '$["é"]: is not a known property'],
    ),
    "type": ({"name": 5}, ["$.name: must be of type string"]),
    "types": ({"name": "ann", "odd name": 5}, ['$["odd name"]: must be of type null or string']),
    "short": ({"name": "a"}, ["$.name: must have at least 2 characters"]),
    "long": ({"name": "abcdef"}, ["$.name: must have at most 5 characters"]),
    "pattern": ({"name": "ANN"}, ["$.name: must match the pattern ^[a-z]+$"]),
    "small": ({"name": "ann", "age": -1}, ["$.age: must be at least 0"]),
    "large": ({"name": "ann", "age": 150}, ["$.age: must be less than 150"]),
    "enum": ({"name": "ann", "size": "xl"}, ['$.size: must be one of ["small","large",null]']),
    "const": ({"name": "ann", "kind": "dog"}, ['$.kind: must be "cat"']),
    "item": ({"name": "ann", "tags": ["a", 5]}, ["$.tags[1]: must be of type string"]),
    "few": ({"name": "ann", "tags": []}, ["$.tags: must have at least 1 item"]),
    "many": (
        {"name": "ann", "tags": ["a", "b", "c"]},
        ["$.tags: must have at most 2 items"],
    ),
    "step": ({"name": "ann", "step": 0.7}, ["$.step: must be a multiple of 0.5"]),
    "no alternative": (
        {"name": "ann", "id": "ab"},
        [
            "$.id: must fit at least one of: $.id must be of type integer; "
            "$.id must have at least 3 characters"
        ],
    ),
    "two alternatives": (
        {"name": "ann", "one": 7},
        ["$.one: fits more than one alternative, where it must fit exactly one"],
    ),
    "name of a property": (
        {"name": "ann", "map": {"long": 1}},
        ["$.map: has a property whose name does not fit: it must have at most 3 characters"],
    ),
    "no properties": (
        {"name": "ann", "map": {}},
        ["$.map: must have at least 1 property"],
    ),
    "forbidden": ({"name": "ann", "none": 1}, ["$.none: must not be there"]),
    "negated": ({"name": "ann", "any": None}, ["$.any: must not fit the schema under “not”"]),
    "several": (
        {"age": "old", "nick": 1},
        [
            "$.age: must be of type integer",
            "$.nick: is not a known property",
            "$.name: is required",
        ],
    ),
    "no object": ([], ["$: must be of type object"]),  # type: ignore[dict-item]
}


@pytest.mark.parametrize(("arguments", "expected"), WRONG.values(), ids=WRONG)
def test_every_violation_says_where_and_what_would_be_right(
    arguments: Schema, expected: list[str]
) -> None:
    found = violations(compiled.compiled(SCHEMA), arguments, subschemas=20)

    assert sorted(map(str, found)) == sorted(expected)


def test_what_fits_has_no_violations(offer: Offer) -> None:
    (tool,) = offer(_content("do", properties=SCHEMA["properties"], required=["name"]))
    known = published_catalogue.one(tool.pk)

    assert known is not None
    assert known.violations({"name": "ann", "age": 5, "tags": ["a"], "odd name": None}) == []


def test_it_never_repeats_what_was_given() -> None:
    secret = "s3cret"
    given = dict.fromkeys(SCHEMA["properties"], secret)

    found = violations(compiled.compiled(SCHEMA), given, subschemas=20)

    assert len(found) > 5
    assert secret not in str(found)


def test_it_names_twenty_at_most() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}

    found = violations(compiled.compiled(schema), {f"p{n}": "x" for n in range(100)}, subschemas=2)

    assert len(found) == MAX_VIOLATIONS


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": {"type": "integer"}},
        {"type": "array", "items": {"anyOf": [{"type": "integer"}] * 50}},
        {"type": "object"},
    ],
)
def test_a_million_mistakes_hold_up_nobody(schema: Schema) -> None:
    arguments = orjson.loads(orjson.dumps(["x"] * 250_000))
    validator = compiled.compiled(schema)
    began = time.thread_time()

    found = violations(validator, arguments, subschemas=52)

    assert len(found) == 1
    assert isinstance(found[0], Violation)
    assert time.thread_time() - began < 0.2
