"""The short command takes some of many cases, and `--long` the others."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.database import ROOT

SETTINGS = """[pytest]
addopts = -p tests.cases -p no:django -p no:cacheprovider
markers =
    long: l
    django_db: d
"""
TESTS = """import pytest


@pytest.mark.django_db
@pytest.mark.parametrize("n", range(9))
def test_many(n):
    pass


@pytest.mark.django_db
@pytest.mark.parametrize("n", range(3))
def test_few(n):
    pass


@pytest.mark.parametrize("n", range(5))
def test_quick(n):
    pass
"""
FEW = [f"test_few[{n}]" for n in range(3)]
QUICK = [f"test_quick[{n}]" for n in range(5)]


def collected(folder: Path, *arguments: str) -> list[str]:
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "test_some.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *arguments]
    run = subprocess.run(
        command,
        cwd=folder,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return [line.partition("::")[2] for line in run.stdout.splitlines() if "::" in line]


@pytest.mark.long
def test_the_short_command_takes_some_of_those_that_need_a_database(tmp_path: Path) -> None:
    some = [f"test_many[{n}]" for n in (0, 4, 8)]

    assert collected(tmp_path, "-m", "not long") == [*some, *FEW, *QUICK]


@pytest.mark.long
@pytest.mark.parametrize("arguments", [[], ["test_some.py"]])
def test_whoever_names_no_kind_gets_all(tmp_path: Path, arguments: list[str]) -> None:
    assert len(collected(tmp_path, *arguments)) == 17


def test_together_they_are_all(tmp_path: Path) -> None:
    short, long = collected(tmp_path, "-m", "not long"), collected(tmp_path, "-m", "long")

    assert len(short) + len(long) == len({*short, *long}) == 17
