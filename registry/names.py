"""Names that agents and people see: short, plain, and none that could pass for another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from core.english import gettext as _
from core.errors import CountersignError
from core.look_alikes import look_alikes
from core.text import revealed

# What clients and models' APIs accept. Longer ones are shortened (publishing/agent_names.py).
MAX_NAME = 64
# What MCP allows (server/tools, "Tool Names").
MAX_OF_SERVER = 128
MAX_SLUG = 32
# Ours: `countersign_await_call` and its like.
RESERVED = "countersign"
_slug = re.compile(r"[a-z0-9][a-z0-9_-]*").fullmatch
_plain = re.compile(r"[A-Za-z0-9_.-]+").fullmatch


class NameRefused(CountersignError):
    """Says what is wrong with a name and, where there is one, which would do."""

    def __init__(self, sentence: str, suggestion: str = "") -> None:
        self.suggestion = suggestion
        offer = _("“%s” would do.") % suggestion if suggestion else ""
        super().__init__(f"{sentence} {offer}".strip())


class Names:
    """Names that are taken, each with everything that it could be mistaken for."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._owners: dict[str, str] = {}
        for name in taken:
            self.add(name)

    def add(self, name: str) -> None:
        for look in look_alikes(name):
            self._owners[look] = name

    def like(self, name: str) -> str:
        """A taken name that `name` could pass for, or nothing."""
        return next((self._owners[look] for look in look_alikes(name) if look in self._owners), "")


def check_slug(slug: str, taken: Names) -> None:
    if not _slug(slug) or len(slug) > MAX_SLUG:
        raise NameRefused(
            _("“%(slug)s” is no name for a server: use 1 to %(max)d of a–z, 0–9, - and _.")
            % {"slug": revealed(slug[:100]), "max": MAX_SLUG},
            _free(re.sub(r"[^a-z0-9]+", "-", slug.lower()).strip("-"), taken, MAX_SLUG),
        )
    if other := taken.like(slug):
        raise NameRefused(
            _("“%(slug)s” is taken by, or could pass for, the server “%(other)s”.")
            % {"slug": slug, "other": other},
            _free(slug, taken, MAX_SLUG),
        )


def exposed(slug: str, name: str, taken: Names) -> str:
    """The name of the tool for people and rules; raises NameRefused."""
    whole = f"{slug}.{name}"
    if not _plain(name):
        raise NameRefused(
            _("Its name has other characters than A–Z, a–z, 0–9, _ . and -: rename it there.")
        )
    if len(name) > MAX_OF_SERVER:
        raise NameRefused(
            _("Its name has %(length)d characters, of which MCP allows %(max)d: rename it there.")
            % {"length": len(name), "max": MAX_OF_SERVER}
        )
    if name.casefold().startswith(f"{RESERVED}."):
        raise NameRefused(_("Names that begin with “%s.” are ours.") % RESERVED)
    _check_like(whole, taken)
    return whole


def of_method(slug: str, method: str, taken: Names) -> str:
    """The name for people and rules; agents use the method's own name. Raises NameRefused."""
    whole = f"{slug}.{method}"
    _check_like(whole, taken)
    return whole


def _check_like(whole: str, taken: Names) -> None:
    if other := taken.like(whole):
        raise NameRefused(
            _("“%(name)s” could pass for “%(other)s”: rename it there.")
            % {"name": whole, "other": other}
        )


def _free(wanted: str, taken: Names, length: int) -> str:
    """`wanted` itself, or with a number that makes it free."""
    free: Callable[[str], bool] = lambda name: not taken.like(name)  # noqa: E731
    base = wanted[:length] or "server"
    numbered = (f"{base[: length - 3]}-{n}" for n in range(2, 100))
    return next((name for name in (base, *numbered) if free(name)), "")
