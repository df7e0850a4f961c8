"""Thirty operations of an OpenAPI document, each with a call and the same for curl."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
STRINGS = {"type": "array", "items": STRING}
RANGE = {"type": "object", "properties": {"from": INTEGER, "to": INTEGER}}
PET = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string", "description": "What it answers to."},
        "age": {"type": "number", "nullable": True},
        "parent": {"$ref": "#/components/schemas/Pet"},
        "food": {"oneOf": [{"$ref": "#/components/schemas/Hay"}, STRING]},
    },
}
HAY = {"type": "object", "required": ["kg"], "properties": {"kg": {"type": "number"}}}
PHOTO = base64.b64encode(b"\x89PNG\r\n\x00\xff").decode()


class ApiCase(NamedTuple):
    """One operation, and a call of it. `curl`: what stands behind `curl`, with {url} in it."""

    method: str
    path: str
    parameters: list[dict[str, Any]]
    arguments: dict[str, Any]
    curl: list[str]
    body: dict[str, Any] | None = None


def query(name: str, schema: Any = STRING, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, **more}


def path(name: str, schema: Any = STRING, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": schema, **more}


def header(name: str, schema: Any = STRING, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", "schema": schema, **more}


def content(kind: str, schema: Any = STRING, **more: Any) -> dict[str, Any]:
    return {"required": True, "content": {kind: {"schema": schema, **more}}}


FORM = {
    "type": "object",
    "properties": {"name": STRING, "tags": STRINGS, "range": RANGE},
}
UPLOAD = {
    "type": "object",
    "properties": {
        "title": STRING,
        "about": {"$ref": "#/components/schemas/Hay"},
        "photo": {"type": "string", "format": "binary"},
        "more": {"type": "array", "items": {"type": "string", "format": "binary"}},
    },
}
PET_BODY = content("application/json", {"$ref": "#/components/schemas/Pet"})
BYTES = content("application/octet-stream", {"type": "string", "format": "binary"})

CASES = [
    ApiCase(
        "GET",
        "/pets",
        [query("limit", INTEGER), query("tags", STRINGS)],
        {"limit": 5, "tags": ["a", "b c"]},
        ["{url}/pets?limit=5&tags=a&tags=b%20c"],
    ),
    ApiCase("GET", "/pets/{id}", [path("id", INTEGER)], {"id": 7}, ["{url}/pets/7"]),
    ApiCase(
        "DELETE",
        "/pets/{id}",
        [path("id", INTEGER)],
        {"id": 7},
        ["-X", "DELETE", "{url}/pets/7"],
    ),
    ApiCase(
        "POST",
        "/pets",
        [],
        {"body": {"name": "Ada", "age": 1.5}},
        ["--json", '{"name": "Ada", "age": 1.5}', "{url}/pets"],
        PET_BODY,
    ),
    ApiCase(
        "PUT",
        "/pets/{id}",
        [path("id", INTEGER)],
        {"id": 7, "body": {"name": "Ada", "food": {"kg": 2}}},
        ["-X", "PUT", "--json", '{"name": "Ada", "food": {"kg": 2}}', "{url}/pets/7"],
        PET_BODY,
    ),
    ApiCase(
        "PATCH",
        "/pets/{id}",
        [path("id", INTEGER)],
        {"id": 7, "body": {"name": "Ada", "parent": {"name": "Eve"}}},
        [
            *("-X", "PATCH", "-H", "Content-Type: application/merge-patch+json"),
            *("--data-binary", '{"name": "Ada", "parent": {"name": "Eve"}}', "{url}/pets/7"),
        ],
        content("application/merge-patch+json", {"$ref": "#/components/schemas/Pet"}),
    ),
    ApiCase(
        "GET",
        "/joined",
        [query("ids", {"type": "array", "items": INTEGER}, explode=False)],
        {"ids": [1, 2, 3]},
        ["{url}/joined?ids=1,2,3"],
    ),
    ApiCase(
        "GET",
        "/spaced",
        [query("words", STRINGS, style="spaceDelimited", explode=False)],
        {"words": ["a", "b"]},
        ["{url}/spaced?words=a%20b"],
    ),
    ApiCase(
        "GET",
        "/piped",
        [query("words", STRINGS, style="pipeDelimited", explode=False)],
        {"words": ["a", "b"]},
        ["{url}/piped?words=a%7Cb"],
    ),
    ApiCase(
        "GET",
        "/deep",
        [query("range", RANGE, style="deepObject", explode=True)],
        {"range": {"from": 1, "to": 9}},
        ["{url}/deep?range%5Bfrom%5D=1&range%5Bto%5D=9"],
    ),
    ApiCase(
        "GET",
        "/spread",
        [query("range", RANGE)],
        {"range": {"from": 1, "to": 9}},
        ["{url}/spread?from=1&to=9"],
    ),
    ApiCase(
        "GET",
        "/flat",
        [query("range", RANGE, explode=False)],
        {"range": {"from": 1, "to": 9}},
        ["{url}/flat?range=from,1,to,9"],
    ),
    ApiCase(
        "GET",
        "/reserved",
        [query("where", STRING, allowReserved=True)],
        {"where": "a/b:c,d?e=f%2Fg 50% & #+"},
        ["{url}/reserved?where=a/b:c,d?e=f%2Fg%2050%25%20%26%20%23%2B"],
    ),
    ApiCase(
        "GET",
        "/reserved-list",
        [query("where", STRINGS, allowReserved=True, explode=False)],
        {"where": ["a/b", "%e9%a9%ac", "100%"]},
        ["{url}/reserved-list?where=a/b,%e9%a9%ac,100%25"],
    ),
    # A list or object without members is undefined, and is not sent (RFC 6570, 2.3).
    ApiCase(
        "GET",
        "/undefined",
        [
            query("ids", STRINGS),
            query("words", STRINGS, explode=False),
            query("piped", STRINGS, style="pipeDelimited", explode=False),
            query("range", RANGE, explode=False),
            query("deep", RANGE, style="deepObject", explode=True),
            query("empty"),
            header("X-Ids", STRINGS),
        ],
        {"ids": [], "words": [], "piped": [], "range": {}, "deep": {}, "empty": "", "X-Ids": []},
        ["{url}/undefined?empty="],
    ),
    ApiCase(
        "GET",
        "/json-list",
        [{"name": "ids", "in": "query", "content": {"application/json": {"schema": STRINGS}}}],
        {"ids": []},
        ["{url}/json-list?ids=%5B%5D"],
    ),
    ApiCase(
        "POST",
        "/undefined-form",
        [],
        {"body": {"name": "Ada", "tags": []}},
        ["-d", "name=Ada", "{url}/undefined-form"],
        content(
            "application/x-www-form-urlencoded",
            FORM,
            encoding={"tags": {"style": "form", "explode": False}},
        ),
    ),
    ApiCase(
        "GET",
        "/nameless/{id}",
        [path("id", style="matrix")],
        {"id": ""},
        ["{url}/nameless/;id"],
    ),
    ApiCase(
        "GET",
        "/json",
        [{"name": "filter", "in": "query", "content": {"application/json": {"schema": RANGE}}}],
        {"filter": {"from": 1}},
        ["{url}/json?filter=%7B%22from%22%3A1%7D"],
    ),
    ApiCase(
        "GET",
        "/label/{id}",
        [path("id", STRINGS, style="label")],
        {"id": ["a", "b"]},
        ["{url}/label/.a,b"],
    ),
    ApiCase(
        "GET",
        "/labels/{id}",
        [path("id", RANGE, style="label", explode=True)],
        {"id": {"from": 1, "to": 2}},
        ["{url}/labels/.from=1.to=2"],
    ),
    ApiCase(
        "GET",
        "/matrix/{id}",
        [path("id", STRINGS, style="matrix")],
        {"id": ["a", "b"]},
        ["{url}/matrix/;id=a,b"],
    ),
    ApiCase(
        "GET",
        "/matrices/{id}",
        [path("id", STRINGS, style="matrix", explode=True)],
        {"id": ["a", "b"]},
        ["{url}/matrices/;id=a;id=b"],
    ),
    ApiCase(
        "GET",
        "/several/{ids}",
        [path("ids", {"type": "array", "items": INTEGER})],
        {"ids": [1, 2]},
        ["{url}/several/1,2"],
    ),
    ApiCase(
        "GET",
        "/between/{range}",
        [path("range", RANGE, explode=True)],
        {"range": {"from": 1, "to": 2}},
        ["{url}/between/from=1,to=2"],
    ),
    ApiCase(
        "GET",
        "/named",
        [header("X-Request", STRING), header("X-Ids", {"type": "array", "items": INTEGER})],
        {"X-Request": "one two", "X-Ids": [1, 2]},
        ["-H", "X-Request: one two", "-H", "X-Ids: 1,2", "{url}/named"],
    ),
    ApiCase(
        "GET",
        "/ranged",
        [header("X-Range", RANGE, explode=True)],
        {"X-Range": {"from": 1, "to": 2}},
        ["-H", "X-Range: from=1,to=2", "{url}/ranged"],
    ),
    ApiCase(
        "GET",
        "/biscuit",
        [{"name": "theme", "in": "cookie", "schema": STRING}],
        {"theme": "dark"},
        ["-b", "theme=dark", "{url}/biscuit"],
    ),
    ApiCase(
        "POST",
        "/form",
        [],
        {"body": {"name": "Ada & Eve", "tags": ["a", "b"]}},
        [
            *("--data-urlencode", "name=Ada & Eve", "--data-urlencode", "tags=a"),
            *("--data-urlencode", "tags=b", "{url}/form"),
        ],
        content("application/x-www-form-urlencoded", FORM),
    ),
    ApiCase(
        "POST",
        "/deep-form",
        [],
        {"body": {"range": {"from": 1, "to": 2}}},
        ["-d", "range%5Bfrom%5D=1&range%5Bto%5D=2", "{url}/deep-form"],
        content(
            "application/x-www-form-urlencoded",
            FORM,
            encoding={"range": {"style": "deepObject", "explode": True}},
        ),
    ),
    ApiCase(
        "POST",
        "/upload",
        [],
        {"body": {"title": "A horse", "photo": PHOTO}},
        [
            *("-F", "title=A horse"),
            *("-F", "photo=@{photo};filename=photo;type=application/octet-stream"),
            "{url}/upload",
        ],
        content("multipart/form-data", UPLOAD),
    ),
    ApiCase(
        "POST",
        "/uploads",
        [],
        {"body": {"about": {"kg": 2}, "more": [PHOTO, PHOTO]}},
        [
            *("-F", 'about={"kg":2};type=application/json'),
            *("-F", "more=@{photo};filename=more;type=image/png"),
            *("-F", "more=@{photo};filename=more;type=image/png"),
            "{url}/uploads",
        ],
        content("multipart/form-data", UPLOAD, encoding={"more": {"contentType": "image/png"}}),
    ),
    ApiCase(
        "POST",
        "/text",
        [],
        {"body": "Grüße,\n你好"},
        ["-H", "Content-Type: text/plain", "--data-binary", "Grüße,\n你好", "{url}/text"],
        content("text/plain"),
    ),
    ApiCase(
        "PUT",
        "/bytes",
        [],
        {"body": PHOTO},
        [
            *("-X", "PUT", "-H", "Content-Type: application/octet-stream"),
            *("--data-binary", "@{photo}", "{url}/bytes"),
        ],
        BYTES,
    ),
    ApiCase(
        "GET",
        "/find/{name}",
        [path("name"), query("q"), query("exact", {"type": "boolean"})],
        {"name": "马/horse", "q": "50%&more", "exact": True},
        [
            *("-G", "--data-urlencode", "q=50%&more", "--data-urlencode", "exact=true"),
            "{url}/find/%E9%A9%AC%2Fhorse",
        ],
    ),
    ApiCase(
        "POST",
        "/xml",
        [],
        {"body": "<pet/>"},
        ["-H", "Content-Type: application/xml", "--data-binary", "<pet/>", "{url}/xml"],
        content("application/xml"),
    ),
]


def document() -> dict[str, Any]:
    """All of them, and some that cannot be tools."""
    paths: dict[str, Any] = {}
    pet = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}
    for case in CASES:
        operation: dict[str, Any] = {
            "operationId": name_of(case),
            "summary": f"{case.method} {case.path}",
            "parameters": case.parameters,
            "responses": {"200": {"description": "Well.", **pet}},
        }
        if case.body:
            operation["requestBody"] = case.body
        paths.setdefault(case.path, {})[case.method.lower()] = operation
    paths["/elsewhere"] = {
        "get": {"servers": [{"url": "https://other.example"}], "responses": {"200": {}}}
    }
    paths["/nowhere"] = {
        "get": {"parameters": [{"$ref": "#/components/parameters/None"}], "responses": {}}
    }
    paths["/unfilled/{id}"] = {"get": {"responses": {"204": {"description": "Done."}}}}
    paths["/look"] = {"head": {"responses": {"204": {"description": "Done."}}}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Stable", "version": "1.0"},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {"schemas": {"Pet": PET, "Hay": HAY}},
    }


def name_of(case: ApiCase) -> str:
    word = case.path.strip("/").split("/")[0].replace("-", "_")
    many = "{" in case.path
    return f"{case.method.lower()}_{word}{'_one' if many else ''}"
