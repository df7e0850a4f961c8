"""`manage.py restart`: every process makes way for a new one, and nobody who calls notices."""

import asyncio
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

from benchmarks.rolling import roll
from config.embedded.service import wait_until
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.config.up import ROOT, Up, bare_environment

SERVING = ("config.web", "config.agents", "worker")


@pytest.fixture
def folder() -> Iterator[Path]:
    """pytest's directories are for their owner only; PostgreSQL may run as somebody else."""
    with tempfile.TemporaryDirectory(prefix="countersign-restart-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def restart(data: Path) -> subprocess.CompletedProcess[str]:
    argv = Up(data).argv("restart")
    return subprocess.run(
        argv, cwd=ROOT, env=bare_environment(), capture_output=True, text=True, check=False
    )


@pytest.mark.alone
def test_calls_go_on_while_everything_is_restarted(folder):
    seen, states = asyncio.run(roll(folder, times=1, rate=15, pause_s=1, longest_ms=8000))

    assert set(seen.told) == {"succeeded"}
    assert set(states) == {"succeeded"}
    assert states["succeeded"] == seen.told.total()


@pytest.mark.long
def test_every_process_is_another_one_afterwards(folder):
    with Up(folder / "data") as up:
        # beat, the last of them, may be about to start.
        assert wait_until(lambda: len(up.own()) == 7, seconds=10)
        before = {process.pid for process in up.own()}

        done = restart(up.data)

        assert done.stdout == "Every process was restarted.\n", done.stderr + up.text()
        after = {process.pid for process in up.own()}
        assert len(after) == len(before)
        # The database and the broker stay.
        assert len(after & before) == 2
        assert up.is_healthy()

        serving = [up.child(word).pid for word in SERVING]
        # What no new process can read.
        (up.data / "services.json").write_text("{")
        up.process.send_signal(signal.SIGUSR1)

        assert up.says("The new agents did not get ready, and the old one goes on.")
        assert [up.child(word).pid for word in SERVING] == serving
        assert up.is_healthy()


@pytest.mark.long
def test_an_open_page_of_the_console_delays_no_restart_and_is_live_again(folder):
    with Up(folder / "data") as up, browser_page() as page:
        page.goto(sign_in_link(up))
        page.get_by_role("button", name="Sign in").click()
        live = page.locator("[data-connection][data-live=on]")
        live.wait_for(state="attached")

        done = restart(up.data)

        assert done.stdout == "Every process was restarted.\n", done.stderr + up.text()
        live.wait_for(state="attached")
        # As many again: the new web process has this page's socket when it is stopped in its turn.
        assert restart(up.data).returncode == 0
        live.wait_for(state="attached")
        up.process.terminate()
        assert up.ends() == 0
    assert "killed" not in up.text()
    assert "Traceback" not in up.text()


def sign_in_link(up: Up) -> str:
    env = bare_environment() | {"COUNTERSIGN_DATA": str(up.data)}
    argv = [sys.executable, "manage.py", "sign_in_link"]
    return subprocess.run(
        argv, cwd=ROOT, env=env, capture_output=True, text=True, check=True
    ).stdout.strip()


@contextmanager
def browser_page() -> Iterator[Page]:
    path = CHROMIUM if CHROMIUM.exists() else None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser.new_page()
        browser.close()


def test_where_nothing_runs_it_says_so(folder):
    done = restart(folder)

    assert done.returncode != 0
    assert f"Nothing runs on {folder}" in done.stderr
