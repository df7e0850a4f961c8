"""Secrets from files: `NAME_FILE` in place of `NAME`, as Docker and Kubernetes mount them."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

NAMES = (
    "DATABASE_URL",
    "DATABASE_DIRECT_URL",
    "DATABASE_OWNER_URL",
    "DATABASE_SEAL_URL",
    "DATABASE_MAINTENANCE_URL",
    "REDIS_URL",
    "BROKER_URL",
    "EMAIL_URL",
    "COUNTERSIGN_SECRET_KEY",
    "COUNTERSIGN_OLD_SECRET_KEYS",
    "COUNTERSIGN_METRICS_TOKEN",
    "COUNTERSIGN_ARCHIVE_SECRET_KEY",
    "COUNTERSIGN_EMBEDDINGS_KEY",
)


def read_secret_files(environment: MutableMapping[str, str]) -> None:
    """Sets each NAME whose NAME_FILE is set, and removes NAME_FILE: a process that is started with
    another NAME gets that one. Raises ImproperlyConfigured."""
    for name in NAMES:
        if path := environment.get(f"{name}_FILE", ""):
            if environment.get(name):
                raise ImproperlyConfigured(f"Set {name} or {name}_FILE, not both.")
            environment[name] = _content(name, Path(path))
        # Only now: Django reads the settings once more to say what is wrong with them.
        environment.pop(f"{name}_FILE", None)


def _content(name: str, path: Path) -> str:
    try:
        content = path.read_text().strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name}_FILE: {path} cannot be read: {error.strerror}."
        ) from error
    except UnicodeDecodeError as error:
        raise ImproperlyConfigured(f"{name}_FILE: {path} is no text in UTF-8.") from error
    if not content:
        raise ImproperlyConfigured(f"{name}_FILE: {path} is empty.")
    return content
