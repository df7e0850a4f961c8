"""A compiled condition as a small tree: enough to see what it reads.

The library gives no tree, only its serial form (CheckedExpr of cel-spec's proto/cel/expr, in an
Any), of which a few fields are read here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cel_expr_python import cel


@dataclass(frozen=True, slots=True)
class Const:
    value: Any


@dataclass(frozen=True, slots=True)
class Path:
    """`args.options.copies`, `tool.name`."""

    name: str


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """Operators are `_&&_`, `!_`, `@in`, …"""

    function: str
    args: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class OtherExpression:
    """Loops, maps and the like: `inner` is what they are made of."""

    inner: tuple[Node, ...]


Node = Const | Path | OperatorCall | OtherExpression
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def tree(expression: cel.Expression) -> Node:
    checked = dict(_fields(expression.serialize()))[2]
    return _node(dict(_fields(checked))[4])


def paths(node: Node) -> Iterator[str]:
    """The named parts of the call that the condition reads."""
    if isinstance(node, Path):
        yield node.name
    for child in _children(node):
        yield from paths(child)


def _children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, OperatorCall):
        return node.args
    return node.inner if isinstance(node, OtherExpression) else ()


def _node(data: bytes) -> Node:
    for number, value in _fields(data):
        match number:
            case 3:
                return Const(_constant(value))
            case 4:
                return Path(_text(dict(_fields(value))[1]))
            case 5:
                return _select(dict(_fields(value)))
            case 6:
                return _call(list(_fields(value)))
            case 7:
                return _list([_node(v) for n, v in _fields(value) if n == 1])
            case 8 | 9:
                return OtherExpression(tuple(_parts(value)))
    return OtherExpression(())


def _select(fields: dict[int, Any]) -> Node:
    whole = _node(fields[1])
    if isinstance(whole, Path):
        path = Path(f"{whole.name}.{_text(fields[2])}")
        return OperatorCall("has", (path,)) if fields.get(3) else path
    return OtherExpression((whole,))


def _call(fields: list[tuple[int, Any]]) -> Node:
    function = next(_text(value) for number, value in fields if number == 2)
    args = [_node(value) for number, value in fields if number in (1, 3)]
    if function == "_[_]" and len(args) == 2:
        whole, key = args
        if isinstance(whole, Path) and isinstance(key, Const) and isinstance(key.value, str):
            return Path(f"{whole.name}.{key.value}")
    if function == "-_" and isinstance(args[0], Const):
        return Const(-args[0].value)
    return OperatorCall(function, tuple(args))


def _list(items: list[Node]) -> Node:
    if all(isinstance(item, Const) for item in items):
        return Const([item.value for item in items if isinstance(item, Const)])
    return OtherExpression(tuple(items))


def _parts(data: bytes) -> Iterator[Node]:
    """Expressions somewhere inside: what else is there has no expression's fields."""
    for number, value in _fields(data):
        # Of a loop (9): range, start, condition, step and result; the names before are no nodes.
        if isinstance(value, bytes) and number in (2, 4, 5, 6, 7):
            try:
                yield _node(value)
            except (IndexError, KeyError, ValueError, StopIteration, struct.error):
                continue


def _constant(data: bytes) -> Any:
    for number, value in _fields(data):
        match number:
            case 2:
                return bool(value)
            case 3:
                return value - (1 << 64) if value >= 1 << 63 else value
            case 4:
                return value
            case 5:
                return struct.unpack("<d", value)[0]
            case 6:
                return _text(value)
            case 7:
                return value
    return None


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(wire)
        if size is None:
            size, at = _varint(data, at)
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _text(data: bytes) -> str:
    return data.decode()
