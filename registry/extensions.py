"""Methods of extensions of MCP, which nobody here knows: an operator lists, server by server, those
that agents may ask it by. Each is like a tool of it, as those in registry/methods.py are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from core.english import gettext as _
from core.errors import CountersignError
from core.text import revealed
from registry.names import Names

MAX_LENGTH = 100
MAX_LISTED = 50
# As extensions are to be called: a prefix of their own, and a name.
_FORM = re.compile(r"[A-Za-z0-9_.$-]+(?:/[A-Za-z0-9_.$-]+)+").fullmatch
# What stands there belongs to MCP in one revision or another, or may in the next.
_OF_MCP = frozenset(
    (
        *("tools", "resources", "prompts", "completion", "logging", "tasks", "subscriptions"),
        *("notifications", "roots", "sampling", "elicitation", "server", "initialize", "ping"),
    )
)


class MethodRefused(CountersignError):
    """It cannot be on a server's list; says why."""


def is_one(method: str) -> bool:
    """Whether an extension may have a method of this name."""
    prefix, slash, _name = method.partition("/")
    return bool(slash) and prefix.casefold() not in _OF_MCP and _FORM(method) is not None


def checked(methods: Iterable[str]) -> list[str]:
    """A list as it is kept; raises MethodRefused."""
    listed = sorted(dict.fromkeys(methods))
    taken = Names()
    for method in listed:
        _check(method, taken)
        taken.add(method)
    if len(listed) > MAX_LISTED:
        said = _("At most %(max)d methods are relayed to a server, not %(count)d.")
        raise MethodRefused(said % {"max": MAX_LISTED, "count": len(listed)})
    return listed


def _check(method: str, taken: Names) -> None:
    shown = revealed(method[:MAX_LENGTH])
    if len(method) > MAX_LENGTH:
        said = _("“%(method)s…” has %(length)d characters, of which %(max)d are allowed.")
        told = {"method": shown, "length": len(method), "max": MAX_LENGTH}
        raise MethodRefused(said % told)
    if method.partition("/")[0].casefold() in _OF_MCP:
        said = _("“%s” is a method of MCP itself: only those of extensions are listed here.")
        raise MethodRefused(said % shown)
    if not is_one(method):
        said = _(
            "“%s” is no method of an extension: write prefix/name, each of A–Z, a–z, 0–9, "
            "_ . $ and -."
        )
        raise MethodRefused(said % shown)
    if other := taken.like(method):
        said = _("“%(method)s” could pass for “%(other)s”: only one of them can be listed.")
        raise MethodRefused(said % {"method": shown, "other": other})


def definition(method: str) -> dict[str, Any]:
    """It says nothing of what the method does: nobody here knows."""
    return {
        "name": method,
        "title": method,
        "description": "A method of an extension, whose params go to the server as they come.",
        "inputSchema": {"type": "object"},
    }
