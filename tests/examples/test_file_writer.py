from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from tests.examples.running import Connection, over_stdio, text_of

EXAMPLE = "file_writer"


@pytest.fixture(scope="module")
def options(outbox: Path) -> list[str]:
    return ["--outbox", str(outbox)]


@pytest.fixture
def files(outbox: Path) -> Path:
    rmtree(outbox / "files", ignore_errors=True)
    (outbox / "files").mkdir()
    return outbox / "files"


def test_it_writes_a_file_and_its_folders(server: Connection, files: Path) -> None:
    info: Any = server.call("write_file", path="letters/å.txt", text="Hei\n").structured_content

    assert (files / "letters" / "å.txt").read_text() == "Hei\n"
    assert (info["path"], info["size"]) == ("letters/å.txt", 4)


def test_it_keeps_a_file_that_is_there(server: Connection, files: Path) -> None:
    (files / "a.txt").write_text("before")

    error = server.error("write_file", path="a.txt", text="after")

    assert "'a.txt' is there already; set overwrite to replace it." in error
    assert (files / "a.txt").read_text() == "before"


def test_it_replaces_a_file_when_told_to(server: Connection, files: Path, outbox: Path) -> None:
    (files / "a.txt").write_text("before")

    server.call("write_file", path="a.txt", text="after", overwrite=True)

    assert (files / "a.txt").read_text() == "after"
    assert [path.name for path in outbox.iterdir()] == ["files"]


@pytest.mark.parametrize("tool", ["write_file", "delete_file", "read_file"])
@pytest.mark.parametrize(
    "path", ["../mail/a.txt", "/etc/passwd", "a/../../b.txt", "link/secret.txt", ".", "a/.."]
)
def test_it_refuses_every_path_outside_the_outbox(
    server: Connection, files: Path, tmp_path: Path, tool: str, path: str
) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (files / "link").symlink_to(tmp_path)
    text = {"text": "x", "overwrite": True} if tool == "write_file" else {}

    error = server.error(tool, path=path, **text)

    assert f"{path!r} is not inside the outbox." in error
    assert (tmp_path / "secret.txt").read_text() == "secret"
    assert [each.name for each in files.iterdir()] == ["link"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a\0b", "A path has no NUL character."),
        ("", "at least 1 character"),
        ("x" * 201, "at most 200 characters"),
        ("folder", "'folder' cannot be written: Is a directory."),
        ("folder/file/below", "'folder/file/below' cannot be written:"),
    ],
)
def test_it_says_why_a_file_cannot_be_written(
    server: Connection, files: Path, outbox: Path, path: str, reason: str
) -> None:
    (files / "folder").mkdir()
    (files / "folder" / "file").write_text("")

    assert reason in server.error("write_file", path=path, text="x", overwrite=True)
    assert [each.name for each in outbox.iterdir()] == ["files"]


def test_it_reads_lists_and_deletes(server: Connection, files: Path) -> None:
    (files / "b.txt").write_text("two")
    (files / "a.txt").write_text("one")

    read = text_of(server.call("read_file", path="b.txt"))
    listed: Any = server.call("list_files").structured_content
    deleted: Any = server.call("delete_file", path="a.txt").structured_content

    assert read == "two"
    assert [each["path"] for each in listed["result"]] == ["a.txt", "b.txt"]
    assert deleted["path"] == "a.txt"
    assert [each.name for each in files.iterdir()] == ["b.txt"]


@pytest.mark.parametrize("tool", ["delete_file", "read_file"])
def test_it_says_when_there_is_no_such_file(server: Connection, files: Path, tool: str) -> None:
    assert "There is no file 'missing.txt'." in server.error(tool, path="missing.txt")


@pytest.mark.long
def test_it_says_when_the_outbox_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with over_stdio(EXAMPLE, "--outbox", str(tmp_path / "file")) as server:
        error = server.error("list_files")

    assert "The outbox cannot be used: Not a directory." in error


def test_it_says_what_it_destroys(server: Connection) -> None:
    hints = {name: tool.annotations for name, tool in server.tools().items()}

    assert {
        name: (hint.read_only_hint, hint.destructive_hint) for name, hint in hints.items() if hint
    } == {
        "write_file": (False, True),
        "delete_file": (False, True),
        "read_file": (True, None),
        "list_files": (True, None),
    }
