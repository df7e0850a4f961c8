"""Every command of every page: a test runs it, its own parser reads it, or it is marked.

Lines of `sh` and `console` blocks are looked at. `manage.py` commands are read by the parser of
the command itself, so that a missing or unknown argument is found without running them.
"""

import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError

from tests.docs.translations import ENGLISH, ROOT

SHELL = re.compile(r"^ *```(?:sh|console)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
MANAGE = re.compile(r"^(?:python3 |\.venv/bin/python )?manage\.py ([a-z_]+)(.*)$", re.DOTALL)
# `manage.py` itself knows these, and hands their options on.
OWN = {"test", "faults", "help"}

# Pages cut long ids off.
CUT_ID, ANY_ID = re.compile(r"^[0-9a-f]{4}…$"), "01930000-0000-7000-8000-000000000000"

# By page: the test that sends the page's requests or runs its programs.
RUN = {
    "guides/connect-clients.md": "tests/flows/test_clients.py",
    "tutorials/first-steps.md": "tests/flows/test_clients.py",
    "reference/mcp.md": "tests/gateway/test_agents_page.py",
    "reference/api.md": "tests/gateway/test_service_api_page.py",
    "guides/command-line.md": "tests/client/test_page.py",
}
# Not runnable in a test, each with its reason.
MARKED = {
    r"export [A-Z_]+=": "sets a variable of the reader's shell",
    r"[A-Z_]+=\S+ \S": "needs an API key of a model",
    r"PGPASSWORD=|(mv|cp -a|touch) \S*(var/postgres|/base/)": "tests/faults/test_point_in_time.py",
    r"docker (compose|run)\b": "needs Docker and its images; docker-compose.yml has its own tests",
    r"useradd |install -d |systemctl |cp deploy/systemd/": "tests/config reads the units",
    r"sh docker/make-secrets\.sh": "tests/config/test_compose.py runs it",
    r"cp docker/env\.example \.env": "the first line of the containers' start",
    r"claude mcp add\b": "needs another vendor's program; its text is compared with the console's",
    r"python3? verify\.py\b|python3 verify\.py": "tests/audit runs the same file with an export",
    r"pip install \./client": "needs the package index; the file that it installs is tested",
    r"uv pip compile\b": "writes the locked packages; needs the package index",
    r"git log\b": "needs the history of the repository",
    r"\.venv/bin/python -m benchmarks\.": "measures for minutes on an idle machine",
    r"curl -s \"http://127\.0\.0\.1:8000/api/": "tests/gateway sends the same requests to REST",
    r"curl -sS http://127\.0\.0\.1:8001/mcp/default": "reference/mcp.md's is sent, with its key",
    r"curl -N http://127\.0\.0\.1:8001/mcp/default": "tests/flows sends it from the first steps",
}


def name(page: Path) -> str:
    return page.relative_to(ENGLISH if ENGLISH in page.parents else ROOT).as_posix()


def commands(text: str) -> list[str]:
    """Without prompts and comments; lines that a backslash or a quote continues are one."""
    found: list[str] = []
    for block in SHELL.findall(text):
        open_command = ""
        for line in block.splitlines():
            open_command += line.removeprefix("$ ") + "\n"
            try:
                shlex.split(open_command, comments=True)
            except ValueError:
                continue
            if not open_command.rstrip().endswith("\\"):
                found.append(open_command.strip())
                open_command = ""
    return [one for one in found if one and not one.startswith("#")]


@cache
def command(named: str) -> BaseCommand:
    app = get_commands()[named]
    return app if isinstance(app, BaseCommand) else load_command_class(app, named)


def wrong_with(said: str, page: str) -> str:
    """Empty where the command is run, read or marked."""
    if managed := MANAGE.match(said):
        return wrong_arguments(managed[1], shlex.split(managed[2], comments=True))
    if page in RUN and re.match(r"(\w+=\$\(|eval \"\$\()?(until )?(curl|api|countersign)\b", said):
        return ""
    is_marked = any(re.match(mark, said) for mark in MARKED)
    return "" if is_marked else "is neither run nor marked"


def wrong_arguments(named: str, arguments: list[str]) -> str:
    if named in OWN:
        return ""
    arguments = [CUT_ID.sub(ANY_ID, argument) for argument in arguments]
    parser = command(named).create_parser("manage.py", named)
    try:
        # As if the caller were a program: raises instead of ending the process.
        parser.called_from_command_line = False
        parser.parse_args(arguments)
    except CommandError as error:
        return str(error)
    return ""


PAGES = [ROOT / "README.md", *sorted(ENGLISH.rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_is_run_or_marked(page: Path) -> None:
    found = {said: wrong_with(said, name(page)) for said in commands(page.read_text())}

    assert {said: why for said, why in found.items() if why} == {}


def test_the_tests_that_run_pages_read_them() -> None:
    for page, test in RUN.items():
        snippets = (ROOT / "tests" / "flows" / "snippets.py").read_text()
        assert Path(page).name in (ROOT / test).read_text() + snippets


def test_there_are_commands_to_look_at() -> None:
    assert sum(len(commands(page.read_text())) for page in PAGES) > 40


def test_a_wrong_command_is_noticed() -> None:
    assert wrong_with("python3 manage.py issue_token", "x")
    assert wrong_with("python3 manage.py issue_token scout --owner", "x")
    assert wrong_with("rm -rf var", "x")
    assert not wrong_with("python3 manage.py issue_token scout --owner admin", "x")
