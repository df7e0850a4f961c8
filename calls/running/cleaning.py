"""Treats what a tool's server says as its operator chose, before anybody gets it.

The one place that all results pass: of calls and tasks, resources and prompts, whoever asked. The
record has the digest of what came and of what is passed on; of what was masked only how often. What
came is kept sealed for some days (calls/content/received_results.py).
What a server says while it runs a call passes here too: progress, logs, and questions.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from dataclasses import replace
from typing import Any, Protocol
from uuid import UUID

import orjson
from django.conf import settings

from calls.content import received_results
from calls.record.states import Executed, State
from calls.record.transitions import Outcome
from core.english import gettext as _
from core.english import with_full_stop
from core.levels import LEVELS
from inspection.patterns import LIMIT_S, PatternsTimedOut, TimedPatterns
from inspection.results import (
    Marking,
    ResultRules,
    ResultTooLong,
    SchemaCheck,
    clean,
    clean_fully,
    is_clean,
)
from policies.limits.costs import ResultCost, costs_in
from registry.publishing.published_tools import CALL, PublishedTool

log = logging.getLogger(__name__)

# Larger ones are looked at beside the loop, on which other calls run.
BESIDE_LOOP = 32 * 1024
# With marking, which looks at each sentence, or with an operator's own patterns.
MARKED_ON_LOOP = 8 * 1024
# So much of a processor these patterns may take on the loop; then it begins anew beside it.
PATTERNS_ON_LOOP_S = 0.005
# Of a progress message or a status no more is looked at or passed on.
MOST_WORDS = 8 * 1024
# What an operator's patterns may take for all messages of a call.
WORDS_S = 1.0
# Of how a result does not fit, and as long.
MOST_SAID, SAID_LENGTH = 5, 200
# In an entry's details; the second is read in calls/sql/limits.sql.
KEY, COSTS = "result", "costs"


class ServerWords:
    """Cleans what the server of a tool says while it runs a call. `is_slow`: not to be done on the
    loop."""

    def __init__(self, rules: ResultRules, tool: PublishedTool) -> None:
        self._rules, self._tool = rules, tool
        # Made for the first message: most calls have none. All of a call take no longer.
        self._timed: TimedPatterns | None = None

    @property
    def is_slow(self) -> bool:
        return bool(self._rules.patterns or self._rules.marking)

    def text(self, text: str) -> str:
        """Cleans a progress message or a status."""
        said = self._cleaned(text[:MOST_WORDS])
        return said if isinstance(said, str) else _("[what its server said was left out]")

    def log_line(self, line: dict[str, Any]) -> dict[str, Any]:
        """Cleans the params of `notifications/message`."""
        said = self._cleaned(line, most=BESIDE_LOOP)
        if isinstance(said, dict):
            return said
        level = {"level": line["level"]} if line.get("level") in LEVELS else {}
        return level | {"data": _("[a line of its server's log was left out]")}

    def question(self, key: str, request: Any) -> Any:
        """Cleans an input request; None where that cannot be done. Its address is opened by the
        agent's user, and ids come back: these stay."""
        said = self._cleaned([key, request])
        if said is None or said[0] != key or not isinstance(said[1], dict):
            return None
        cleaned, params = said[1], request.get("params")
        cleaned["method"] = request["method"]
        if isinstance(params, dict) and isinstance(cleaned.get("params"), dict):
            kept = {name: params[name] for name in ("url", "elicitationId") if name in params}
            cleaned["params"] |= kept
        return cleaned

    def _cleaned(self, value: Any, *, most: int | None = None) -> Any:
        """Returns None for what cannot be looked at, or is longer."""
        try:
            body = _encode(value)
            if most is not None and len(body) > most:
                return None
            if self._timed is None:
                patterns = self._rules.patterns
                self._timed = TimedPatterns(patterns, total_s=WORDS_S, each_s=WORDS_S / 20)
            rules = self._rules._replace(max_bytes=None)
            return _parsed(clean(body, rules, timed=self._timed).body)
        except Exception:
            log.exception(
                "what the server of %s said could not be cleaned", self._tool.exposed_name
            )
            return None


def words_of(tool: PublishedTool) -> ServerWords | None:
    """Returns None for a tool whose server's words pass as they are."""
    rules = tool.result_rules
    return ServerWords(rules, tool) if rules is not None and rules.cleans else None


class CleanedCall(Protocol):
    """A call whose result is cleaned."""

    @property
    def call_id(self) -> UUID: ...
    @property
    def tool(self) -> PublishedTool: ...
    @property
    def costs(self) -> tuple[ResultCost, ...]: ...


def clean_quickly(outcome: Outcome, call: CleanedCall) -> Outcome | None:
    """`clean_outcome` on the loop; None where that would take longer than others may wait."""
    rules, body = call.tool.result_rules, outcome.result
    if body is not None and len(body) > _most_on_loop(rules):
        return None
    if rules is None:
        return clean_outcome(outcome, call)
    if _passes(outcome, rules, call.tool):
        return _with_costs(outcome, outcome, call) if call.costs else outcome
    if not rules.patterns:
        return clean_outcome(outcome, call)
    try:
        return clean_outcome(outcome, call, patterns_s=PATTERNS_ON_LOOP_S)
    except PatternsTimedOut:
        return None


def _passes(outcome: Outcome, rules: ResultRules, tool: PublishedTool) -> bool:
    """Whether one look says that nothing is to be checked or changed: most results are so, and each
    function on their way costs all of them."""
    if outcome.state != State.SUCCEEDED or outcome.kind == "error" or outcome.result is None:
        return False
    has_schema = bool(rules.schema) and "outputSchema" in tool.content
    return not has_schema and is_clean(outcome.result, rules)


async def cleaned(outcome: Outcome, call: CleanedCall) -> Outcome:
    """The outcome as it is written down and passed on, cleaned beside the loop. Once this has begun
    it is done, also for a process that stops: what came is not lost."""
    work = asyncio.ensure_future(asyncio.to_thread(clean_outcome, outcome, call))
    return await asyncio.shield(work)


def _most_on_loop(rules: ResultRules | None) -> int:
    is_slow = rules is not None and (rules.patterns or rules.marking)
    return MARKED_ON_LOOP if is_slow else BESIDE_LOOP


def clean_outcome(outcome: Outcome, call: CleanedCall, *, patterns_s: float = LIMIT_S) -> Outcome:
    """Cleans and seals: both take time that grows with the result. The record also gets the costs
    that it says. Raises PatternsTimedOut where `patterns_s` is less than they may take in all."""
    done = _with_costs(_clean_outcome(outcome, call.tool, patterns_s), outcome, call)
    if done.received is None or settings.RECEIVED_RESULTS_DAYS <= 0:
        return done
    return replace(done, received=None, sealed=received_results.sealed(call.call_id, done.received))


def _with_costs(done: Outcome, outcome: Outcome, call: CleanedCall) -> Outcome:
    if not call.costs or outcome.result is None or outcome.kind != "result":
        return done
    costs = costs_in(outcome.result, call.costs)
    return replace(done, details={**(done.details or {}), COSTS: costs}) if costs else done


def _clean_outcome(outcome: Outcome, tool: PublishedTool, patterns_s: float) -> Outcome:
    rules = tool.result_rules
    if rules is None:
        return outcome
    timed = TimedPatterns(rules.patterns, total_s=patterns_s)
    if outcome.result is None:
        return _clean_words(outcome, rules, tool)
    try:
        return _clean(outcome, outcome.result, rules, tool, timed)
    except ResultTooLong:
        said = _("Its result has %(size)s bytes, %(most)s are allowed, and it cannot be cut.")
        sentence = said % {"size": f"{len(outcome.result):,}", "most": f"{rules.max_bytes:,}"}
        return _blocked(outcome, sentence, {"too_long": len(outcome.result)})
    except PatternsTimedOut as error:
        if patterns_s < LIMIT_S:
            raise
        said = _(
            "The pattern “%(name)s” of its operator took longer than %(most)s s on its result."
        )
        sentence = said % {"name": str(error), "most": LIMIT_S}
        return _blocked(outcome, sentence, {"timed_out": str(error)})
    except Exception:
        # A mistake of ours: then nobody gets what nobody looked at.
        log.exception("a result of %s could not be cleaned", tool.exposed_name)
        return _blocked(outcome, _("Its result could not be looked at."), {"failed": True})


def _clean_words(outcome: Outcome, rules: ResultRules, tool: PublishedTool) -> Outcome:
    """Without a result a server's words stand in the sentence alone, beside a status."""
    try:
        return replace(outcome, sentence=_cleaned_sentence(outcome.sentence, rules, is_error=True))
    except Exception:
        log.exception("an error of %s could not be cleaned", tool.exposed_name)
        return replace(outcome, sentence=_("What its server said could not be looked at."))


def _clean(
    outcome: Outcome, body: bytes, rules: ResultRules, tool: PublishedTool, timed: TimedPatterns
) -> Outcome:
    is_error = outcome.state == State.TOOL_ERROR or outcome.kind == "error"
    checks = rules.schema and outcome.state == State.SUCCEEDED and "outputSchema" in tool.content
    wrong = _violations(body, tool, rules, timed) if checks and tool.method == CALL else []
    about: dict[str, Any] = {"schema": wrong} if wrong else {}
    if wrong and rules.schema == SchemaCheck.BLOCK:
        said = _("Its result does not fit the tool's output schema: %s")
        return _blocked(outcome, said % "; ".join(wrong), about)
    # Without a schema `_passes` has looked at it.
    found = (clean if checks else clean_fully)(body, rules, is_error=is_error, timed=timed)
    if found.found:
        about |= {"found": dict(sorted(found.found.items())), **_came(body)}
        # What is passed on is not what was checked: `[masked: email]` may be no date.
        fits = not checks or tool.method != CALL
        broken = [] if fits else _violations(found.body, tool, rules, timed)
        if broken and rules.schema == SchemaCheck.BLOCK:
            said = _("Cleaned, its result no longer fits the tool's output schema: %s")
            return _blocked(outcome, said % "; ".join(broken), about | {"schema": broken})
        about |= {"schema": broken} if broken else {}
    if not about:
        return outcome
    sentence = outcome.sentence
    if found.found:
        # An error's own words stand in it.
        sentence = _cleaned_sentence(sentence, rules, is_error=is_error)
    done = replace(outcome, result=found.body, sentence=sentence, details={KEY: about})
    return replace(done, received=body) if found.found else done


def _cleaned_sentence(sentence: str, rules: ResultRules, *, is_error: bool) -> str:
    if not (sentence and rules.cleans):
        return sentence
    only_words = rules._replace(max_bytes=None)
    body = clean(orjson.dumps([sentence]), only_words, is_error=is_error).body
    (said,) = orjson.loads(body)
    return str(said)


def _violations(
    body: bytes, tool: PublishedTool, rules: ResultRules, timed: TimedPatterns
) -> list[str]:
    """How it does not fit, as its agent and the record may have it: a server chose the names of
    members."""
    found = tool.result_violations(_parsed(body))[:MOST_SAID]
    wrong = [str(one)[:MOST_WORDS] for one in found]
    if wrong and rules.cleans:
        wrong = _cleaned_words(wrong, rules._replace(marking=Marking.OFF), timed)
        # Marks at last, so that nothing cuts them off.
        marks = ResultRules(marking=rules.marking)
        return _cleaned_words([one[:SAID_LENGTH] for one in wrong], marks, timed)
    return [one[:SAID_LENGTH] for one in wrong]


def _cleaned_words(words: list[str], rules: ResultRules, timed: TimedPatterns) -> list[str]:
    body = clean(_encode(words), rules._replace(max_bytes=None), timed=timed).body
    return [str(one) for one in _parsed(body)]


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        # A lone surrogate.
        return json.loads(body)


def _encode(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        # A lone surrogate, or a number beyond 64 bits.
        return json.dumps(value).encode()


def _blocked(outcome: Outcome, sentence: str, about: dict[str, Any]) -> Outcome:
    """It was executed, and its agent gets a sentence instead of what came."""
    assert outcome.result is not None
    sentence = _("The call was executed. %s") % with_full_stop(sentence)
    about = {"blocked": True, **about, **_came(outcome.result)}
    executed = Executed.YES if outcome.kind == "result" else outcome.executed
    details = {KEY: about}
    return Outcome(State.FAILED, sentence, executed, details=details, received=outcome.result)


def _came(body: bytes) -> dict[str, Any]:
    return {"came": hashlib.sha256(body).hexdigest(), "came_size": len(body)}
