"""What cleaning takes by itself: a result that needs no change, and texts made to be slow.

`python -m benchmarks.cleaning [--rounds 9]` prints the CPU time of inspection.results.clean, the
best of the rounds: for each choice, with 2 kB and with 1 MB of English and of Chinese text without
findings, and the slowest of the hostile megabytes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import orjson

SENTENCE = "All of it is as it should be, and nobody has to look. "
CHINESE = "一切都很好，没有人需要去看它。今天的天气不错，请大家按时参加会议。"
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
# Of about 2 kB and 1 MB, as UTF-8.
TEXTS = (SENTENCE * 38, CHINESE * 20, SENTENCE * 19_000, CHINESE * 10_000)
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
    texts = [document(text) for text in TEXTS]
    hostile = [document((one * MB)[:MB]) for one in HOSTILE]
    sizes = "".join(f"{len(text):>11,} bytes" for text in texts)
    print(f"{'':<18}{sizes}{'hostile MB':>14}")
    for name, rules in choices.items():
        print(f"{name:<18}", end="")
        for text in texts:
            took = best_s(partial(clean, text, rules), 1 if len(text) > MB // 2 else 100, rounds)
            print(f"{took * 1e6:>14,.0f} µs", end="", flush=True)
        slowest = max(best_s(partial(clean, body, rules), 1, 1) for body in hostile)
        print(f"{slowest * 1e3:>11,.0f} ms")


if __name__ == "__main__":
    main()
