"""What a server says beside a status that brings no result is cleaned as results are."""

import json
import threading
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from calls.content import received_results
from calls.record.outcomes import of_error
from calls.record.states import Executed, State
from calls.record.transitions import Outcome
from calls.running.cleaning import BESIDE_LOOP, clean_outcome, clean_quickly, cleaned
from inspection.results import ResultRules
from registry.upstream import RefusedByServer

ALL = ResultRules(hidden="remove", secrets=True, personal=True, tracebacks=True, max_bytes=9)
SAID = "Refused by the server (HTTP 400): it says “a\u200bb AKIAZ7RQWLKJX2MPND4T /srv/app/a.py”."


def cleaned_sentence(rules: ResultRules | None) -> str:
    tool: Any = SimpleNamespace(result_rules=rules, exposed_name="rec.say")
    outcome = of_error(RefusedByServer(SAID, 400), safe_to_repeat=False)
    done = clean_outcome(outcome, SimpleNamespace(tool=tool, call_id=uuid4(), costs=()))
    assert (done.state, done.executed) == (State.FAILED, Executed.REPORTED)
    return done.sentence


@pytest.mark.parametrize("rules", [None, ResultRules(schema="block"), ResultRules(max_bytes=9)])
def test_without_a_choice_it_stays(rules: ResultRules | None) -> None:
    assert cleaned_sentence(rules) == SAID


def test_its_words_are_cleaned() -> None:
    assert cleaned_sentence(ALL) == (
        "Refused by the server (HTTP 400): it says “ab [masked: aws key] [internal path]”."
    )


def test_what_cannot_be_looked_at_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_given: object, **_more: object) -> None:
        raise ValueError

    monkeypatch.setattr("calls.running.cleaning.clean", fail)

    assert cleaned_sentence(ALL) == "What its server said could not be looked at."


@pytest.mark.parametrize(("size", "is_beside"), [(10, False), (BESIDE_LOOP, True)])
async def test_a_large_result_is_sealed_beside_the_loop(
    monkeypatch: pytest.MonkeyPatch, size: int, is_beside: bool
) -> None:
    def note(*_given: object) -> str:
        threads.append(threading.get_ident())
        return "sealed"

    threads: list[int] = []
    monkeypatch.setattr(received_results, "sealed", note)
    tool: Any = SimpleNamespace(result_rules=ResultRules(hidden="remove"), exposed_name="rec.say")
    body = json.dumps({"content": "\u200b" + "x" * size}).encode()

    call = SimpleNamespace(tool=tool, call_id=uuid4(), costs=())
    outcome = Outcome(State.SUCCEEDED, "", Executed.YES, body)
    done = clean_quickly(outcome, call) or await cleaned(outcome, call)

    assert done.sealed == "sealed"
    assert [one != threading.get_ident() for one in threads] == [is_beside]
