"""A number for everything that decides what a migrated database looks like."""

import hashlib
from pathlib import Path

import psycopg

ROOT = Path(__file__).resolve().parent.parent
MADE_OF = (
    "*/migrations/*.py",
    "*/sql/*.sql",
    "core/create_models.py",
    "core/sql_files.py",
    "core/triggers.py",
    "config/management/commands/grant_app_role.py",
    "requirements/product.txt",
)


def schema_fingerprint() -> str:
    digest = hashlib.sha256()
    for pattern in MADE_OF:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def is_prepared(url: str) -> bool:
    """Was this database migrated by a release with the same migrations? Raises OperationalError."""
    with psycopg.connect(url, connect_timeout=10) as connection:
        row = connection.execute(
            "SELECT obj_description(to_regclass('django_migrations'), 'pg_class')"
        ).fetchone()
    return row == (schema_fingerprint(),)
