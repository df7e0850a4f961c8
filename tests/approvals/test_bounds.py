"""Which arguments a grant covers."""

import json
from decimal import Decimal
from typing import Any

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


RANGE = Bound(("amount",), "range", least=Decimal("0.10"), most=Decimal("20"))


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
        ("ana", True),
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


@given(documents)
def test_every_value_is_in_one_leaf(document: Any) -> None:
    for path, value in leaves(document):
        found = document
        for step in path:
            found = found[step]
        assert found == value
