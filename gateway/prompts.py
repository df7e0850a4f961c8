"""prompts/* and completion/complete: what servers offer, under names like those of tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson
from django.utils.translation import gettext as _

from gateway import listing, messages, reading
from gateway.exchange import Exchange, Turn
from gateway.refusals import invalid_params
from registry.methods import COMPLETE, GET
from registry.published import Violation

# What else a completion says.
_COMPLETED = ("argument", "context")


async def prompts(turn: Turn) -> bytes:
    return listing.answered(turn, "prompts", _prompts)


async def get(turn: Turn) -> bytes:
    name = turn.message.params.get("name")
    if not isinstance(name, str):
        raise invalid_params("params.name must be a string.")
    server, own_name, prompt = _found(turn.exchange, name)
    if prompt is None:
        await turn.look_again()
        server, own_name, prompt = _found(turn.exchange, name)
    tool = turn.exchange.toolset.asking(server, GET) if prompt else None
    params: dict[str, Any] = {"name": own_name}
    given = turn.message.params.get("arguments")
    if given is not None:
        params["arguments"] = orjson.Fragment(messages.raw_arguments(turn.message))
    return await reading.ask(turn, tool, params, wrong=tuple(_missing(prompt or {}, given)))


async def complete(turn: Turn) -> bytes:
    given = turn.message.params
    ref = given.get("ref")
    if not isinstance(ref, dict):
        raise invalid_params("params.ref must be an object.")
    if not _referred(turn.exchange, ref)[0]:
        await turn.look_again()
    server, ref = _referred(turn.exchange, ref)
    tool = turn.exchange.toolset.asking(server, COMPLETE) if server else None
    params = {"ref": ref} | {name: given[name] for name in _COMPLETED if name in given}
    return await reading.ask(turn, tool, params)


def _referred(exchange: Exchange, ref: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Which server knows it, and by what name."""
    match ref:
        case {"type": "ref/prompt", "name": str(name)}:
            server, own_name, prompt = _found(exchange, name)
            return (server, {**ref, "name": own_name}) if prompt else ("", ref)
        case {"type": "ref/resource", "uri": str(uri)}:
            knowing = (slug for slug, one in exchange.offered.items() if uri in one.templates)
            return next(knowing, ""), ref
    return "", ref


def _prompts(exchange: Exchange) -> Iterator[tuple[str, bytes]]:
    for slug, offered in exchange.offered.items():
        for name, content in offered.prompts.items():
            seen = name if exchange.server else f"{slug}.{name}"
            yield seen, orjson.dumps({**content, "name": seen})


def _found(exchange: Exchange, name: str) -> tuple[str, str, Mapping[str, Any] | None]:
    """The server, the prompt's own name there, and the prompt if agents may get it."""
    # No server's name has a dot.
    slug, _dot, rest = name.partition(".")
    server, own_name = (exchange.server, name) if exchange.server else (slug, rest)
    offered = exchange.offered.get(server)
    return server, own_name, offered.prompts.get(own_name) if offered else None


def _missing(prompt: Mapping[str, Any], given: Any) -> Iterator[Violation]:
    if given is not None and not isinstance(given, dict):
        return
    for argument in prompt.get("arguments") or ():
        name = argument["name"]
        if argument.get("required") is True and name not in (given or {}):
            yield Violation(f"$.arguments.{name}", _("is missing, and the prompt needs it"))
