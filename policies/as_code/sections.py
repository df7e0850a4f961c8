"""The sections of a policy file. Packages above register theirs (`register`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from django.core.exceptions import ValidationError
from django.db import models

from audit.services import Actor
from core.english import gettext as _
from core.errors import CountersignError
from policies.as_code.yaml_reader import Path

Plain = dict[str, Any]
# Of one object: by its name, what the file says of it, and what it is now (None: not there).
Normal = Callable[[str, Plain, Plain | None], Plain]


class BadMember(CountersignError):
    """A member that cannot be so; `path` from the object on."""

    def __init__(self, sentence: str, *path: str | int) -> None:
        self.path: Path = path
        super().__init__(sentence)


class Section(NamedTuple):
    """`is_whole`: the file lists all of them, in order, and what it leaves out is removed. Others
    change those that they name, and of those the members that they name."""

    key: str
    is_whole: bool
    # By name, in order; all that an export has, or those of these names that exist.
    read: Callable[[Collection[str] | None], dict[str, Plain]]
    # Raises BadMember and ValidationError.
    normal: Normal
    save: Callable[[str, Plain, Actor], None]
    # Without members that are as usual.
    shown: Callable[[Plain], Plain]
    schema: Callable[[], Plain]
    # Permissions that a change takes, by its kind.
    needs: Mapping[str, tuple[str, ...]]
    remove: Callable[[str, Actor], None] | None = None
    order: Callable[[Collection[str], Actor], None] | None = None
    # Tables that nobody else writes to meanwhile, besides those of the packages below.
    locked: tuple[type[models.Model], ...] = ()


_sections: list[Section] = []


def register(*sections: Section) -> None:
    _sections.extend(sections)


def every_section() -> list[Section]:
    return list(_sections)


def named_rows(
    rows: models.QuerySet[Any], key: str, names: Collection[str], *path: str
) -> list[Any]:
    """The rows of these names. Raises BadMember for a name that is none."""
    found = {getattr(one, key): one for one in rows.filter(**{f"{key}__in": list(names)})}
    for place, name in enumerate(names):
        if name not in found:
            raise BadMember(_("There is no “%s” here.") % name[:80], *path, place)
    return list(found.values())


def mistakes_of(error: Exception) -> Iterator[tuple[Path, str]]:
    """Each mistake with the path of its member."""
    if isinstance(error, ValidationError) and hasattr(error, "error_dict"):
        for name, messages in error.message_dict.items():
            yield ((name,) if name != "__all__" else ()), " ".join(messages)
    elif isinstance(error, ValidationError):
        yield (), " ".join(error.messages)
    else:
        yield getattr(error, "path", ()), str(error)
