"""Client capabilities for input requests, as words that are stored and compared.

Source: MCP 2026-07-28, client/{elicitation,sampling,roots}; earlier revisions' basic/lifecycle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

ELICITATION, SAMPLING, ROOTS = "elicitation", "sampling", "roots"
FAMILIES = (ELICITATION, SAMPLING, ROOTS)

FORM, URL = "form", "url"
# A word for each thing that a client may declare, and what it is a part of.
_OF = {
    FORM: ELICITATION,
    URL: ELICITATION,
    SAMPLING: SAMPLING,
    "sampling.tools": SAMPLING,
    "sampling.context": SAMPLING,
    ROOTS: ROOTS,
}
METHODS = {
    "elicitation/create": ELICITATION,
    "sampling/createMessage": SAMPLING,
    "roots/list": ROOTS,
}


def declared(capabilities: Mapping[str, Any]) -> tuple[str, ...]:
    """In words. A client that can elicit and names no mode has forms."""
    found: list[str] = []
    elicitation, sampling = capabilities.get(ELICITATION), capabilities.get(SAMPLING)
    if isinstance(elicitation, dict):
        found += [mode for mode in (FORM, URL) if mode in elicitation] or [FORM]
    if isinstance(sampling, dict):
        parts = [part for part in ("tools", "context") if part in sampling]
        found += [SAMPLING, *(f"{SAMPLING}.{part}" for part in parts)]
    if isinstance(capabilities.get(ROOTS), dict):
        found.append(ROOTS)
    return tuple(found)


def capabilities(words: Collection[str]) -> dict[str, Any]:
    """The same as a client declares it; what it could tell unasked (`listChanged`) is left out."""
    made: dict[str, dict[str, Any]] = {}
    for word, family in _OF.items():
        if word in words:
            part = word if family == ELICITATION else word.partition(".")[2]
            made.setdefault(family, {}).update({part: {}} if part else {})
    return made


def of(families: Collection[str]) -> tuple[str, ...]:
    """All words of these families."""
    return tuple([word for word, family in _OF.items() if family in families])


def relayed(words: Collection[str], families: Collection[str]) -> tuple[str, ...]:
    """The capabilities among these that are passed on to the server."""
    return tuple([word for word in words if _OF.get(word) in families]) if words else ()


def needed(request: Any) -> frozenset[str] | None:
    """The capability that a client needs for this input request; None for an unknown kind."""
    if not isinstance(request, Mapping):
        return None
    method, params = request.get("method"), request.get("params", {})
    if method not in METHODS or not isinstance(params, Mapping):
        return None
    if method == "elicitation/create":
        mode = params.get("mode", FORM)
        return frozenset((mode,)) if mode in (FORM, URL) else None
    if method == "sampling/createMessage":
        return _for_sampling(params)
    return frozenset((ROOTS,))


def _for_sampling(params: Mapping[str, Any]) -> frozenset[str]:
    """Without the ability, a server may name the context all the same: then it gets none."""
    with_tools = "tools" in params or "toolChoice" in params
    return frozenset((SAMPLING, "sampling.tools") if with_tools else (SAMPLING,))


@dataclass(frozen=True, slots=True)
class InputAnswer:
    """An answer to a question; `is_error`: a JSON-RPC error instead of one."""

    value: Any
    is_error: bool = False


def result(request: Mapping[str, Any], given: InputAnswer) -> dict[str, Any] | None:
    """The result for servers that take no errors here: a failed elicitation counts as cancelled;
    None for others."""
    if not given.is_error:
        return dict(given.value)
    return {"action": "cancel"} if request.get("method") == "elicitation/create" else None
