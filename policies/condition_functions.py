"""Functions of our own that conditions may call, typed for CEL."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from cel_expr_python import cel

from inspection import safe_arguments

_TEXT, _NUMBER, _TEXTS = cel.Type.STRING, cel.Type.DOUBLE, cel.Type.List(cel.Type.STRING)
# A statement is parsed, which takes long: once in a condition, and not for each element of a list.
NOT_IN_LOOPS = "sql_is_select"


def prepare(names: Collection[str]) -> None:
    """Loads what these functions need, before anybody waits for them."""
    if NOT_IN_LOOPS in names:
        _sql_is_select("", [])


def _sql_is_select(text: str, functions: list[str]) -> bool:
    # Here, since the grammar takes 40 MB and a third of a second in every process that loads it.
    from inspection.select_statements import sql_is_select

    return sql_is_select(text, functions)


def _function(
    name: str, check: Callable[..., bool], *parameters: list[cel.Type]
) -> cel.FunctionDecl:
    """`parameters`: of each of its forms."""
    forms = [
        cel.Overload(
            f"{name}_{number}", return_type=cel.Type.BOOL, parameters=types, impl=_plain(check)
        )
        for number, types in enumerate(parameters)
    ]
    return cel.FunctionDecl(name, forms)


def _plain(check: Callable[..., bool]) -> Callable[..., bool]:
    """Lists come as the library's own."""

    def called(*given: Any) -> bool:
        return check(*(one if isinstance(one, str | int | float) else list(one) for one in given))

    return called


# How each is called, for whoever called it otherwise.
FORMS = {
    "path_within": "path_within(path, '/srv/reports')",
    "url_host_in": "url_host_in(url, ['example.org', '*.example.org'])",
    "is_private_address": "is_private_address(address)",
    "shell_safe": "shell_safe(text)",
    "sql_is_select": "sql_is_select(text, ['count', 'lower'])",
    "max_amount": "max_amount(amount, 1000)",
}
_AMOUNTS = [
    [amount, most] for amount in (cel.Type.INT, _NUMBER, _TEXT) for most in (cel.Type.INT, _NUMBER)
]
FUNCTIONS = [
    _function("path_within", safe_arguments.path_within, [_TEXT, _TEXT]),
    _function("url_host_in", safe_arguments.url_host_in, [_TEXT, _TEXTS]),
    _function("is_private_address", safe_arguments.is_private_address, [_TEXT]),
    _function("shell_safe", safe_arguments.shell_safe, [_TEXT]),
    _function("sql_is_select", _sql_is_select, [_TEXT, _TEXTS]),
    _function("max_amount", safe_arguments.max_amount, *_AMOUNTS),
]
