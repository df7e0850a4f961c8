"""The installation's secret, where the environment names none: made once, in the data folder.

When it is replaced, those before it are kept beside it, one a line, the newest first; and the next
one, once it was announced. Each may be wrapped by a key of another system (config/key_providers).
"""

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from config.key_providers import provider
from config.key_providers.key_requests import KeyProviderFailed
from core.private_files import create_once, write_private

SECRET, OLD, NEXT = "secret.key", "secret.key.old", "secret.key.next"


def secret_key(data: Path) -> str:
    path = data / SECRET
    if not path.exists():
        data.mkdir(parents=True, exist_ok=True)
        create_once(path, _new_secret())
    return path.read_text().strip()


def open_kept(kept: str) -> str:
    """The secret itself, of what the environment or a file holds. Raises ImproperlyConfigured."""
    try:
        return provider.unwrap(kept)
    except KeyProviderFailed as error:
        raise ImproperlyConfigured(
            f"The installation's secret cannot be opened. {error}"
        ) from error


def old_secret_keys(data: Path) -> tuple[str, ...]:
    """Those that are only read with: the newest before the present one first, the next one last."""
    named = os.environ.get("COUNTERSIGN_OLD_SECRET_KEYS", "").replace(",", "\n")
    return tuple(dict.fromkeys(f"{named}\n{_read_text(data / OLD)}\n{next_secret(data)}".split()))


def next_secret(data: Path) -> str:
    """The one that was announced; empty: none was."""
    return _read_text(data / NEXT).strip()


def announce_secret(data: Path) -> None:
    """Makes the next secret, unless there is one: processes that start from now on know it."""
    if not (data / NEXT).exists():
        create_once(data / NEXT, _new_secret())


def replace_secret(data: Path) -> None:
    """The present one is kept before another takes its place: one that is lost opens nothing."""
    following = next_secret(data) or _new_secret()
    kept = dict.fromkeys((secret_key(data), *old_secret_keys(data)))
    kept.pop(following, None)
    write_private(data / OLD, "\n".join(kept) + "\n")
    write_private(data / SECRET, following)
    (data / NEXT).unlink(missing_ok=True)


def wrap_kept(data: Path) -> int:
    """Wraps what the files hold with the chosen provider, also what another key had wrapped; the
    result is their number. Raises KeyProviderFailed: then nothing was written."""
    files = [data / SECRET, data / OLD, data / NEXT]
    kept = {path: path.read_text().split() for path in files if path.exists()}
    chosen = provider.chosen()
    anew = {
        path: [provider.wrap(provider.unwrap(text), chosen) for text in texts]
        for path, texts in kept.items()
    }
    for path, texts in anew.items():
        write_private(path, "\n".join(texts) + "\n")
    return sum(map(len, anew.values()))


def _read_text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def _new_secret() -> str:
    made, chosen = secrets.token_urlsafe(48), provider.chosen()
    return provider.wrap(made, chosen) if chosen else made
