"""Which revision a request speaks, and every way in which it can break that revision's rules."""

import json
from base64 import b64encode
from typing import Any

import pytest

from gateway.dispatch import dispatch
from gateway.protocol import legacy, messages, modern
from gateway.protocol.errors import RpcError
from gateway.protocol.headers import Headers

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
GOOD_META: dict[str, Any] = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
CALL: dict[str, Any] = {"name": "rec.echo", "arguments": {}, "_meta": GOOD_META}
VERSION, METHOD, NAME = "mcp-protocol-version", "mcp-method", "mcp-name"
GOOD = {VERSION: MODERN, METHOD: "tools/call", NAME: "rec.echo"}
GONE: Any = object()

MISMATCH, CAPABILITY, UNSUPPORTED = -32020, -32021, -32022
PARSE, REQUEST, PARAMS = -32700, -32600, -32602


def verdict(body: bytes, *lines: tuple[str, str]) -> Any:
    """The revision that is spoken, or the status and code of the refusal."""
    headers = Headers([(name.encode(), value.encode("latin-1")) for name, value in lines])
    try:
        message = messages.message(messages.parse(body), body.decode())
        if dispatch.is_modern(message, headers):
            return modern.client_of(message, headers).revision
        return legacy.client_of(headers, 1).revision
    except RpcError as refusal:
        return refusal.status, refusal.code


def asked(
    headers: dict[str, str], params: Any = GONE, method: str = "tools/call", **members: Any
) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, **members}
    message["params"] = CALL if params is GONE else params
    lines = [(k, v) for k, v in headers.items() if v is not GONE]
    return verdict(json.dumps(message).encode(), *lines)


def without(members: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in members.items() if name not in names}


def sentinel(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


def test_a_request_that_keeps_every_rule_is_modern() -> None:
    assert asked(GOOD) == MODERN


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26"])
def test_a_legacy_header_alone_is_legacy(version: str) -> None:
    assert asked({VERSION: version}, {"name": "rec.echo"}) == version


def test_no_header_at_all_is_the_oldest() -> None:
    assert asked({}, {"name": "rec.echo"}) == "2025-03-26"


def test_a_legacy_client_may_name_its_revision_in_the_body_too() -> None:
    meta = {f"{META}protocolVersion": "2025-11-25"}
    assert asked({VERSION: "2025-11-25"}, {"_meta": meta}) == "2025-11-25"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({VERSION: GONE}, MISMATCH),
        ({VERSION: ""}, MISMATCH),
        ({VERSION: "2025-11-25"}, MISMATCH),
        ({VERSION: "2026-07-29"}, MISMATCH),
        ({VERSION: f"{MODERN}, {MODERN}"}, MISMATCH),
        ({METHOD: GONE}, MISMATCH),
        ({METHOD: ""}, MISMATCH),
        ({METHOD: "tools/list"}, MISMATCH),
        ({METHOD: "Tools/Call"}, MISMATCH),
        ({METHOD: "tools/call\x00"}, MISMATCH),
        ({METHOD: sentinel("tools/call")}, MISMATCH),
        ({NAME: GONE}, MISMATCH),
        ({NAME: ""}, MISMATCH),
        ({NAME: "rec.erase"}, MISMATCH),
        ({NAME: "REC.ECHO"}, MISMATCH),
        ({NAME: "rec.ech\xf6"}, MISMATCH),
        ({NAME: "rec.echo\x7f"}, MISMATCH),
        ({NAME: sentinel("rec.erase")}, MISMATCH),
        ({NAME: sentinel("rec.echo").replace("base64", "BASE64")}, MISMATCH),
        ({NAME: "=?base64?cmVjLmVjaG8?="}, MISMATCH),
        ({NAME: "=?base64?cmVjLmVjaG9=?="}, MISMATCH),
        ({NAME: "=?base64?cmVj LmVjaG8=?="}, MISMATCH),
        ({NAME: "=?base64?////?="}, MISMATCH),
        ({NAME: "=?base64??="}, MISMATCH),
    ],
)
def test_headers_must_say_what_the_body_says(headers: dict[str, Any], code: int) -> None:
    assert asked({**GOOD, **headers}) == (400, code)


@pytest.mark.parametrize("value", ["  rec.echo", "rec.echo \t", sentinel("rec.echo"), "rec.echo"])
def test_space_around_a_value_and_base64_are_only_spelling(value: str) -> None:
    assert asked({**GOOD, NAME: value}) == MODERN


@pytest.mark.parametrize("name", ["wörld", " padded ", "a\nb", "=?base64?literal?=", "雪"])
def test_a_name_that_fits_no_header_comes_in_base64(name: str) -> None:
    params = {**CALL, "name": name}
    assert asked({**GOOD, NAME: sentinel(name)}, params) == MODERN


@pytest.mark.parametrize("name", [VERSION, METHOD, NAME])
def test_a_header_that_comes_twice_is_refused_even_if_both_agree(name: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": CALL})
    lines = [*GOOD.items(), (name, GOOD[name])]
    assert verdict(body.encode(), *lines) == (400, MISMATCH)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_header_that_names_a_task_names_the_same_one(method: str) -> None:
    params = {"taskId": "abc", "_meta": GOOD_META}
    headers = {VERSION: MODERN, METHOD: method}
    assert asked({**headers, NAME: "abd"}, params, method) == (400, MISMATCH)
    assert asked({**headers, NAME: "abc"}, params, method) == MODERN
    # As the tasks of FastMCP 4.1 have it.
    assert asked(headers, params, method) == MODERN


@pytest.mark.parametrize("method", ["tools/list", "server/discover"])
def test_where_nothing_is_named_no_name_is_needed(method: str) -> None:
    headers = {VERSION: MODERN, METHOD: method}
    assert asked(headers, {"_meta": GOOD_META}, method) == MODERN


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"name": "rec.echo"}, PARAMS),
        ({**CALL, "_meta": None}, PARAMS),
        ({**CALL, "_meta": []}, PARAMS),
        ({**CALL, "_meta": {}}, PARAMS),
        ({**CALL, "_meta": without(GOOD_META, f"{META}clientCapabilities")}, PARAMS),
        ({**CALL, "_meta": without(GOOD_META, f"{META}protocolVersion")}, PARAMS),
        ({**CALL, "_meta": {**GOOD_META, f"{META}clientCapabilities": None}}, PARAMS),
        ({**CALL, "_meta": {**GOOD_META, f"{META}clientCapabilities": []}}, PARAMS),
        ({**CALL, "_meta": {**GOOD_META, f"{META}protocolVersion": "2025-11-25"}}, MISMATCH),
        ({**CALL, "_meta": {**GOOD_META, f"{META}protocolVersion": None}}, MISMATCH),
        ({**CALL, "_meta": {**GOOD_META, f"{META}protocolVersion": 20260728}}, MISMATCH),
        ([], PARAMS),
        ("x", PARAMS),
        (None, PARAMS),
    ],
)
def test_what_a_request_must_say_of_itself(params: Any, code: int) -> None:
    assert asked(GOOD, params) == (400, code)


@pytest.mark.parametrize("version", ["1900-01-01", "2024-11-05", "2027-01-01", "DRAFT"])
def test_a_revision_that_we_do_not_speak_is_named_with_those_that_we_do(version: str) -> None:
    meta = {**GOOD_META, f"{META}protocolVersion": version}
    headers = {**GOOD, VERSION: version}
    assert asked(headers, {**CALL, "_meta": meta}) == (400, UNSUPPORTED)
    # Also for one that says it only in the header, as a legacy client would.
    assert asked({VERSION: version}, {"name": "rec.echo"}) == (400, UNSUPPORTED)

    refusal = modern.unsupported(version)
    assert refusal.data == {
        "supported": [MODERN, "2025-11-25", "2025-06-18", "2025-03-26"],
        "requested": version,
    }


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", PARSE),
        (b"{", PARSE),
        (b"nonsense", PARSE),
        (b"{} {}", PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping",}', PARSE),
        (b"\xef\xbb\xbf{}", PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}', PARSE),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', PARSE),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}', REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":9007199254740993}}', REQUEST),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 40 + b"1" + b"}" * 41,
            REQUEST,
        ),
        (b"5", REQUEST),
        (b'"ping"', REQUEST),
        (b"null", REQUEST),
        (b"{}", REQUEST),
        (b'{"id":1,"method":"ping"}', REQUEST),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', REQUEST),
        (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', REQUEST),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', REQUEST),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', REQUEST),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', REQUEST),
        (b'{"jsonrpc":"2.0","id":1}', REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', REQUEST),
        (b'{"jsonrpc":"2.0","result":{}}', REQUEST),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', PARAMS),
    ],
)
def test_what_is_no_message_is_refused(body: bytes, code: int) -> None:
    assert verdict(body) == (400, code)


def test_a_refusal_says_what_two_parsers_would_disagree_about() -> None:
    with pytest.raises(RpcError, match='The name "a" appears twice'):
        messages.parse(b'{"a":1,"a":2}')


@pytest.mark.parametrize(
    "written",
    [
        '{"method":"m","params":{"arguments":%s}}',
        '{"params" : {"x":[1,{"y":"}"}], "arguments" :\n %s , "z":0},"method":"m"}',
        '{"arguments":{"no":1},"params":{"arguments":%s},"method":"m"}',
        '{"params":{"name":"\\"arguments\\":{}","arguments":%s},"method":"m"}',
        '{"params":{"\\u0061rguments":%s,"x":{"arguments":{}}},"method":"m"}',
        '{"params":{"name":"arguments","arguments":%s},"method":"m"}',
    ],
)
@pytest.mark.parametrize("arguments", ["{}", '{ "a" : "}\\"" }', '[1, {"b":2}]', '"s"', "1e2"])
def test_the_very_characters_of_the_arguments_are_found(written: str, arguments: str) -> None:
    text = (written % arguments).replace("{", '{"jsonrpc":"2.0",', 1)
    message = messages.message(messages.parse(text.encode()), text)

    assert messages.raw_arguments(message) == arguments.encode()
