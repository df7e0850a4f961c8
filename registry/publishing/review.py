"""The review of a server: for each tool and item the difference between the published definition
and the newest, with its risks."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from audit.models import Entry
from inspection.definitions import Scan
from registry.models import Item, Server, Tool, Toolset
from registry.models.versioned import Version, difference
from registry.names import Names
from registry.publishing import second_person
from registry.schemas import definitions, differences
from registry.schemas.arguments import SchemaArgument, rows
from registry.schemas.differences import DefinitionChange, DiffLine
from registry.schemas.risks import Mark, of_texts

# Of more nobody reviews at once; the rest comes when these are published.
REVIEWS_MAX = 100
NOT_MARKED = ("icons", "uri", "uriTemplate")


@dataclass(frozen=True, slots=True)
class Review:
    """One tool or item, as whoever may publish it is shown it."""

    of: Tool | Item
    # None: agents never had it.
    before: Version | None
    after: Version
    marks: list[Mark]

    @property
    def is_tool(self) -> bool:
        return isinstance(self.of, Tool)

    @property
    def name(self) -> str:
        return self.of.exposed_name if isinstance(self.of, Tool) else self.of.key

    @property
    def field(self) -> str:
        """The name of the form field that holds the digest of the difference."""
        return f"digest-{self.of.pk}" if isinstance(self.of, Tool) else f"item-{self.of.pk}"

    @property
    def digest(self) -> str:
        return difference(self.of)

    @property
    def scan(self) -> Scan:
        return self.after.findings

    @property
    def reason_field(self) -> str:
        """The name of the form field that holds the reason to publish it all the same."""
        return f"reason-{self.field}"

    @property
    def proposals(self) -> list[Entry]:
        """Presses of the first of two people, where two are needed."""
        needed = second_person.is_needed(self.after)
        return list(second_person.proposals(self.of, self.after)) if needed else []

    @property
    def needs_two(self) -> bool:
        return second_person.is_needed(self.after)

    @property
    def changes(self) -> list[DefinitionChange]:
        return differences.changes(self.before.content, self.after.content) if self.before else []

    @property
    def lines(self) -> list[DiffLine]:
        return differences.lines(self.before.content, self.after.content) if self.before else []

    @property
    def arguments(self) -> list[SchemaArgument]:
        schema = self.after.content.get("inputSchema")
        return rows(schema) if isinstance(schema, dict) else []

    @property
    def problems(self) -> list[str]:
        return definitions.problems(self.after.content) if isinstance(self.of, Tool) else []

    @property
    def notes(self) -> list[str]:
        return definitions.notes(self.after.content) if isinstance(self.of, Tool) else []


def reviews(
    server: Server,
    tools: QuerySet[Tool],
    items: QuerySet[Item],
    *,
    start: int = 0,
    most: int | None = REVIEWS_MAX,
) -> list[Review]:
    """Differences to review from this number on: risks first, then changes, then new ones; tools
    before other items."""
    waiting = tools.waiting().select_related("server", "published", "latest")  # type: ignore[attr-defined]
    listed = items.waiting().select_related("published", "latest")  # type: ignore[attr-defined]
    end = None if most is None else start + most
    found: list[Tool | Item] = [*waiting.order_by("state", "exposed_name")[start:end]]
    if most is None or len(found) < most:
        first = 0 if found or not start else start - waiting.count()
        room = None if most is None else first + most - len(found)
        found += listed.order_by("state", "kind", "key")[first:room]
    others = _Others(server)
    made = [_review(one, server, others) for one in found if one.latest]
    return sorted(made, key=_order)


def _order(review: Review) -> tuple[bool, bool, bool]:
    return (not review.scan.is_red, not review.marks, review.before is None)


def _review(one: Tool | Item, server: Server, others: _Others) -> Review:
    before, after = one.published, one.latest
    assert after is not None
    if before is not None:
        marks = differences.marks(_texts(before), _texts(after))
        if definitions.digest(_identity(server), before.content) != before.digest:
            said = _("Its server is reached at another address, or by another command, than then")
            marks.insert(0, Mark(said))
    else:
        marks = list(of_texts({}, _texts(after)))
        if isinstance(one, Tool) and (other := others.like(one.name)):
            marks.insert(0, Mark(_("Its name could pass for another server's"), other))
    return Review(one, before, after, marks)


def _texts(version: Version) -> dict[str, object]:
    """The texts that may reach a model: no icons, and not a resource's own URI."""
    return {n: said for n, said in version.content.items() if n not in NOT_MARKED}


def _identity(server: Server) -> dict[str, object]:
    return definitions.identity(transport=server.transport, url=server.url, argv=server.argv)


class _Others:
    """Published tools of other servers, by names that a model could take for each other."""

    def __init__(self, server: Server) -> None:
        published = Tool.objects.filter(state=Tool.State.PUBLISHED).exclude(server=server)
        self._exposed = dict(published.values_list("name", "exposed_name"))
        self._names = Names(self._exposed)

    def like(self, name: str) -> str:
        """One with nearly this name: many servers have a tool called `search`."""
        other = self._names.like(name)
        return "" if other.casefold() == name.casefold() else self._exposed.get(other, "")


def unreached(tools: QuerySet[Tool]) -> QuerySet[Tool]:
    """Published tools among these that no toolset with agents has."""
    used = Toolset.objects.filter(agents__enabled=True)
    return tools.filter(
        ~Exists(used.filter(tools=OuterRef("pk"))),
        ~Exists(used.filter(servers=OuterRef("server_id"))),
        state=Tool.State.PUBLISHED,
    )
