"""Reads documents in a process of its own.

However a document is written, reading it takes no time of a process that serves pages or agents,
and no more of a processor than `CPU_S`.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson

from core import die_with_parent
from core.english import gettext as _
from registry.openapi.document import (
    ApiDescription,
    DocumentRefused,
    check_length,
    parse,
)
from registry.openapi.operations import ApiOperation, list_operations

# @octokit/openapi, the largest known (13 MB, 1,223 operations), takes 8 s and 100 MiB.
CPU_S, WALL_S = 60, 180
MEMORY_BYTES = 2 * 1024**3
# Short references repeat what they refer to, for each operation: what is read of a document is
# larger than it. Of @octokit/openapi it is 8 MB.
MAX_ANSWER = 64 * 1024**2
_ROOT = Path(__file__).parents[2]
# Several documents at once would take all processors.
_one_at_a_time = threading.Lock()


def as_json(data: bytes) -> bytes:
    """A document's text, as JSON where it is YAML. Raises DocumentRefused."""
    check_length(data)
    if data.lstrip()[:1] in (b"{", b"["):
        return data
    return _run(b"yaml " + data)


def read_operations(
    description: ApiDescription,
    *,
    slug: str,
    base: str,
    known: Mapping[str, str],
    effects: Mapping[str, str],
    only: Collection[str] | None = None,
) -> list[ApiOperation]:
    """The operations that list_operations() finds; all of them without their tools, those in
    `only` with them. Raises DocumentRefused."""
    order = {
        "description": [description.body, description.source, dict(description.others)],
        "slug": slug,
        "base": base,
        "known": dict(known),
        "effects": dict(effects),
        "only": None if only is None else list(only),
    }
    found = orjson.loads(_run(b"list " + orjson.dumps(order)))
    return [ApiOperation(**one | {n: tuple(one[n]) for n in ("tags", "notes")}) for one in found]


def _run(order: bytes) -> bytes:
    if not _one_at_a_time.acquire(timeout=WALL_S):
        raise DocumentRefused(_("Another document is being read. Try later."))
    try:
        done = subprocess.run(  # noqa: S603 our own module
            die_with_parent.command([sys.executable, "-m", __name__, str(CPU_S)]),
            input=order,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            pass_fds=die_with_parent.lifelines(),
            timeout=WALL_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DocumentRefused(_TOO_LONG % CPU_S) from None
    finally:
        _one_at_a_time.release()
    return _answer(done)


_TOO_LONG = _("Reading the document takes longer than %d s of a processor, or too much memory.")


def _answer(done: subprocess.CompletedProcess[bytes]) -> bytes:
    kind, _space, rest = done.stdout.partition(b" ")
    if done.returncode or kind not in (b"done", b"refused"):
        raise DocumentRefused(_TOO_LONG % CPU_S)
    if kind == b"refused":
        raise DocumentRefused(rest.decode())
    return rest


def main(cpu_s: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    kind, _space, rest = sys.stdin.buffer.read().partition(b" ")
    try:
        made = _json_of(rest) if kind == b"yaml" else _operations_of(rest)
        made = b"done " + made
    except DocumentRefused as error:
        made = b"refused " + str(error).encode()
    sys.stdout.buffer.write(made)


def _json_of(text: bytes) -> bytes:
    """Raises DocumentRefused, also where its anchors repeat a short text."""
    made = orjson.dumps(parse(text))
    check_length(made)
    return made


def _operations_of(order: bytes) -> bytes:
    given: dict[str, Any] = orjson.loads(order)
    description = ApiDescription(*given.pop("description"))
    found: list[bytes] = []
    size = 0
    for one in list_operations(description, **given):
        shown = one if given["only"] is not None else replace(one, tool=None)
        found.append(orjson.dumps(asdict(shown)))
        size += len(found[-1])
        if size > MAX_ANSWER:
            said = _(
                "With what its references repeat, its operations are larger than %d MiB. "
                "Leave out operations."
            )
            raise DocumentRefused(said % (MAX_ANSWER // 1024**2))
    return b"[%b]" % b",".join(found)


if __name__ == "__main__":
    main(int(sys.argv[1]))
