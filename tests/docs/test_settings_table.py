"""What the environment sets stands in one table, with the defaults that the code has."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [
    "accounts",
    "approvals",
    "audit",
    "calls",
    "config",
    "core",
    "gateway",
    "notifications",
    "policies",
    "registry",
]
NAME = r"(?:COUNTERSIGN_[A-Z_]+|DATABASE_(?:[A-Z]+_)?URL|REDIS_URL|BROKER_URL|EMAIL_URL)"
BY = "env(?:iron)?|urls|service_url|whole|numbers?|switch|level"
READ = re.compile(rf'(?:{BY})(?:\.get)?[(\[]"({NAME})"(?:, "([^"]*)")?')
TABLE = (ROOT / "docs" / "en" / "reference" / "settings.md").read_text()
ROW = re.compile(r"^\| (.+?) \| (.+) \|$", re.MULTILINE)


def in_code() -> dict[str, str]:
    """By name: the default, empty where there is none or it is computed."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for name, default in READ.findall(path.read_text()):
                found[name] = found.get(name) or default
    return found


def in_table() -> dict[str, str]:
    return {
        name: said
        for names, said in ROW.findall(TABLE)
        for name in re.findall(rf"`({NAME})`", names)
    }


def test_the_table_has_what_the_code_reads_and_no_more() -> None:
    assert set(in_table()) == set(in_code())


def test_the_numbers_are_those_of_the_code() -> None:
    table = in_table()
    counts = {
        name: default for name, default in in_code().items() if default.strip("0123456789.") == ""
    }
    numbers = {name: default for name, default in counts.items() if default not in ("", "0", "1")}
    assert len(numbers) > 10
    assert {name for name, n in numbers.items() if not re.search(rf"\b{n}\b", table[name])} == set()
