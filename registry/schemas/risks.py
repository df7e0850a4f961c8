"""Risks in a changed definition, as marks for its reviewer.

Marks draw the eye to what is commonly used against agents. They prove nothing: a definition without
any may still lie.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.homoglyphs import LIMIT
from core.text import hidden_count, lookalike_count
from inspection.instructions import has_order
from registry.schemas.arguments import SchemaArgument

# What a hint means when it is absent (MCP, tool annotations), and which of its values claims less.
ASSUMED = {
    "readOnlyHint": False,
    "destructiveHint": True,
    "idempotentHint": False,
    "openWorldHint": True,
}
CLAIMS_LESS = {name: not assumed for name, assumed in ASSUMED.items()}
HINTS = {
    "readOnlyHint": gettext_lazy("read-only"),
    "destructiveHint": gettext_lazy("destructive"),
    "idempotentHint": gettext_lazy("idempotent"),
    "openWorldHint": gettext_lazy("open-world"),
}
# Quotes for people are cut.
QUOTED = 160
# A file elsewhere than where a task is, an address, somebody's mail address.
_PLACE = re.compile(
    r"(?i)~/[^\s\"'<>)]+"
    r"|(?<![\w/.:-])/(?:etc|home|root|var|usr|tmp|proc|opt|dev|mnt|Users)/[^\s\"'<>)]*"
    r"|(?<![\w/])\.(?:ssh|env|aws|netrc|gnupg|kube|git)\b[^\s\"'<>)]*"
    r"|\b[a-z]:\\[^\s\"'<>)]+"
    r"|\b[a-z][a-z0-9+.-]{1,12}://[^\s\"'<>)]+"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}"
)
# What an argument is called that says where to: of a new one, a new way out.
_REACH = re.compile(
    r"(?i)(?:^|[_.\-]|(?<=[a-z]))(?:url|uri|link|path|file|filename|dir|directory|folder|host|domain"
    r"|address|email|mail|recipient|to|cc|bcc|command|cmd|script|code|sql|query|webhook|callback"
    r"|endpoint|token|key|secret|password|account)s?$"
)
# Names of dialects say nothing to a model.
_DIALECT = re.compile(r"https?://json-schema\.org/[\w/.#-]{1,60}").fullmatch
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n")
_INSTRUCTION = re.compile(
    r"(?i)\b(?:important|attention|system prompt|note to (?:the )?(?:model|assistant|agent)s?)\b"
    r"|\b(?:ignore|disregard|forget) (?:all|any|every|the|previous|prior|other|your)\b"
    r"|\b(?:always|never|must|do not|don't|should) (?:be )?(?:call|use|tell|mention|ask|show|read"
    r"|send|include|reveal|inform|invoke|run|skip|wait|pass|copy)(?:ed)?\b"
    r"|\b(?:before|after|instead of) (?:calling|using|running|any|every|each|all)\b"
    r"|\b(?:any|every|all|each) other tools?\b"
    r"|\bwithout (?:asking|telling|confirmation|the user)\b"
    r"|\byou (?:must|should|have to|need to|are)\b"
    r"|</?(?:important|system|instructions?|secret|assistant)>"
)


class Mark(NamedTuple):
    """A risk, and the stranger's words that show it."""

    said: str
    quote: str = ""


def of_hint(name: str, before: object, after: object) -> Iterator[Mark]:
    if name not in ASSUMED:
        return
    old, new = (value if isinstance(value, bool) else ASSUMED[name] for value in (before, after))
    if old == new:
        return
    hint = HINTS[name]
    if new == CLAIMS_LESS[name]:
        yield Mark(_("Claims less harm than before: %(hint)s") % {"hint": _now(new, hint)})
    else:
        yield Mark(_("May do more harm than before: %(hint)s") % {"hint": _now(new, hint)})


def _now(value: bool, hint: Any) -> str:
    return str(hint) if value else _("not %(hint)s") % {"hint": hint}


def of_argument(
    path: str, before: SchemaArgument | None, after: SchemaArgument | None
) -> Iterator[Mark]:
    if after is None:
        return
    if after.required and not (before and before.required):
        yield Mark(_("Required, which it was not before"), path)
    if before is None and _REACH.search(after.name[:QUOTED]):
        yield Mark(_("New reach: an argument that may say where to"), path)
    if before and set(after.constraints) < set(before.constraints):
        yield Mark(_("New reach: limits of an argument are gone"), path)


def of_texts(before: object, after: object) -> Iterator[Mark]:
    """Risks in texts that are new in the definition, names of members too."""
    known = set(_texts(before))
    said = (text for text in _texts(after) if not _DIALECT(text))
    new = [text for text in said if text not in known]
    sentences = {one for text in known for one in _sentences(text)}
    places = {place for text in known for place in _PLACE.findall(text)}
    if hidden := sum(map(hidden_count, new)):
        yield Mark(_("Hidden characters in what is new: %d") % hidden)
    # Of a longer text no more is counted at once.
    pieces = (text[at : at + LIMIT] for text in new for at in range(0, len(text), LIMIT))
    if lookalikes := sum(map(lookalike_count, pieces)):
        yield Mark(_("Letters that pass for others in what is new: %d") % lookalikes)
    yield from _new(_("Reads like an instruction to the model"), _instructions(new), sentences)
    found = (place for text in new for place in _PLACE.findall(text))
    yield from _new(_("Names a place or an address"), found, places)


def _new(said: str, found: Iterable[str], known: set[str]) -> Iterator[Mark]:
    for quote in dict.fromkeys(one for one in found if one not in known):
        yield Mark(said, quote[:QUOTED] + ("…" if len(quote) > QUOTED else ""))


def _instructions(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        found = [one for one in _sentences(text) if _INSTRUCTION.search(one) or has_order(one)]
        # An order may stand across lines.
        yield from found or ([text] if has_order(text) else [])


def _sentences(text: str) -> list[str]:
    return [one.strip() for one in _BETWEEN_SENTENCES.split(text)]


def _texts(value: object) -> Iterator[str]:
    """Every text of a JSON document."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            stack += [*one.values(), *one]
        elif isinstance(one, list):
            stack += one
