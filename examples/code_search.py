"""Searches a folder of source text. Its tools use the whole vocabulary of JSON Schema."""

import argparse
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import AfterValidator, BaseModel, Field

SHIPPED = Path(__file__).parent / "data" / "source"

Language = Literal["python", "javascript", "sql", "css"]
Mode = Literal["text", "word", "definition"]
ENDINGS: dict[Language, str] = {"python": ".py", "javascript": ".js", "sql": ".sql", "css": ".css"}
# Compared with each line; {} is what the caller looks for, with nothing special in it.
PATTERNS: dict[Mode, str] = {
    "text": r"{}",
    "word": r"(?<!\w){}(?!\w)",
    "definition": r"\b(?:class|const|def|function|table|view)\s+{}(?!\w)",
}


def without_repeats(languages: list[Language]) -> list[Language]:
    if len(set(languages)) < len(languages):
        raise ValueError("name each language once")
    return languages


Languages = Annotated[
    list[Language],
    Field(
        min_length=1,
        description="Only files in these languages.",
        # pydantic knows uniqueItems only of sets, and a set has no order to show.
        json_schema_extra={"uniqueItems": True},
    ),
    AfterValidator(without_repeats),
]
RelativePath = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_./-]*$",
        max_length=200,
        description="A path inside the folder, as search_code returns it.",
        examples=["tickets.py"],
    ),
]


class Match(BaseModel):
    path: str
    line: int = Field(ge=1)
    text: str
    before: list[str]
    after: list[str]


class Matches(BaseModel):
    matches: list[Match]
    files_searched: int
    complete: bool = Field(description="False if there were more matches than were asked for.")


READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
server = MCPServer("code-search", title="Code search", version="1.0")


@server.tool(title="Search source text", annotations=READ_ONLY)
def search_code(
    query: Annotated[
        str, Field(min_length=1, max_length=200, pattern=r"\S", description="What to look for.")
    ],
    mode: Annotated[
        Mode,
        Field(description="Anywhere, as a whole word, or only where that name is defined."),
    ] = "text",
    languages: Languages = ["python", "javascript", "sql", "css"],  # noqa: B006
    case_sensitive: Annotated[bool, Field(description="Tell a from A.")] = False,
    context_lines: Annotated[
        int, Field(ge=0, le=10, description="Lines to show above and below a match.")
    ] = 1,
    limit: Annotated[int, Field(ge=1, le=100, description="Most matches to return.")] = 20,
    changed_since: Annotated[
        date, Field(description="Only files changed on this day or later.")
    ] = date(1970, 1, 1),
) -> Matches:
    """Find lines in the source files that contain a text, a word or a definition."""
    wanted = re.compile(PATTERNS[mode].format(re.escape(query)), 0 if case_sensitive else re.I)
    files = list(source_files(languages, changed_since))
    every_match = chain.from_iterable(matches_in(path, wanted, context_lines) for path in files)
    # One more than asked for, to know whether there are more.
    found = list(islice(every_match, limit + 1))

    return Matches(matches=found[:limit], files_searched=len(files), complete=len(found) <= limit)


@server.tool(title="Read source text", annotations=READ_ONLY, structured_output=False)
def read_source(
    path: RelativePath,
    first_line: Annotated[int, Field(ge=1, description="Start here.")] = 1,
    lines: Annotated[int, Field(ge=1, le=500, description="How many lines.")] = 100,
) -> str:
    """Read lines of one source file, with their numbers."""
    every = lines_of(inside(path))
    if first_line > len(every):
        raise ToolError(f"{path} has {len(every)} lines; first_line was {first_line}.")
    shown = enumerate(every[first_line - 1 : first_line - 1 + lines], start=first_line)
    return "\n".join(f"{number:4} {line}" for number, line in shown)


def folder() -> Path:
    return Path(os.environ.get("CODE_SEARCH_FOLDER", SHIPPED)).resolve()


def source_files(languages: list[Language], changed_since: date) -> Iterator[Path]:
    endings = {ENDINGS[language] for language in languages}
    for path in sorted(folder().rglob("*")):
        # A symbolic link may lead out of the folder.
        if path.suffix not in endings or not path.is_file() or path.is_symlink():
            continue
        if changed_on(path) >= changed_since:
            yield path


def changed_on(path: Path) -> date:
    return date.fromtimestamp(path.stat().st_mtime)


def matches_in(path: Path, wanted: re.Pattern[str], context: int) -> Iterator[Match]:
    lines = lines_of(path)
    for index, line in enumerate(lines):
        if wanted.search(line):
            yield Match(
                path=path.relative_to(folder()).as_posix(),
                line=index + 1,
                text=line,
                before=lines[max(0, index - context) : index],
                after=lines[index + 1 : index + 1 + context],
            )


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


def inside(path: str) -> Path:
    # Resolved first, so that neither .. nor a symbolic link leads out of the folder.
    file = (folder() / path).resolve()
    if not file.is_relative_to(folder()) or file.suffix not in ENDINGS.values():
        raise ToolError(f"{path!r} is not a source file inside the folder.")
    if not file.is_file():
        raise ToolError(f"There is no file {path!r}. search_code returns the paths there are.")
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP instead of stdio")
    parser.add_argument("--folder", help="the folder to search (default: the one shipped with us)")
    options = parser.parse_args()
    if options.folder:
        os.environ["CODE_SEARCH_FOLDER"] = options.folder
    if options.http is None:
        server.run()
    else:
        server.run("streamable-http", port=options.http)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
