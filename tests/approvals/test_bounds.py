"""Which arguments a grant covers."""

import json
import posixpath
import unicodedata
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.bounds import Bound, Pattern, amount, leaves, parse
from core import exact_json

PINNED = b'{"to": ["ana", "ben"], "amount": 10, "path": "reports/2026", "deep": {"on": true}}'


def covers(pinned: bytes, given: str, *bounds: Bound) -> bool:
    pattern = Pattern(exact_json.loads(pinned), {bound.path: bound for bound in bounds})
    return pattern.covers(exact_json.loads(given.encode()))


def with_(**changes: Any) -> str:
    return json.dumps({**json.loads(PINNED), **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"to": ["ana"]},
        {"to": ["ben", "ana"]},
        {"amount": 11},
        {"amount": 10.0},
        {"amount": "10"},
        {"amount": None},
        {"deep": {"on": 1}},
        {"deep": {"on": True, "off": False}},
        {"deep": {}},
        {"more": 1},
    ],
)
def test_whatever_is_not_let_vary_is_the_same(changes: dict[str, Any]) -> None:
    assert covers(PINNED, with_())
    assert not covers(PINNED, with_(**changes))


PREFIX = Bound(("path",), "prefix", prefix="reports/")


@pytest.mark.parametrize(
    ("path", "holds"),
    [
        ("reports/2027", True),
        ("reports/", True),
        ("report", False),
        ("reports/../secrets", False),
        ("reports/..\\secrets", False),
        ("reports/a..b", True),
        ("reports/\u200b", False),
        ("Reports/2027", False),
        (3, False),
        (["reports/"], False),
    ],
)
def test_a_text_begins_as_it_was_granted(path: Any, holds: bool) -> None:
    assert covers(PINNED, with_(path=path), PREFIX) is holds


# What programs make of it: a folder above, another file, another host.
HOSTILE_PATHS = [
    "/data/../etc/passwd", "/data/./x", "/data/..", "/data/.", "/data/%2e%2e/etc", "/data/%2E%2e",
    "/data/.%2e/etc", "/data/%252e%252e/etc", "/data/%25252e%25252e/etc", "/data/..%2fetc",
    "/data/%2fetc", "/data/%5c..%5cetc", "/data/x%2f..%2f..%2fetc", "/data/..%5cetc",
    "/data\\..\\etc", "/data/..\\etc", "/data/x\\..\\..\\etc", "/data/%c0%ae%c0%ae/etc",
    "/data/%u002e%u002e/etc", "/data/%uff0e%uff0e/etc", "/data/%ef%bc%8e%ef%bc%8e/etc",
    "/data/\uff0e\uff0e/etc", "/data/\uff0e./etc", "/data/\u2024\u2024/etc", "/data/\u2025/etc",
    "/data/x\uff0f..\uff0fetc", "/data/x\u2215..\u2215etc", "/data/x\u2044..",
    "/data/\u3002\u3002/",
    "/data/x\u00a5..", "/data/x\n/../etc", "/data/x\n", "/data/x\r", "/data/x\t", "/data/\x00/x",
    "/data/x%00.txt", "/data/x%0a", "/data/x%0d%0ay", "/data/\x7f", "/data/\x85", "/data/\u2028",
    "/data/\u2029", "/data/\u200b../x", "/data/.\u200b./x", "/data/\u202e", "/data/\ufeff",
    "/data/\ud800", "/data/\ue000", "/data//etc", "/data//../etc", "//data/x", "/data/.. /etc",
    "/data/... /x", "/data/.../x", "/data/. ./x", "/data/..;/etc", "/data/..;x=1/etc", "/data/;/x",
    "/data/%2e%2e;/x", "/data/%3b/x", "/data/%", "/data/%2", "/data/%zz", "/data/100%", "/database",
    "/database/x", "/data.", "/data..", "/data ", "/data%2fx", "/data%2e", "/data\u0338/x",
    "/DATA/x",
    "/Data/x", " /data/x", "data/x", "", "/", "/dat", "/data?x", "/data/x?y", "/data/x#y",
    "/data#/../etc",
    "/data?/../etc", "/data/x?a=..%2f..", "/data\u00a0/x", "/data/cafe\u0301", "file:///data/x",
    "/data/\u212a", "\\data\\x", "\\\\data\\x", "/./data/x", "/x/../data/y",
]  # fmt: skip
SAFE_PATHS = [
    "/data", "/data/", "/data/x", "/data/x/", "/data/x/y.txt", "/data/a..b", "/data/.hidden",
    "/data/..x", "/data/x%20y", "/data/caf\u00e9", "/data/caf%C3%A9", "/data/\u65e5\u672c.txt",
    "/data/x;v=1", "/data/x:y", "/data/x@y", "/data/~x", "/data/ x", "/data/x y.txt", "/data/a.b.c",
]  # fmt: skip


def below(prefix: str, value: Any, approved: str) -> bool:
    pinned = json.dumps({"path": approved}).encode()
    bound = Bound(("path",), "prefix", prefix=prefix)
    pattern = Pattern(exact_json.loads(pinned), {bound.path: bound})
    return pattern.covers({"path": value})


@pytest.mark.parametrize("value", HOSTILE_PATHS)
@pytest.mark.parametrize("prefix", ["/data", "/data/"])
def test_a_path_that_leaves_or_could_be_read_otherwise_is_not_covered(
    prefix: str, value: str
) -> None:
    assert not below(prefix, value, "/data/a.txt")


@pytest.mark.parametrize("value", SAFE_PATHS)
def test_a_path_below_is_covered(value: str) -> None:
    assert below("/data", value, "/data/a.txt")
    assert below("/data/", value, "/data/a.txt") or value == "/data"


@pytest.mark.parametrize("value", [None, 3, True, ["/data/x"], {"a": "/data/x"}])
def test_what_is_no_text_begins_with_nothing(value: Any) -> None:
    assert not below("/data", exact_json.exact(value), "/data/a.txt")


HOSTILE_URLS = [
    "https://example.org.evil.net/api/x", "https://example.org@evil.net/api/x",
    "https://example.org:pw@evil.net/api/x", "https://user@example.org/api/x",
    "https://example.org:8443/api/x", "https://example.org:/api/x", "https://example.org./api/x",
    "https://example.orgevil/api/x", "https://example.org%2eevil.net/api/x",
    "https://example.org\\@evil.net/api/x", "https://example.org\\api\\x",
    "https:\\\\example.org/api/x",
    "https:/example.org/api/x", "https:example.org/api/x", "//example.org/api/x", "/api/x",
    "http://example.org/api/x", "ftp://example.org/api/x", "javascript://example.org/api/x",
    "https://example.org#@evil.net/api/x", "https://example.org?@evil.net/api/x",
    "https://example.org/api/../admin", "https://example.org/api/%2e%2e/admin",
    "https://example.org/api/%252e%252e/admin", "https://example.org/api/..;/admin",
    "https://example.org/apix", "https://example.org/API/x", "https://example.org//api/x",
    "https://example.org/api//evil.net", "https://example.org/api/x?delete=1",
    "https://example.org/api/x#frag", "https://example.org/api?x", "https://ex\u0430mple.org/api/x",
    "https://example\u3002org/api/x", "https://\uff45xample.org/api/x", "https://example.org/api/\tx",
    "ht\ntps://example.org/api/x", "https://exam\u00adple.org/api/x", " https://example.org/api/x",
    "https://example.org/api/x y", "https://xn--exmple-cua.org/api/x", "https://[::1]/api/x",
    "https://example.org:443:443/api/x", "https://EXAMPLE.org\u212a/api/x", "https:///api/x",
    "https://example.org/api/x\uff0f..", "https://example.org.:443/api/x", "https://example.org",
]  # fmt: skip
SAFE_URLS = [
    "https://example.org/api", "https://example.org/api/", "https://example.org/api/x/y",
    "HTTPS://EXAMPLE.ORG/api/x", "https://example.org:443/api/x", "https://example.org/api/x%20y",
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE_URLS)
def test_a_url_elsewhere_is_not_covered(value: str) -> None:
    assert not below("https://example.org/api", value, "https://example.org/api/a")


@pytest.mark.parametrize("value", SAFE_URLS)
def test_a_url_below_is_covered(value: str) -> None:
    assert below("https://example.org/api", value, "https://example.org/api/a")


@pytest.mark.parametrize(
    ("prefix", "value", "holds"),
    [
        ("https://example.org", "https://example.org/x", True),
        ("https://example.org", "https://example.org.evil/x", False),
        ("https://example.org:8443/", "https://example.org:8443/x", True),
        ("https://example.org:8443/", "https://example.org/x", False),
        ("https://", "https://example.org/x", False),
        ("https://user@example.org/", "https://user@example.org/x", False),
        ("https://example.org/x?id=", "https://example.org/x?id=7", True),
        ("https://example.org/x?id=", "https://example.org/y?id=7", False),
        ("https://example.org/x?id=", "https://example.org/x?id=../7", False),
        ("https", "https://example.org/x", False),
        ("http", "http.txt", True),
        ("Hello", "Hello, you", True),
        ("Hello", "Hello/../x", False),
        ("Hello", "Hello\nBcc: x", False),
        ("Hello", "Hello\u0338", False),
        ("report-", "report-7", True),
        ("report-", "report-100%", True),
        ("report-", "report-x%c0%af..", False),
        ("report-", "report-x%EF%BC%8F..", False),
        ("report-", "report-%u002e%u002e", False),
        ("report-", "report-%25c0%25af", False),
        ("Hello", "Hell\uff4f", False),
        ("Hello", "Hello \uff4f", False),
        ("", "x", False),
        ("", "", False),
    ],
)
def test_other_prefixes(prefix: str, value: str, holds: bool) -> None:
    assert below(prefix, value, prefix or "x") is holds


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ("# Minutes\nof 20/11\n\u2026", True),
        ("# Minutes", True),
        ("# Minutes\u200b", False),
        ("# Minute", False),
        ("# Minutes\x1b[2J", False),
    ],
)
def test_a_text_of_lines_stays_one(value: str, holds: bool) -> None:
    assert below("# Minutes", value, "# Minutes\nof last week") is holds


@pytest.mark.parametrize(
    ("prefix", "approved", "value"),
    [
        ("https://example.org/", "https://example.org/v1\n", "https://example.org/../admin"),
        ("https://example.org", "https://example.org\n", "https://example.org.evil/"),
        ("/data/", "/data/x\n", "/data/../../etc/passwd"),
        ("/data/", "/data/x\ny", "/data/../../etc/passwd\ny"),
        ("report-", "report-x\ny", "report-/../../etc/passwd"),
        ("report-", "report-x\ny", "report-/../../etc/passwd\ny"),
        ("report-", "report-x\ny", "report-%2e%2e\ny"),
    ],
)
def test_a_line_break_lets_no_path_out(prefix: str, approved: str, value: str) -> None:
    assert not below(prefix, value, approved)


@given(st.text(alphabet="/\\.%2eEfFcC5;x \uff0e\u2215", max_size=14))
def test_nothing_covered_ever_leaves(rest: str) -> None:
    """By the eyes of a program that takes escapes out, folds letters and then walks the path."""
    value = f"/data/{rest}"
    if not below("/data", value, "/data/a"):
        return
    seen = value
    for _time in range(4):
        seen = unicodedata.normalize("NFKC", unquote(seen)).replace("\\", "/")
    assert posixpath.normpath(seen).startswith("/data")
    assert posixpath.normpath(seen)[5:6] in ("", "/")


RANGE = Bound(("amount",), "range", least=Decimal("0.10"), most=Decimal("20"))


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ("1", True), ("2.50", True), ("true", True), ('"x"', True), ("null", True),
        ("1.0", False), ('"1"', False), ("false", False), ("0", False), ("[1]", False),
        ('["x"]', False), ("{}", False), ('"X"', False), ('"2.50"', False), ("[]", False),
    ],
)  # fmt: skip
def test_a_value_is_one_of_those_granted_by_type_and_text(value: str, holds: bool) -> None:
    known = tuple(exact_json.loads(one) for one in (b"1", b"2.50", b"true", b'"x"', b"null"))
    bound = Bound(("amount",), "set", values=known)

    assert covers(PINNED, with_().replace('"amount": 10', f'"amount": {value}'), bound) is holds


@pytest.mark.parametrize(
    ("written", "holds"),
    [
        ("0.10", True),
        ("20.00", True),
        ("2e1", True),
        ("0.0999999999999999999999", False),
        ("20.0000000000000000000001", False),
        ("-1", False),
        ('"10"', False),
        ("true", False),
    ],
)
def test_a_number_is_within_exactly(written: str, holds: bool) -> None:
    document = with_().replace('"amount": 10', f'"amount": {written}')

    assert covers(PINNED, document, RANGE) is holds


SET = Bound(("to",), "set", values=("ana", "ben", "cid"))


@pytest.mark.parametrize(
    ("to", "holds"),
    [
        (["cid"], True),
        (["cid", "ana"], True),
        (["cid", "mallory"], False),
        (["cid", "cid"], False),
        ([], False),
        # A bare text is not a list of one.
        ("ana", False),
        (None, False),
        ({"0": "ana"}, False),
        ([["ana"]], False),
        (["ana", None], False),
        (["ana", ["ben"]], False),
        (["ana", "ANA"], False),
    ],
)
def test_each_item_is_one_of_those_granted(to: Any, holds: bool) -> None:
    assert covers(PINNED, with_(to=to), SET) is holds


def test_bounds_are_kept_exactly() -> None:
    every = (PREFIX, RANGE, SET, Bound(("x", 0), "set", values=(exact_json.Number("1.10"), None)))

    assert parse(json.loads(json.dumps([one.plain() for one in every]))) == every


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ('{"amount": 1.10}', Decimal("1.10")),
        ('{"amount": -1}', None),
        ('{"amount": "1"}', None),
        ('{"amount": 1e30}', None),
        ("{}", None),
        ("[]", None),
    ],
)
def test_only_what_adds_up_is_counted(document: str, expected: Decimal | None) -> None:
    assert amount(exact_json.loads(document.encode()), ("amount",)) == expected


documents = st.recursive(
    st.none() | st.booleans() | st.integers(0, 99) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
).map(exact_json.exact)


@given(documents, documents)
def test_without_bounds_only_the_same_is_covered(pinned: Any, given: Any) -> None:
    assert Pattern(pinned).covers(pinned)
    assert Pattern(pinned).covers(given) == (exact_json.dumps(pinned) == exact_json.dumps(given))


@pytest.mark.long
@given(documents)
def test_every_value_is_in_one_leaf(document: Any) -> None:
    for path, value in leaves(document):
        found = document
        for step in path:
            found = found[step]
        assert found == value
