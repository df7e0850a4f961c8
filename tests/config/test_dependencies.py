"""What our code imports is declared, locked as declared, and explained."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.database import ROOT

PRODUCT = [
    *("config", "gateway", "notifications", "approvals", "calls", "policies"),
    *("registry", "accounts", "audit", "core"),
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DIRECT = [Requirement(line) for line in PROJECT["dependencies"]]
EXAMPLES = [Requirement(line) for line in PROJECT["optional-dependencies"]["examples"]]
TELEMETRY = [Requirement(line) for line in PROJECT["optional-dependencies"]["telemetry"]]
# Django's, Celery's, and psycopg's by its extra.
OF_OTHERS = {"asgiref", "kombu", "psycopg-pool"}


def imported() -> dict[str, Path]:
    """Modules that are not of the standard library and not ours, with a file that wants each."""
    wanted: dict[str, Path] = {}
    for package in PRODUCT:
        for path in (ROOT / package).rglob("*.py"):
            wanted |= dict.fromkeys(modules(ast.parse(path.read_text())), path)
    ours = {path.name for path in ROOT.iterdir()}
    return {m: path for m, path in wanted.items() if m not in sys.stdlib_module_names | ours}


def modules(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@pytest.mark.long
def test_what_the_product_imports_is_declared() -> None:
    homes = packages_distributions()
    declared = {
        canonicalize_name(requirement.name) for requirement in [*DIRECT, *TELEMETRY]
    } | OF_OTHERS
    undeclared = {
        module: path
        for module, path in imported().items()
        if declared.isdisjoint(canonicalize_name(home) for home in homes.get(module, [module]))
    }
    assert undeclared == {}


@pytest.mark.parametrize("lock", ["product", "test"])
def test_the_locks_hold_what_is_declared(lock: str) -> None:
    locked = locked_in(lock)
    for requirement in [*DIRECT, *EXAMPLES, *TELEMETRY]:
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)])


def test_what_is_tested_is_what_is_installed() -> None:
    product, tested = locked_in("product"), locked_in("test")

    assert {name: tested.get(name) for name in product} == product


def locked_in(lock: str) -> dict[str, str]:
    """Versions by package."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    return dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", text, re.M))


def test_each_is_explained() -> None:
    explained = (ROOT / "docs" / "en" / "contributing" / "dependencies.md").read_text().lower()
    missing = [r.name for r in [*DIRECT, *EXAMPLES, *TELEMETRY] if r.name.lower() not in explained]
    assert missing == []
