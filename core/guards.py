"""Triggers, functions and checks of the database, compared with this release.

One that was put in the place of another, with the same name and less to say, is found by what it
says. `guards.json` has a digest of each; `python -m tests.guards` writes it anew from migrations.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from django.db import connection

FILE = Path(__file__).with_name("guards.json")

# Those of partitions are held against their table's (core/months.py).
READ = """
    SELECT 'trigger ' || t.tgname || ' of ' || c.relname, pg_get_triggerdef(t.oid)
    FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
      AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
    UNION ALL
    SELECT 'function ' || p.oid::regprocedure::text,
        concat_ws(' ', l.lanname, p.prosecdef, p.provolatile, p.proconfig::text, p.prosrc,
            pg_get_expr(p.prosqlbody, 0))
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
    WHERE p.pronamespace = 'public'::regnamespace AND NOT EXISTS (
        SELECT FROM pg_depend d
        WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    UNION ALL
    SELECT 'check ' || o.conname || ' of ' || c.relname, pg_get_constraintdef(o.oid)
    FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid
    WHERE c.relnamespace = 'public'::regnamespace AND NOT c.relispartition
      AND o.contype = 'c' AND o.convalidated AND c.relname NOT LIKE 'django%'
"""
_CAST = re.compile(r"::(?:character varying|[a-z_]+)(?:\(\d+\))?(?:\[\])?")
# Parentheses that nothing hangs on: around one word, and two pairs around the same.
_AROUND_ONE = re.compile(r"(?<![\w])\(([^()\s,]+)\)")
_AROUND_TWO = re.compile(r"\(\(([^()]*)\)\)")
_MODEL_TRIGGER = re.compile(r"trigger pgtrigger_(.+)_[0-9a-f]{5} of (\w+)")


def installed_definitions() -> dict[str, str]:
    """A digest of each definition by kind and name, regardless of spacing."""
    with connection.cursor() as cursor:
        cursor.execute(READ)
        return {name: _digest(_settled(name, text)) for name, text in cursor.fetchall()}


def differing() -> list[str]:
    """A sentence on each that somebody changed, took away, switched off or added."""
    return sorted(_differing(_expected(), installed_definitions()))


def write(definitions: Mapping[str, str], file: Path = FILE) -> None:
    file.write_text(json.dumps(dict(sorted(definitions.items())), indent=0) + "\n")


@lru_cache
def _expected() -> dict[str, str]:
    expected: dict[str, str] = json.loads(FILE.read_text())
    return expected


def _differing(expected: Mapping[str, str], installed: Mapping[str, str]) -> Iterator[str]:
    for name in expected.keys() - installed.keys():
        yield f"The {_label(name)} is gone or off: nothing holds what it held."
    for name in _triggers(installed.keys() - expected.keys()):
        yield f"The {_label(name)} is not of this release: what it does to rows is not known."
    for name in expected.keys() & installed.keys():
        if expected[name] != installed[name]:
            yield f"The {_label(name)} is not as this release has it: it may hold less, or more."


def _triggers(names: Iterable[str]) -> Iterator[str]:
    """Functions and checks that nobody else has do nothing by themselves, or refuse more."""
    return (name for name in names if name.startswith("trigger "))


def _label(name: str) -> str:
    known = _MODEL_TRIGGER.fullmatch(name)
    return f"trigger {known[1]} of {known[2]}" if known else name


def _settled(name: str, text: str) -> str:
    """A definition in the form that is equal before and after a restore, which writes casts another
    way."""
    if name.startswith("function "):
        return text
    text, before = _CAST.sub("", text), ""
    while text != before:
        text, before = _AROUND_TWO.sub(r"(\1)", _AROUND_ONE.sub(r"\1", text)), text
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:16]
