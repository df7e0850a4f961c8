"""What cleaning takes by itself: a result that needs no change, and texts made to be slow.

`python -m benchmarks.cleaning [--rounds 9]` prints the CPU time of inspection.results.clean, the
best of the rounds: for each choice, with 2 kB and with 1 MB of text without findings, and the
slowest of the hostile megabytes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import orjson

SENTENCE = "All of it is as it should be, and nobody has to look. "
SHORT, LONG = SENTENCE * 38, SENTENCE * 19_000
# Each begins something that a pattern looks for, again and again.
HOSTILE = (
    *("send ", "send a b c d e f g ", "do not ", "do it ", "before ", "<", "</", "![](http://a?"),
    *(
        "never a b c show a b ",
        "send\n",
        "把",
        "&#0",
        "https:",
        "1 ",
        "a@",
        "token:",
        "\u200b",
        "\n at x",
    ),
)
MB = 1024 * 1024
# An operator's own, as such are.
PATTERNS = "ticket: \\bTKT-[0-9]{6}\\b\nbadge: (?i)badge no\\. [0-9]+"


def document(text: str) -> bytes:
    return orjson.dumps({"content": [{"type": "text", "text": text}]})


def best_s(work: Callable[[], object], times: int, rounds: int) -> float:
    """CPU seconds of one of them, in the best round."""
    took = []
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(times):
            work()
        took.append((time.process_time() - began) / times)
    return min(took)


def main() -> None:
    import django
    from django.conf import settings

    settings.configure(USE_I18N=False)
    django.setup()
    from inspection.results import HiddenText, Marking, ResultRules, clean

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    every = ResultRules(
        hidden=HiddenText.REMOVE, secrets=True, personal=True, tracebacks=True, links=True
    )
    choices = {
        "hidden": ResultRules(hidden=HiddenText.REMOVE),
        "secrets": ResultRules(secrets=True),
        "personal": ResultRules(personal=True),
        "tracebacks": ResultRules(tracebacks=True),
        "links": ResultRules(links=True),
        "all of these": every,
        "marking": ResultRules(marking=Marking.FOUND),
        "own patterns": ResultRules(patterns=PATTERNS),
        "all and marking": every._replace(marking=Marking.FOUND),
        "and own patterns": every._replace(marking=Marking.FOUND, patterns=PATTERNS),
    }
    short, long = document(SHORT), document(LONG)
    hostile = [document((one * MB)[:MB]) for one in HOSTILE]
    print(f"{'':<18}{len(short):>10,} bytes{len(long):>12,} bytes{'hostile MB':>14}")
    for name, rules in choices.items():
        few = best_s(partial(clean, short, rules), 100, rounds)
        many = best_s(partial(clean, long, rules), 1, rounds)
        slowest = max(best_s(partial(clean, body, rules), 1, 1) for body in hostile)
        print(f"{name:<18}{few * 1e6:>13.0f} µs{many * 1e3:>15.0f} ms{slowest * 1e3:>11.0f} ms")


if __name__ == "__main__":
    main()
