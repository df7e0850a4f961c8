"""`manage.py` on a machine that has Python and a fake uv, so that no test needs a network."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.config.up import ROOT

# Makes what `uv venv` makes as far as it matters here: a Python, which says what it was given.
UV = """#!/bin/sh
echo "uv $*" >> "{log}"
[ -f "{broken}" ] && exit 1
if [ "$1" = venv ]; then
  mkdir -p "{home}/.venv/bin"
  printf '#!/bin/sh\\n[ "$1" = -m ] && exit 1\\necho "in .venv: $*"\\n' > "{home}/.venv/bin/python"
  chmod +x "{home}/.venv/bin/python"
fi
"""


class Clone:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.log = home / "uv.log"
        self.broken = home / "broken"
        shutil.copy(ROOT / "manage.py", home)
        (home / "requirements").mkdir()
        for lock in ("product.txt", "test.txt"):
            (home / "requirements" / lock).write_text("no-such-package==1.0 \\\n    --hash=x\n")
        (home / "path").mkdir()
        uv = home / "path" / "uv"
        uv.write_text(UV.format(log=self.log, broken=self.broken, home=home))
        uv.chmod(0o755)

    def manage(self, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.home / 'path'}{os.pathsep}/usr/bin{os.pathsep}/bin"
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=self.home,
            env={"PATH": path, **env},
            capture_output=True,
            text=True,
            check=False,
        )

    def uv_calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_the_first_start_installs_by_hash_and_goes_on_inside(clone):
    result = clone.manage("up", "--port", "9000")

    making, installing = clone.uv_calls()
    assert making.startswith("uv venv")
    assert "--require-hashes -r" in installing
    assert installing.endswith("requirements/product.txt")
    assert result.stdout == "in .venv: manage.py up --port 9000\n"


def test_an_option_that_is_none_is_said_with_the_usage():
    command = [sys.executable, "manage.py", "up", "--prot", "9000"]
    environment = {**os.environ, "COUNTERSIGN_NO_BOOTSTRAP": "1"}

    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "unrecognized arguments: --prot" in done.stderr
    assert "usage: manage.py up" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_second_start_installs_nothing(clone):
    clone.manage("up")
    before = clone.uv_calls()

    result = clone.manage("up")

    assert clone.uv_calls() == before
    assert result.stdout == "in .venv: manage.py up\n"


@pytest.mark.long
def test_where_no_bytecode_may_stand_beside_sources_it_is_kept_in_the_environment(clone):
    clone.manage("up")
    python = clone.home / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\necho "[$PYTHONDONTWRITEBYTECODE] [$PYTHONPYCACHEPREFIX]"\n')

    usual = clone.manage("up")
    forbidden = clone.manage("up", PYTHONDONTWRITEBYTECODE="1")
    elsewhere = clone.manage("up", PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX="/tmp/kept")

    assert usual.stdout == "[] []\n"
    assert forbidden.stdout == f"[] [{clone.home / '.venv' / 'bytecode'}]\n"
    assert elsewhere.stdout == "[] [/tmp/kept]\n"


def test_a_changed_lock_is_installed_again(clone):
    clone.manage("up")
    (clone.home / "requirements" / "product.txt").write_text("no-such-package==2.0 \\\n")

    clone.manage("up")

    assert len(clone.uv_calls()) == 3


def test_tests_have_packages_of_their_own(clone):
    clone.manage("up")

    clone.manage("test")

    assert clone.uv_calls()[-1].endswith("requirements/test.txt")


def test_another_command_before_the_first_start_says_what_to_run(clone):
    result = clone.manage("migrate")

    assert result.returncode == 1
    assert "Run `python3 manage.py up` first" in result.stderr
    assert clone.uv_calls() == []


def test_a_failed_install_is_said_and_tried_again_next_time(clone):
    clone.manage("up")
    clone.broken.touch()
    (clone.home / "requirements" / "product.txt").write_text("no-such-package==3.0 \\\n")

    failed = clone.manage("up")
    clone.broken.unlink()
    again = clone.manage("up")

    assert failed.returncode == 1
    assert "requirements/product.txt could not be installed" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert again.stdout == "in .venv: manage.py up\n"


def test_an_interpreter_with_the_locked_versions_is_taken_as_it_is(clone):
    version = sys.modules["pytest"].__version__
    for lock in ("product.txt", "test.txt"):
        (clone.home / "requirements" / lock).write_text(f"pytest=={version} \\\n    --hash=x\n")

    result = clone.manage("help")

    assert clone.uv_calls() == []
    assert not (clone.home / ".venv").exists()
    assert "Type 'manage.py help <subcommand>'" in result.stdout


def test_a_python_without_venv_is_told_which_package_it_lacks(clone):
    (clone.home / "path" / "uv").unlink()
    (clone.home / "stub").mkdir()
    (clone.home / "stub" / "venv.py").write_text("raise SystemExit('ensurepip is not available')\n")

    result = clone.manage("up", PYTHONPATH=str(clone.home / "stub"))

    assert result.returncode == 1
    assert "apt install python3-venv" in result.stderr


def test_an_old_python_is_told_what_it_takes(tmp_path):
    # What an old interpreter would see, since there is none here to ask.
    source = (ROOT / "manage.py").read_text().replace("(3, 11)", "(3, 99)")
    (tmp_path / "manage.py").write_text(source)

    result = subprocess.run(
        [sys.executable, "manage.py", "up"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 1
    assert "Countersign needs Python 3.11 or newer" in result.stderr
