"""Names by which agents see and call tools: such that every client and model takes them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from registry.models import OwnTool, SearchTool, Separator
from registry.names import MAX_NAME, RESERVED

Thing = TypeVar("Thing")

# Of a name that is too long, or not the only one: so much of it, "_" and eight digits.
KEPT, DIGITS = 55, 8


def own(tool: str, separator: str) -> str:
    """The agents' name of one of the gateway's own tools."""
    return f"{RESERVED}{separator}{tool}"


def own_tool(name: str) -> str:
    """Which own tool this names, in whatever toolset; "" if none."""
    tool = _reserved(name)
    return tool if tool in OwnTool.values else ""


def search_tool(name: str) -> str:
    """Which of the tools for searching this names; "" if none."""
    tool = _reserved(name)
    return tool if tool in SearchTool.values else ""


def _reserved(name: str) -> str:
    separator, tool = name[len(RESERVED) :][:1], name[len(RESERVED) + 1 :]
    is_one = name.startswith(RESERVED) and separator in Separator.values
    return tool if is_one else ""


def public_name(name: str, separator: str) -> str:
    """The agents' name, where no other name collides with it."""
    if "/" in name:
        # Stands for a method, which is called by no such name.
        return name
    plain = name.replace(".", separator)
    return plain if len(plain) <= MAX_NAME else _digested(name, plain)


def _digested(name: str, plain: str) -> str:
    digest = hashlib.sha256(name.encode()).hexdigest()[:DIGITS]
    return f"{plain[:KEPT]}_{digest}"


class ToolsByName(dict[str, Thing]):
    """Tools by their agents' names, in order. `find` also takes their older names."""

    def __init__(
        self,
        listed: Mapping[str, Thing],
        older: Mapping[str, int],
        by_id: Mapping[int, Thing],
    ) -> None:
        """`older`: names of before, each with its tool's id."""
        super().__init__(listed)
        self._older, self._by_id = older, by_id

    def find(self, name: str) -> Thing | None:
        return self.get(name) or self.find_older(name)

    def find_older(self, name: str) -> Thing | None:
        return self._by_id.get(self._older.get(name, 0))

    def with_changed(
        self, changed: Mapping[str, Thing], by_id: Mapping[int, Thing]
    ) -> ToolsByName[Thing]:
        """The same names, of which some stand for other things."""
        made = ToolsByName(self, self._older, by_id)
        made.update(changed)
        return made


def names(things: Mapping[int, str], given: Mapping[int, str], separator: str) -> dict[int, str]:
    """The agents' names, by id. `things`: their names; `given`: names an operator chose.

    An operator's name stands. Where others come to the same, none of them gets it: each has its own
    digest, so that nobody is served another's tool. Without a name: who has no other even so.
    """
    plain = _plain(things, given, separator)
    taken = _taken_names(name for pk, name in plain.items() if pk not in given)
    stands = _taken_names(name for pk, name in plain.items() if pk in given)
    told = {}
    for pk, name in plain.items():
        key = name.casefold()
        alone = stands[key] == 1 if pk in given else taken[key] == 1 and key not in stands
        told[pk] = name if alone else _digested(given.get(pk, things[pk]), name)
    # Somebody may give a tool the very name that another gets so.
    again = Counter(name.casefold() for name in told.values())
    return {pk: name for pk, name in told.items() if again[name.casefold()] == 1}


def _contested(have: Mapping[int, str], given: Mapping[int, str], separator: str) -> set[str]:
    """Names to which several come, now or with the separator before: whoever still uses one could
    mean any of them, and is served none."""
    found = set[str]()
    for one in {separator, Separator.UNDERSCORE}:
        plain = Counter(name.casefold() for name in _plain(have, given, one).values())
        found |= {name for name, times in plain.items() if times > 1}
    return found


def doubled(things: Mapping[int, str], given: Mapping[int, str], separator: str) -> set[int]:
    """The ids that `names` gives another name, or none, because it is not the only one."""
    told = names(things, given, separator)
    plain = _plain(things, given, separator)
    return {pk for pk, name in plain.items() if told.get(pk) != name}


def _plain(things: Mapping[int, str], given: Mapping[int, str], separator: str) -> dict[int, str]:
    return {pk: public_name(given.get(pk, name), separator) for pk, name in things.items()}


def _taken_names(plain: Iterable[str]) -> Counter[str]:
    taken = Counter(name.casefold() for name in plain)
    ours = [*OwnTool.values, *SearchTool.values]
    taken.update(own(tool, separator) for tool in ours for separator in Separator.values)
    return taken


@dataclass(frozen=True, slots=True)
class NamesFound:
    """`names` of things, and the names by which agents knew them before: with dots, in full, or
    from before another separator was chosen. These still find them, unless they are another's now.
    """

    have: Mapping[int, str]
    given: Mapping[int, str]
    separator: str
    told: Mapping[int, str]
    older: Mapping[str, int]

    @classmethod
    def of(
        cls,
        have: Mapping[int, str],
        given: Mapping[int, str],
        separator: str,
        before: NamesFound | None = None,
    ) -> NamesFound:
        """`have`: the names that things have anyway, for which an operator's, in `given`, stand in.
        `before` is returned if it was found from the same."""
        if before and (before.have, before.given, before.separator) == (have, given, separator):
            return before
        mine = {pk: name for pk, name in given.items() if name and pk in have}
        older = dict[str, int]()
        if separator != Separator.UNDERSCORE:
            older = {name: pk for pk, name in names(have, mine, Separator.UNDERSCORE).items()}
        older |= {name: pk for pk, name in have.items() if pk not in mine}
        older |= {name: pk for pk, name in mine.items()}
        contested = _contested(have, mine, separator)
        older = {name: pk for name, pk in older.items() if name.casefold() not in contested}
        return cls(have, given, separator, names(have, mine, separator), older)

    def placed(self, things: Mapping[int, Thing]) -> ToolsByName[Thing]:
        """Things by their agents' names."""
        listed = {name: things[pk] for pk, name in self.told.items()}
        return ToolsByName(dict(sorted(listed.items())), self.older, things)

    def of_changed(self, things: Mapping[int, Thing]) -> dict[str, Thing]:
        return {self.told[pk]: thing for pk, thing in things.items() if pk in self.told}
