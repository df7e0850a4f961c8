"""`manage.py test` repeats what failed, and says how that went."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import command
from tests.budget import ORDER, UNTIL
from tests.database import ROOT
from tests.outcomes import DIRECTORY, ONLY

SETTINGS = """[pytest]
addopts = -p tests.outcomes -p tests.budget -p tests.watchdog --strict-markers
faulthandler_timeout = 5
faulthandler_exit_on_timeout = true
markers =
    long: l
    proof: p
"""
TESTS = """from pathlib import Path

import pytest


def test_passes():
    pass


def test_fails_at_first():
    mark = Path(__file__).with_name("mark")
    again = mark.exists()
    mark.touch()
    assert again


@pytest.fixture
def broken():
    yield
    raise OSError


def test_cannot_be_cleaned_up_after(broken):
    pass


@pytest.mark.long
def test_takes_long():
    pass
"""
HANGING = """import threading
from pathlib import Path


def test_passes():
    pass


def test_hangs_at_first():
    mark = Path(__file__).with_name("mark")
    if not mark.exists():
        mark.touch()
        threading.Event().wait()


def test_after():
    pass
"""
HANGING_AFTERWARDS = """import threading
from pathlib import Path

import pytest


@pytest.fixture
def hanging():
    mark = Path(__file__).with_name("mark")
    is_first = not mark.exists()
    mark.touch()
    yield is_first
    if is_first:
        threading.Event().wait()


def test_fails_and_hangs_at_first(hanging):
    assert not hanging


def test_after():
    pass
"""
HANGING_LOOP = """import asyncio


async def never_ends():
    await asyncio.Event().wait()


def test_waits():
    asyncio.run(never_ends())
"""
Said = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Said:
    """Runs the tests above, and returns the exit code and the closing lines."""
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "test_some.py").write_text(TESTS)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "WORKERS", ("-p", "no:cacheprovider"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)

    def said(*arguments: str) -> tuple[int, list[str]]:
        code = command.run_tests(arguments)
        out, err = capfd.readouterr()
        _, _, end = out.rpartition("slowest of")
        named = [line for line in end.splitlines() if line.startswith(("FLAKY", "FAILED"))]
        # Where a test hung.
        return code, [*re.findall(r"in test_\w+$", err, re.MULTILINE), *named]

    return said


@pytest.mark.long
def test_what_fails_once_is_named_flaky_and_what_fails_twice_fails(said: Said) -> None:
    assert said() == (
        1,
        [
            "FLAKY test_some.py::test_fails_at_first",
            "FAILED test_some.py::test_cannot_be_cleaned_up_after",
        ],
    )


@pytest.mark.long
def test_what_is_only_flaky_does_not_fail(tmp_path: Path, said: Said) -> None:
    file = tmp_path / "test_some.py"
    file.write_text(file.read_text().replace("raise OSError", "pass"))

    assert said() == (0, ["FLAKY test_some.py::test_fails_at_first"])


@pytest.mark.long
def test_what_hangs_is_cut_short_named_and_tried_once_more(
    tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_some.py").write_text(HANGING)
    (tmp_path / "pytest.ini").write_text(SETTINGS.replace("timeout = 5", "timeout = 60"))
    monkeypatch.setattr(command, "stages", lambda *_, **__: [command.Stage((), 10)])

    assert said() == (
        0,
        [
            "in test_hangs_at_first",
            "FLAKY test_some.py::test_after",
            "FLAKY test_some.py::test_hangs_at_first",
        ],
    )


@pytest.mark.long
def test_what_hangs_after_a_failure_ends_by_itself(tmp_path: Path, said: Said) -> None:
    (tmp_path / "test_some.py").write_text(HANGING_AFTERWARDS)

    assert said() == (
        0,
        ["FLAKY test_some.py::test_after", "FLAKY test_some.py::test_fails_and_hangs_at_first"],
    )


@pytest.mark.long
def test_a_hanging_test_is_named_with_what_its_loop_waits_for(
    tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_some.py").write_text(HANGING_LOOP)
    # What the run of this very test writes is not for that one.
    for name in (DIRECTORY, ONLY, UNTIL, ORDER):
        monkeypatch.delenv(name, raising=False)

    subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=tmp_path, check=False)

    err = capfd.readouterr().err
    assert "Hangs: test_some.py::test_waits" in err
    assert "never_ends" in err


@pytest.mark.long
def test_a_stage_in_which_nothing_happens_any_more_is_cut_short(
    tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_some.py").write_text(HANGING)
    (tmp_path / "pytest.ini").write_text(SETTINGS.replace("timeout = 5", "timeout = 60"))
    monkeypatch.setattr(command, "stages", lambda *_, **__: [command.Stage((), 60)])
    monkeypatch.setattr(command, "STILL_S", 8)

    code, told = said()

    assert code == 0
    assert "FLAKY test_some.py::test_hangs_at_first" in told


@pytest.mark.long
def test_what_has_not_begun_in_the_time_that_there_is_is_left_out_and_named(
    tmp_path: Path, said: Said, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command.run_tests(["--minutes", "0"]) == 0

    out = capfd.readouterr().out
    assert "Left out, as 0 minutes were over before they began (3 tests):" in out
    assert "      3    test_some.py" in out


@pytest.mark.parametrize("arguments", [["--minutes"], ["--long", "--minutes", "many"]])
def test_minutes_that_are_no_number_are_refused_with_an_example(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match=r"--minutes takes a number: .* --minutes 40"):
        command.run_tests(arguments)


@pytest.mark.long
def test_what_cannot_be_collected_fails(tmp_path: Path, said: Said) -> None:
    (tmp_path / "test_other.py").write_text("import no_such_module")

    assert said()[0] == 1
