"""The CEL library's errors about a condition, in words that people know."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches

from core.english import gettext as _
from policies.condition_functions import FORMS

# What the server says of itself: it may add a check, never remove one.
CLAIMS = ("tool.hints", "tool.risk", "tool.labels", "flow.")
# These only ever hold a call.
HOLDS = "unusual."
_END = "<EOF>"
_WORDS = {"and": "&&", "or": "||", "not": "!", "=": "==", "AND": "&&", "OR": "||", "NOT": "!"}
# CEL's own, of those that conditions use.
_METHODS = (
    *("startsWith", "endsWith", "contains", "matches", "size", "all", "exists", "exists_one"),
    *("filter", "has", "timestamp", "duration", "getHours", "getDayOfWeek", "getMinutes"),
)
_QUOTES = ("'", '"')
_ROUND = ("“", "”", "‘", "’", "„", "«", "»")

_UNEXPECTED = re.compile(r"Syntax error: (?:mismatched|extraneous) input '(.+?)' expecting", re.S)
_MISSING = re.compile(r"Syntax error: missing '(.+?)' at", re.S)
_TOKEN = re.compile(r"Syntax error: token recognition error at: '(.+)'", re.S)
_NAME = re.compile(r"undeclared reference to '(.+?)'", re.S)
_OVERLOAD = re.compile(r"found no matching overload for '(.+?)' applied to '(.*)'", re.S)


def in_words(said: str, known: Iterable[str]) -> str:
    """One clause, without a dot; the library's own where it is none that we know. `known`: what a
    condition may name."""
    for pattern, explain in (
        (_UNEXPECTED, _unexpected),
        (_MISSING, _missing),
        (_TOKEN, _token),
        (_OVERLOAD, _overload),
    ):
        if found := pattern.search(said):
            return explain(*found.groups())
    if found := _NAME.search(said):
        return _unknown(found[1], known)
    if "has() argument" in said:
        return _("has() is asked of one argument: has(args.x)")
    return said


def at_run_time(said: str) -> str:
    """The same, of an error that a call's values make."""
    for pattern, explain in _AT_RUN_TIME:
        if found := pattern.fullmatch(said):
            return explain(*found.groups())
    return said


def _fixed(sentence: str) -> Callable[..., str]:
    return lambda *_values: sentence


def _in_sentence(sentence: str) -> Callable[[str], str]:
    return lambda value: sentence % value


def _no_overload(called: str) -> str:
    """`called`: as “_>_(string, int64)”, “(int64).startsWith(string)”, “!_” or “string(list)”."""
    found = _METHOD.fullmatch(called) or _FUNCTION.fullmatch(called)
    if found is None:
        return _("“%s” is not for such values") % _sign(called)
    on, function, given = found["on"], found["function"], found["given"]
    types = f"{on}, {given}" if on and given else on or given
    return _overload(function, f"({types})")


def _not_converted(value: str, to: str) -> str:
    said = _("%(value)s cannot be read as %(kind)s")
    return said % {"value": _kind(value), "kind": _kind(to)}


def _unexpected(text: str) -> str:
    if text == _END:
        return _("something is missing at the end")
    if text in _WORDS:
        return _("“%(word)s” is written %(sign)s") % {"word": text, "sign": _WORDS[text]}
    return _("“%s” cannot stand here") % text


def _missing(text: str) -> str:
    return _("“%s” is missing") % text


def _token(text: str) -> str:
    bare = text.strip()
    if bare.startswith(_QUOTES):
        return _("the text that begins here has no closing quotation mark")
    if bare.startswith(_ROUND):
        return _("texts stand between straight quotation marks: 'text'")
    return _unexpected(bare)


def _unknown(name: str, known: Iterable[str]) -> str:
    if written := FORMS.get(name):
        return _("it is written %s") % written
    if name.startswith(CLAIMS):
        return _("a rule that allows cannot rest on what a server says of its tool")
    if name.startswith(HOLDS):
        return _("a rule that allows cannot rest on how usual a call is")
    like = get_close_matches(name, [*known, *FORMS, *_METHODS], n=1, cutoff=0.6)
    root = get_close_matches(
        name.partition(".")[0], ["args", "tool", "agent", "now", "history", "flow", "unusual"], 1
    )
    if like or root:
        said = _("“%(name)s” is not known here; “%(like)s” is")
        return said % {"name": name, "like": (like or root)[0]}
    return _("“%s” is not known here") % name


def _overload(function: str, types: str) -> str:
    if written := FORMS.get(function):
        return _("it is written %s") % written
    kinds = [_kind(one) for one in re.split(r", (?![^(]*\)[^)])", types.strip("()")) if one]
    sign = _sign(function)
    if len(kinds) == 2:
        said = _("“%(sign)s” does not go with %(left)s and %(right)s")
        return said % {"sign": sign, "left": kinds[0], "right": kinds[1]}
    return _("“%s” is not for such values") % sign


def _sign(function: str) -> str:
    return "?:" if function == _CHOICE else function.strip("_").lstrip("@") or function


def _kind(name: str) -> str:
    for beginning, word in _KINDS.items():
        if name.startswith(beginning):
            return word()
    return name


_KINDS: dict[str, Callable[[], str]] = {
    "string": lambda: _("a text"),
    "int": lambda: _("a whole number"),
    "uint": lambda: _("a whole number"),
    "double": lambda: _("a number"),
    "bool": lambda: _("true or false"),
    "list": lambda: _("a list"),
    "map": lambda: _("an object"),
    "null": lambda: _("null"),
    "google.protobuf.Timestamp": lambda: _("a point in time"),
    "google.protobuf.Duration": lambda: _("a length of time"),
    "dyn": lambda: _("an argument"),
}

_CHOICE = "<jump_condition>"
_METHOD = re.compile(r"\((?P<on>[^()]+)\)\.(?P<function>\w+)\((?P<given>.*)\)")
_FUNCTION = re.compile(r"(?P<on>)(?P<function>[^()]+)\((?P<given>.+)\)")
_POINT = ("string", "google.protobuf.Timestamp")
_LENGTH = ("string", "google.protobuf.Duration")
_TOO_LARGE = _fixed(_("a number is too large or too small"))
_AT_RUN_TIME: list[tuple[re.Pattern[str], Callable[..., str]]] = [
    (re.compile(pattern, re.S), explain)
    for pattern, explain in (
        (r"Key not found in map : (.*)", _in_sentence(_("there is no member %s"))),
        (r"Index error: index=(-?\d+) size=\d+", _in_sentence(_("the list has no item %s"))),
        (
            r"Index error: expected integer type.*",
            _fixed(_("an item of a list is named by a whole number")),
        ),
        (r"No matching overloads found : (.*)", _no_overload),
        (r"(?:divide|modulus) by zero", _fixed(_("it divides by zero"))),
        (r"cannot convert (\w+) to (\w+)", _not_converted),
        (r"String to Timestamp conversion failed", lambda: _not_converted(*_POINT)),
        (r"String to Duration conversion failed", lambda: _not_converted(*_LENGTH)),
        (r".* (?:overflow|out of \w+ range)", _TOO_LARGE),
        (
            r"Applying SELECT to non-message type",
            _fixed(_("a member is asked of a value that is no object")),
        ),
        (r"Invalid timezone", _fixed(_("there is no such time zone"))),
        (r"invalid regular expression: .*", _fixed(_("a pattern is no regular expression"))),
    )
]
