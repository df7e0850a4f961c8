"""What a client can be asked in the middle of a call, as words that are kept and compared.

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
    """Of these, what is passed on."""
    return tuple([word for word in words if _OF.get(word) in families]) if words else ()


def needed(request: Any) -> frozenset[str] | None:
    """What a client must be able to do to be asked this; None for what is no such question."""
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
    """For where only an answer can be told: who could not be asked has decided nothing."""
    if not given.is_error:
        return dict(given.value)
    return {"action": "cancel"} if request.get("method") == "elicitation/create" else None
