"""The answers to who vouches for a server: publisher, registry, and the review here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from functools import cached_property
from typing import Any

from django.db.models import Count, Q
from django.utils.dateparse import parse_datetime

from registry.models import Publication, Server, ServerOrigin, Tool
from registry.server_json import document, foreign_registry, importing


@dataclass
class Vouching:
    """The facts of one server's page."""

    server: Server

    @cached_property
    def origin(self) -> ServerOrigin | None:
        return getattr(self.server, "origin", None)

    @cached_property
    def review(self) -> Publication | None:
        """The latest one of any of its tools."""
        mine = Publication.objects.filter(definition__tool__server=self.server)
        return mine.select_related("person").order_by("-at").first()

    @cached_property
    def _tools(self) -> dict[str, int]:
        return self.server.tools.without_methods().aggregate(
            kept=Count("pk", filter=~Q(state=Tool.State.RETIRED)),
            published=Count("pk", filter=Q(state=Tool.State.PUBLISHED)),
            waiting=Count("pk", filter=Q(state__in=[Tool.State.NEW, Tool.State.CHANGED])),
        )

    @property
    def tools(self) -> int:
        return self._tools["kept"]

    @property
    def published(self) -> int:
        return self._tools["published"]

    @property
    def waiting(self) -> int:
        """Tools that nobody reviewed yet."""
        return self._tools["waiting"]

    @property
    def is_official(self) -> bool:
        """It came from the registry that checks namespaces."""
        return self.origin is not None and self.origin.registry == foreign_registry.OFFICIAL

    @property
    def registry_published_at(self) -> datetime | None:
        """The time that the registry states, where it is one that every time zone can show."""
        try:
            found = parse_datetime(self.origin.published_at) if self.origin else None
        except ValueError:
            return None
        if found is None or not MINYEAR < found.year < MAXYEAR:
            return None
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    @property
    def is_moved(self) -> bool:
        return self.origin is not None and self.origin.is_moved

    @property
    def signature(self) -> dict[str, Any] | None:
        return self.origin.current_signature if self.origin else None

    @property
    def signed_at(self) -> datetime | None:
        return datetime.fromisoformat(self.signature["at"]) if self.signature else None

    @property
    def is_package_signed(self) -> bool:
        """It is about the package, not about the document."""
        return self.signature is not None and self.signature["digest"] == self.digest

    @property
    def names_package(self) -> bool:
        package = self.origin.package if self.origin else {}
        return bool(package) and importing.names_package(self.server.argv, package)

    @property
    def digest(self) -> str:
        package = self.origin.package if self.origin else {}
        return document.pinned_digest(package)
