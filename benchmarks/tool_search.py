"""How well search mode finds tools: `python -m benchmarks.tool_search [--tools 10000]`.

Of 300 questions, 100 of them Chinese, how often a right tool is among the first five. Half
of them were written by a reader of the 245 definitions that are asked for who had not seen the
ranking (benchmarks/questions/, `blind`); by the others it was tuned. The other tools are those of
the crowd. Beside it: the CPU that it takes to make the index, to search, and to follow a change.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from gateway.tool_search.index import ToolIndex
    from registry.publishing.published_tools import PublishedTool, PublishedToolset

HERE = Path(__file__).parent / "questions"
FIRST = 5


def questions() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = orjson.loads((HERE / "questions.json").read_bytes())
    return found


def definitions() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = orjson.loads((HERE / "tools.json").read_bytes())
    return found


def published(count: int) -> PublishedToolset:
    """A toolset of the tools that are asked for, and as many others as make `count`."""
    from registry.publishing.agent_names import ToolsByName
    from registry.publishing.published_tools import PublishedToolset

    made = [_tool(n, one) for n, one in enumerate([*definitions(), *_others(count)][:count])]
    by_id = {tool.tool_id: tool for tool in made}
    listed = {tool.exposed_name: tool for tool in made}
    return PublishedToolset("all", frozenset(), ToolsByName(listed, {}, by_id), {})


def _others(count: int) -> Iterator[dict[str, Any]]:
    from benchmarks import crowd

    dice = random.Random(1)  # The same ones every time.
    for n in range(count):
        yield {"server": f"crowd-{n % 200}", **crowd.definition(n, dice)}


def _tool(n: int, definition: dict[str, Any]) -> PublishedTool:
    from registry.connections import ServerConnection
    from registry.publishing.published_tools import ParsedDefinition, PublishedTool

    content = {key: value for key, value in definition.items() if key != "server"}
    server = definition["server"]
    return PublishedTool(
        tool_id=n + 1,
        server_id=1,
        server_slug=server,
        name=content["name"],
        exposed_name=f"{server}.{content['name']}",
        definition_id=n + 1,
        digest=str(n),
        mode="auto",
        safe_to_repeat=False,
        timeout_s=60,
        connection=ServerConnection("x", "http"),
        shape=ParsedDefinition(orjson.dumps(content)),
    )


def missed(index: ToolIndex, asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in asked if not {*one["tools"]} & {*index.search(one["q"], FIRST)}]


def recall(index: ToolIndex, asked: list[dict[str, Any]]) -> float:
    """The share of the questions for which a right tool is among the first five."""
    return 1 - len(missed(index, asked)) / len(asked)


def is_chinese(question: dict[str, Any]) -> bool:
    return not question["q"].isascii() and any(sign >= "\u4e00" for sign in question["q"])


def _timed(toolset: PublishedToolset, write: Any) -> ToolIndex:
    from gateway.tool_search.index import ToolIndex

    began = time.process_time()
    index = ToolIndex(toolset, toolset.by_exposed)
    made = time.process_time()
    ToolIndex(toolset, toolset.by_exposed, index)
    again = time.process_time()
    took = []
    for one in questions():
        at = time.process_time()
        index.search(one["q"], FIRST)
        took.append(1000 * (time.process_time() - at))
    write(f"index made in {made - began:.2f} s of CPU, after a change in {again - made:.2f} s")
    p95 = statistics.quantiles(took, n=20)[-1]
    write(f"search {statistics.median(took):.1f} ms, 95 % within {p95:.1f} ms")
    return index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=10_000)
    parser.add_argument("--missed", action="store_true", help="name what was not found")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()

    def write(line: str) -> None:
        sys.stdout.write(f"{line}\n")

    toolset = published(options.tools)
    write(f"{len(toolset.by_exposed)} tools")
    index = _timed(toolset, write)
    chinese = [one for one in questions() if is_chinese(one)]
    english = [one for one in questions() if not is_chinese(one)]
    blind = [one for one in questions() if one.get("blind")]
    for name, asked in (
        ("English", english),
        ("Chinese", chinese),
        ("written without having seen the ranking", blind),
        ("all", questions()),
    ):
        write(f"recall@{FIRST} {name}: {recall(index, asked):.3f} of {len(asked)}")
    if options.missed:
        for one in missed(index, questions()):
            write(f"{one['q']}: wanted {one['tools']}, got {index.search(one['q'], FIRST)}")


if __name__ == "__main__":
    main()
