"""Conditions of rules, in CEL (github.com/google/cel-spec): typed, without loops that do not end.

A condition runs in the agents' path and cannot be interrupted there, so what it may cost is bounded
beforehand: by what may be written (no loop in a loop, nothing that grows), and by how much it is
given to look at. What was too slow all the same is not believed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cel_expr_python import cel

from core.english import gettext as _
from core.errors import CountersignError
from policies import outgoing
from policies.condition_errors import CLAIMS, HOLDS, at_run_time, in_words
from policies.condition_functions import FUNCTIONS, NOT_IN_LOOPS, prepare
from policies.undecided import Undecided

TEXT_MAX = 1000
ARGUMENTS_MAX = 64 * 1024
# Of conditions with loops: loops x elements x bytes x how often they look at the arguments.
WORK_MAX = 500_000
# Joining copies what was joined before: joins x joins x bytes.
JOIN_MAX = 5_000_000
CPU_MAX_S = 0.05

HINTS, RISK, LABELS, _FLOW = CLAIMS
PROVIDER_GROUPS = "token.groups"
CONTEXT = {
    "args": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
    "tool.server": cel.Type.STRING,
    "tool.name": cel.Type.STRING,
    "tool.tags": cel.Type.List(cel.Type.STRING),
    HINTS: cel.Type.Map(cel.Type.STRING, cel.Type.BOOL),
    RISK: cel.Type.STRING,
    LABELS: cel.Type.List(cel.Type.STRING),
    "agent.name": cel.Type.STRING,
    "agent.owner": cel.Type.STRING,
    "agent.groups": cel.Type.List(cel.Type.STRING),
    "person.groups": cel.Type.List(cel.Type.STRING),
    "credential.owner": cel.Type.STRING,
    "client.id": cel.Type.STRING,
    PROVIDER_GROUPS: cel.Type.List(cel.Type.STRING),
    "now": cel.Type.TIMESTAMP,
    "history.calls_1h": cel.Type.INT,
    "history.refused_24h": cel.Type.INT,
    "history.last_approved": cel.Type.TIMESTAMP,
    "flow.untrusted": cel.Type.BOOL,
    "flow.sensitive": cel.Type.BOOL,
    "flow.last_untrusted": cel.Type.TIMESTAMP,
    "flow.last_sensitive": cel.Type.TIMESTAMP,
    "unusual.hour": cel.Type.BOOL,
    "unusual.rate": cel.Type.DOUBLE,
    "unusual.refusals": cel.Type.INT,
    "unusual.first_use": cel.Type.BOOL,
    "unusual.address": cel.Type.BOOL,
    **dict.fromkeys(outgoing.NAMES, cel.Type.List(cel.Type.STRING)),
}
# Read of the record, each with one fact that is there if any is (policies/lookback.py).
LOOKBACKS = {"history": "history.calls_1h", "flow": "flow.untrusted", "unusual": "unusual.hour"}
_USES = {name: re.compile(rf"\b{name.partition('.')[0]}\b") for name in CONTEXT}
# It may be not known, and `token` is often an argument's name.
_USES[PROVIDER_GROUPS] = re.compile(r"\btoken\s*\.\s*groups\b")

_LITERAL = re.compile(
    r"""[rRbB]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|//[^\n]*""",
    re.DOTALL,
)
_LOOP = re.compile(r"\.\s*(?:all|exists|exists_one|filter)\s*\(")
_GROWS = re.compile(r"\.\s*map\s*\(")
_NAMES = re.compile(r"[a-z_]+")
_JOINS = re.compile(r"\+")
_MATCHES = re.compile(r"\bmatches\b")
_MATCHES_LITERAL = re.compile(r"\.\s*matches\s*\(\s*\)")
_ERROR = re.compile(r"<input>:(\d+):(\d+): (.*)")


class BadCondition(CountersignError):
    """The condition cannot be used; says what is wrong and where."""


@dataclass(frozen=True, slots=True)
class Condition:
    text: str
    expression: cel.Expression
    loops: int
    looks: int
    joins: int
    # What it is given to look at, which costs for itself.
    names: tuple[str, ...]

    @property
    def lookbacks(self) -> frozenset[str]:
        """The roots of LOOKBACKS that it asks for."""
        return frozenset(root for root, fact in LOOKBACKS.items() if fact in self.names)

    @property
    def looks_into_arguments(self) -> bool:
        return any(name in outgoing.NAMES for name in self.names)

    def holds(self, facts: Mapping[str, Any], size: int) -> bool:
        """Raises Undecided. `size`: of the arguments, in bytes."""
        if "args" in self.names or self.looks_into_arguments:
            self._check_work(facts["args"], size)
        if any(LOOKBACKS[root] not in facts for root in self.lookbacks):
            raise Undecided(_("what happened before could not be read"))
        if PROVIDER_GROUPS in self.names and PROVIDER_GROUPS not in facts:
            raise Undecided(_("the groups in the agent's token are not known"))
        began = time.thread_time()
        try:
            found = self.expression.eval(data={name: facts[name] for name in self.names})
        except RuntimeError as error:
            raise Undecided(at_run_time(_message(str(error)))) from error
        if time.thread_time() - began > CPU_MAX_S:
            raise Undecided(_("it timed out"))
        if found.type() != cel.Type.BOOL:
            raise Undecided(_not_bool(found))
        return bool(found.value())

    def _check_work(self, arguments: Any, size: int) -> None:
        if not isinstance(arguments, dict):
            raise Undecided(_("the arguments are no object"))
        if size > ARGUMENTS_MAX:
            raise Undecided(_("the arguments are too large to look at"))
        if self.joins * self.joins * size > JOIN_MAX:
            raise Undecided(_("the arguments are too large to be joined so often"))
        if self.loops and self.loops * self.looks * size * _elements(arguments) > WORK_MAX:
            raise Undecided(_("the arguments are too large to be iterated over"))


@lru_cache(maxsize=4096)
def compiled(text: str, *, hints: bool) -> Condition:
    """`hints`: whether the condition may look at what the server says of its tool."""
    plain = _without_literals(text)
    _check_form(text, plain)
    expression = compile_with(text, _VARIABLES[hints])
    prepare(_NAMES.findall(plain))
    loops, looks = len(_LOOP.findall(plain)), len(re.findall(r"\bargs\b", plain))
    names = tuple(name for name, uses in _USES.items() if uses.search(plain))
    return Condition(text, expression, loops, max(1, looks), len(_JOINS.findall(plain)), names)


def compile_with(text: str, environment: cel.Env, known: Iterable[str] = CONTEXT) -> cel.Expression:
    """`known`: the names that the environment has. Raises BadCondition."""
    try:
        expression = environment.compile(text)
    except RuntimeError as error:
        raise BadCondition(_placed(str(error), known)) from error
    if expression.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
        kind = expression.return_type().name().lower()
        raise BadCondition(_("A condition must come to true or false, this comes to %s.") % kind)
    return expression


def _check_form(text: str, plain: str) -> None:
    if len(text) > TEXT_MAX:
        raise BadCondition(_("A condition has at most %d characters.") % TEXT_MAX)
    if _GROWS.search(plain):
        raise BadCondition(_("map() is not for conditions: use all(), exists() or filter()."))
    if len(_MATCHES.findall(plain)) != len(_MATCHES_LITERAL.findall(plain)):
        raise BadCondition(_("matches() needs a pattern that is written out: x.matches('…')."))
    if plain.count(NOT_IN_LOOPS) > 1:
        raise BadCondition(_("%s() may stand in a condition once.") % NOT_IN_LOOPS)
    for loop in _LOOP.finditer(plain):
        where, end = {"column": loop.start() + 1}, _closing(plain, loop.end())
        if _LOOP.search(plain, loop.end(), end):
            raise BadCondition(_("Column %(column)d: a loop may hold no other loop.") % where)
        if NOT_IN_LOOPS in plain[loop.end() : end]:
            said = _("Column %(column)d: a loop may not hold %(name)s().")
            raise BadCondition(said % {**where, "name": NOT_IN_LOOPS})


def _closing(plain: str, start: int) -> int:
    depth = 1
    for index in range(start, len(plain)):
        depth += {"(": 1, ")": -1}.get(plain[index], 0)
        if not depth:
            return index
    return len(plain)


def _without_literals(text: str) -> str:
    """Blanks instead of strings and comments: every place stays where it is."""
    return _LITERAL.sub(lambda found: " " * len(found[0]), text)


def _elements(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(_elements, value.values()))
    if isinstance(value, list):
        return 1 + sum(map(_elements, value))
    return 1


def _placed(message: str, known: Iterable[str]) -> str:
    found = _ERROR.search(message)
    if found is None:
        return _message(message)
    said = _("Line %(line)s, column %(column)s: %(what)s.")
    what = in_words(found[3].replace(" (in container '')", "").rstrip("."), known)
    return said % {"line": found[1], "column": found[2], "what": what}


def _not_bool(found: cel.Value) -> str:
    if found.type() != cel.Type.ERROR:
        return _("it is neither true nor false")
    return at_run_time(_message(str(found.value())))


def _message(message: str) -> str:
    """The library's words without its codes."""
    return re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", message)[:200]


_OURS = {name: kind for name, kind in CONTEXT.items() if not name.startswith((*CLAIMS, HOLDS))}
_VARIABLES = {
    True: cel.NewEnv(variables=CONTEXT, functions=FUNCTIONS),
    False: cel.NewEnv(variables=_OURS, functions=FUNCTIONS),
}
