"""Arguments of a pending call in messages: where every rule that asks about it says so, and without
secrets.

The rules are judged again as the message is made: one that was changed since shows nothing more.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson
from django.utils.translation import gettext as _

from calls.basis import judged
from calls.models import Call
from policies.models import Effect
from registry.publishing import published_catalogue
from registry.schemas.secret_arguments import mask_secrets

VALUES_MAX = 20
VALUE_MAX = 300


class ShownArguments(NamedTuple):
    """Names and values; `is_masked`: some of them are secret."""

    values: list[tuple[str, str]]
    is_masked: bool = False


NOTHING = ShownArguments([])


def of_call(call: Call) -> ShownArguments:
    """NOTHING too for a call that an approver edited: channels have other readers too."""
    tool = published_catalogue.one(call.tool_id) if call.tool_id else None
    if tool is None or call.amendment_id is not None:
        return NOTHING
    decision = judged(call, tool, call.to_send, at=call.asked_at)
    if decision.effect != Effect.ASK or not decision.shows_arguments:
        return NOTHING
    arguments = call.parsed_arguments
    masked = mask_secrets(tool.content.get("inputSchema", {}), arguments)
    return ShownArguments(_values(masked), masked != arguments)


def _values(arguments: Any) -> list[tuple[str, str]]:
    shown = [(name, _text(value)) for name, value in list(arguments.items())[:VALUES_MAX]]
    left = len(arguments) - len(shown)
    return [*shown, ("…", _("%(n)d more") % {"n": left})] if left > 0 else shown


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= VALUE_MAX else f"{text[: VALUE_MAX - 1]}…"
