#!/usr/bin/env python3
"""Countersign's commands.

    python3 manage.py up            start everything: console, agents' endpoint, workers, database
    python3 manage.py test [...]    run the tests; what follows goes to pytest
    python3 manage.py test --long   the long ones; --proof: those that run by hand
    python3 manage.py faults [...]  kill and starve everything, and see if the record stays true
    python3 manage.py help          the rest, which works while `up` runs

`up`, `test` and `faults` need nothing but Python and pip: they install the locked packages into
.venv.
"""

import os
import sys

if sys.version_info < (3, 11):  # noqa: UP036 said to those whose Python is older
    sys.exit(
        "Countersign needs Python 3.11 or newer and this is Python "
        f"{sys.version_info[0]}.{sys.version_info[1]}. Try python3.11, or another that you have."
    )

if sys.platform == "win32":
    sys.exit("Countersign runs on Linux and macOS. On Windows use WSL or docker compose.")

import fcntl
import hashlib
import importlib.metadata
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent
REQUIREMENTS = ROOT / "requirements"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCKS = {"up": "product.txt", "test": "test.txt", "faults": "test.txt"}


def main() -> None:
    command = sys.argv[1] if len(sys.argv) > 1 else "help"
    if not os.environ.get("COUNTERSIGN_NO_BOOTSTRAP"):
        keep_bytecode()
        provide_packages(LOCKS.get(command))
    if command == "test":
        run_tests(sys.argv[2:])
    if command == "faults":
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-m", "tests.faults", *sys.argv[2:]])
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    if command == "up":
        run_up()
    run_command()


def run_command() -> None:
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db.utils import OperationalError

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(str(error))
    except OperationalError as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(
            f"The database does not answer: {error}. Commands work while `python3 manage.py up` "
            "runs; of another data directory than ./var, set COUNTERSIGN_DATA."
        )


def provide_packages(lock: str | None) -> None:
    """Return in an interpreter that has the packages of `lock`, making one if there is none."""
    inside = Path(sys.prefix).resolve() == VENV.resolve()
    if lock is None:
        if not inside and not satisfied("product.txt"):
            enter_environment("Run `python3 manage.py up` first: it installs what this needs.")
        return
    if not is_installed(lock):
        if not inside and satisfied(lock):
            return
        install(lock)
    if not inside:
        enter_environment(f"{PYTHON} is missing. Remove {VENV} and try again.")


def enter_environment(otherwise: str) -> NoReturn:
    if not PYTHON.exists():
        sys.exit(otherwise)
    os.execv(PYTHON, [str(PYTHON), *sys.argv])


def keep_bytecode() -> None:
    """Some machines tell Python to leave none beside the sources; in our environment it is in
    nobody's way. Without any, every process compiles all of Django first, which is most of its
    start."""
    if sys.dont_write_bytecode and VENV.exists():
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(VENV / "bytecode"))
        sys.dont_write_bytecode = False


def satisfied(lock: str) -> bool:
    """Does this very interpreter have the locked versions? So in a container or one's own venv."""
    # Packages with a marker are for some machines only.
    pinned = re.findall(r"^([\w.-]+)==(\S+) \\$", (REQUIREMENTS / lock).read_text(), re.MULTILINE)
    try:
        return all(importlib.metadata.version(name) == version for name, version in pinned)
    except importlib.metadata.PackageNotFoundError:
        return False


def stamp(lock: str) -> Path:
    digest = hashlib.sha256((REQUIREMENTS / lock).read_bytes()).hexdigest()
    return VENV / f".countersign-{lock}-{digest[:16]}"


def is_installed(lock: str) -> bool:
    return PYTHON.exists() and stamp(lock).exists()


def install(lock: str) -> None:
    with one_at_a_time():
        if is_installed(lock):
            return
        say(f"Installing the packages of requirements/{lock} into {VENV} …")
        if not PYTHON.exists():
            make_environment()
        if not install_packages(REQUIREMENTS / lock):
            sys.exit(
                f"The packages of requirements/{lock} could not be installed; the reason is above."
                " Without a network, give pip a mirror or a folder of wheels (PIP_INDEX_URL,"
                " PIP_FIND_LINKS), or see docs/en/guides/install.md."
            )
        for old in VENV.glob(f".countersign-{lock}-*"):
            old.unlink()
        stamp(lock).touch()


@contextmanager
def one_at_a_time() -> Iterator[None]:
    # `up` and `test` may be started together. The lock is on the folder itself: no file is left.
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def make_environment() -> None:
    uv = shutil.which("uv")
    if uv and run(uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, VENV):
        return
    if not run(sys.executable, "-m", "venv", "--clear", VENV):
        sys.exit(
            "Python could not make a virtual environment. On Debian and Ubuntu it needs a package"
            f" more: apt install python3-venv (or python{sys.version_info[0]}."
            f"{sys.version_info[1]}-venv)."
        )


def install_packages(lock: Path) -> bool:
    uv = shutil.which("uv") or pip_gives_uv()
    if uv and run(uv, "pip", "install", "-q", "--python", PYTHON, "--require-hashes", "-r", lock):
        return True
    if uv:
        say("uv did not succeed; trying pip, which may know another index …")
    return has_pip() and run(PYTHON, *PIP_INSTALL, "-r", lock)


PIP_INSTALL = ("-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes")


def has_pip() -> bool:
    # An environment that uv made has none.
    return run(PYTHON, "-m", "pip", "--version", quiet=True) or run(
        PYTHON, "-m", "ensurepip", quiet=True
    )


def pip_gives_uv() -> str | None:
    """uv installs in seconds what takes pip a minute."""
    uv = VENV / "bin" / "uv"
    if uv.exists() or (has_pip() and run(PYTHON, *PIP_INSTALL, "-r", REQUIREMENTS / "uv.txt")):
        return str(uv)
    return None


def run(*argv: str | Path, quiet: bool = False) -> bool:
    output = subprocess.DEVNULL if quiet else None
    # Like pip, uv is to trust whom the machine trusts: a company's proxy, say.
    env = {"UV_SYSTEM_CERTS": "1", **os.environ}
    done = subprocess.run(argv, cwd=ROOT, env=env, stdout=output, stderr=output, check=False)
    return done.returncode == 0


def run_up() -> NoReturn:
    # Not through Django's front door: settings can only be read once `up` has started what they
    # point to, and Django's own start would cost a second of the way to the greeting.
    from config.management.commands.up import Command

    command = Command()
    parser = command.create_parser(sys.argv[0], "up")
    # Otherwise a mistyped option would be an exception, and no sentence with the usage.
    parser.called_from_command_line = True
    options = parser.parse_args(sys.argv[2:])
    command.handle(**vars(options))
    sys.exit()


def run_tests(arguments: list[str]) -> NoReturn:
    from tests import command
    from tests.browser.chromium import provide_chromium
    from tests.clients import install_clients, install_others, provide_npm

    npm = provide_npm(install_packages)
    if npm:
        install_clients(npm)
    install_others()
    provide_chromium(npm)
    sys.exit(command.run_tests(arguments))


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
