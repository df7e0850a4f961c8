"""Names of operations as tools: short, plain, different from each other, and the same for ever."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256

from registry.names import MAX_NAME, NameRefused, Names, exposed

# Of "METHOD /path".
Key = str


def name_operations(
    slug: str, wanted: Iterable[tuple[Key, str]], known: Mapping[Key, str]
) -> dict[Key, str]:
    """A name for each operation; `wanted`: with its operationId or "". Known ones stay."""
    names, taken = dict(known), Names(f"{slug}.{name}" for name in known.values())
    most = MAX_NAME - len(slug) - 1
    for key, operation_id in wanted:
        if key not in names:
            names[key] = _free(slug, key, _plain(operation_id) or _of_path(key), most, taken)
            taken.add(f"{slug}.{names[key]}")
    return names


def _free(slug: str, key: Key, base: str, most: int, taken: Names) -> str:
    if len(base) <= most and _is_free(slug, base, taken):
        return base
    mark = sha256(key.encode()).hexdigest()
    # Six digits are enough, unless two of them are read alike.
    lengths = (6, 8, 10, 12, 16)
    tries = (f"{base[: most - n - 1].rstrip('_-')}_{mark[:n]}" for n in lengths)
    return next(name for name in tries if _is_free(slug, name, taken))


def _is_free(slug: str, name: str, taken: Names) -> bool:
    try:
        exposed(slug, name, taken)
    except NameRefused:
        return False
    return True


def _plain(operation_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "_", operation_id).strip("_-")


def _of_path(key: Key) -> str:
    """ "GET /users/{id}/keys" becomes get_users_by_id_keys."""
    method, path = key.split(" ", 1)
    return _plain(f"{method.lower()} {path.replace('{', 'by_')}") or method.lower()
