"""Migrations of earlier releases, which are joined into one an app."""

from collections.abc import Iterable

from django.db.migrations.loader import MigrationLoader


def known_migrations() -> set[tuple[str, str]]:
    """Every migration by its app and name, of this release and of earlier ones."""
    loaded = MigrationLoader(None).disk_migrations
    return {*loaded, *_joined()}


def first_missing(applied: Iterable[tuple[str, str]]) -> str:
    """The first of the joined ones that is missing where others of them were applied, or "".

    Django would take such a database for a finished one.
    """
    joined, made = _joined(), set(applied)
    missing = sorted(joined - made) if joined & made else []
    return ".".join(missing[0]) if missing else ""


def _joined() -> set[tuple[str, str]]:
    loaded = MigrationLoader(None).disk_migrations
    return {name for migration in loaded.values() for name in migration.replaces}
