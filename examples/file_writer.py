"""Writes and deletes text files in a local outbox, and nowhere else."""

import argparse
import os
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

RelativePath = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        description="A path inside the outbox, with / between folders.",
        examples=["letters/summer.txt"],
    ),
]

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
DESTRUCTIVE = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)


class FileInfo(BaseModel):
    path: str
    size: int = Field(ge=0, description="In bytes.")
    changed_at: datetime


server = MCPServer("file-writer", title="File writer", version="1.0")


@server.tool(title="Write a file", annotations=DESTRUCTIVE)
def write_file(
    path: RelativePath,
    text: Annotated[str, Field(max_length=200_000, description="The whole new content.")],
    overwrite: Annotated[bool, Field(description="Replace a file that is there.")] = False,
) -> FileInfo:
    """Write a text file. What it said before is lost if overwrite is set."""
    file = inside(path)
    try:
        put(file, text, overwrite)
    except OSError as error:
        raise ToolError(f"{path!r} cannot be written: {error.strerror}.") from error
    return info(file)


@server.tool(title="Delete a file", annotations=DESTRUCTIVE)
def delete_file(path: RelativePath) -> FileInfo:
    """Delete a file for good. Answers with what the file was."""
    file = existing(path)
    was = info(file)
    file.unlink()
    return was


@server.tool(title="Read a file", annotations=READ_ONLY, structured_output=False)
def read_file(path: RelativePath) -> str:
    """Read a file of the outbox."""
    return existing(path).read_text(encoding="utf-8", errors="replace")


@server.tool(title="List the files", annotations=READ_ONLY)
def list_files() -> list[FileInfo]:
    """List every file in the outbox."""
    return [info(file) for file in sorted(outbox().rglob("*")) if file.is_file()]


def outbox() -> Path:
    folder = Path(os.environ.get("COUNTERSIGN_OUTBOX", "var/outbox")) / "files"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(f"The outbox cannot be used: {error.strerror}.") from error
    return folder.resolve()


def inside(path: str) -> Path:
    if "\0" in path:
        raise ToolError("A path has no NUL character.")
    # Resolved first, so that neither .. nor a symbolic link leads out of the outbox.
    file = (outbox() / path).resolve()
    if not file.is_relative_to(outbox()) or file == outbox():
        raise ToolError(f"{path!r} is not inside the outbox.")
    return file


def existing(path: str) -> Path:
    file = inside(path)
    if not file.is_file():
        raise ToolError(f"There is no file {path!r}. list_files names those there are.")
    return file


def put(file: Path, text: str, overwrite: bool) -> None:
    """Nobody ever reads half a file, and of two that must not overwrite only one succeeds."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=outbox().parent, delete=False) as beside:
        beside.write(text.encode())
    try:
        # A link fails where a file is, a replacement does not.
        (os.replace if overwrite else os.link)(beside.name, file)
    except FileExistsError as error:
        raise ToolError(f"{file.name!r} is there already; set overwrite to replace it.") from error
    finally:
        Path(beside.name).unlink(missing_ok=True)


def info(file: Path) -> FileInfo:
    stat = file.stat()
    return FileInfo(
        path=file.relative_to(outbox()).as_posix(),
        size=stat.st_size,
        changed_at=datetime.fromtimestamp(stat.st_mtime, UTC),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP instead of stdio")
    parser.add_argument("--outbox", help="where to write (default: COUNTERSIGN_OUTBOX, var/outbox)")
    options = parser.parse_args()
    if options.outbox:
        os.environ["COUNTERSIGN_OUTBOX"] = options.outbox
    if options.http is None:
        server.run()
    else:
        server.run("streamable-http", port=options.http)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
