"""What import-linter cannot see: tables of higher packages in SQL, and imports by a string."""

import re
import tomllib
from pathlib import Path

from django.apps import apps

ROOT = Path(__file__).resolve().parents[2]
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
# From the top down.
LAYERS: list[str] = LINTER["contracts"][0]["layers"]
# An approval's grant is used in the statement that opens the call.
KNOWN = {("calls/record/transitions.py", "approvals_grantuse")}


def sources() -> list[Path]:
    found = [
        path
        for layer in LAYERS
        for path in (ROOT / layer).rglob("*")
        if path.suffix in (".py", ".sql") and "migrations" not in path.parts
    ]
    assert len(found) > 300
    return found


def test_no_package_names_a_table_of_a_higher_one() -> None:
    tables = {
        model._meta.db_table: LAYERS.index(model._meta.app_label)
        for model in apps.get_models(include_auto_created=True)
        if model._meta.app_label in LAYERS
    }
    found = set()
    for path in sources():
        name = path.relative_to(ROOT).as_posix()
        words = set(re.findall(r"\w+", path.read_text()))
        own = LAYERS.index(name.partition("/")[0])
        found |= {(name, table) for table in words & tables.keys() if tables[table] < own}
    assert found == KNOWN


def test_nothing_is_imported_by_a_string() -> None:
    by_string = re.compile(r"\b(import_string|import_module|__import__)\b")
    assert [path for path in sources() if by_string.search(path.read_text())] == []
