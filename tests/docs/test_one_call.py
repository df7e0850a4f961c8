"""The page that leads newcomers through the code leads nowhere that is not there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "en" / "contributing" / "one-call.md").read_text()
MENTIONED = sorted(set(re.findall(r"`([\w/]+\.py)(?:::([\w.]+))?`", PAGE)))


def defined(body: list[ast.stmt]) -> dict[str, list[ast.stmt]]:
    """Names at this level, each with what is defined inside it."""
    names: dict[str, list[ast.stmt]] = {}
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                names[node.name] = []
            case ast.ClassDef():
                names[node.name] = node.body
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names[name] = []
            case ast.ImportFrom():
                names |= {alias.asname or alias.name: [] for alias in node.names}
    return names


def test_it_names_the_way_from_door_to_record() -> None:
    files = {file for file, _ in MENTIONED}
    assert len(MENTIONED) > 40
    assert {
        "gateway/http/endpoint.py",
        "gateway/submit/submit.py",
        "calls/running/execution.py",
    } <= files


@pytest.mark.parametrize(("file", "name"), MENTIONED)
def test_everything_that_it_names_exists(file: str, name: str) -> None:
    inside = ast.parse((ROOT / file).read_text()).body
    for part in name.split(".") if name else []:
        names = defined(inside)
        assert part in names, f"{file} has no {name}"
        inside = names[part]


def test_it_would_notice_what_is_not_there() -> None:
    assert "nowhere" not in defined(ast.parse("def somewhere(): pass").body)
