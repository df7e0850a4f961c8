"""The answers to who vouches for a server: publisher, registry, and the review here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from registry.models import Publication, Server, ServerOrigin, Tool
from registry.server_json import document, foreign_registry, importing


@dataclass
class Vouching:
    """The facts of one server's page."""

    server: Server

    @cached_property
    def origin(self) -> ServerOrigin | None:
        return ServerOrigin.objects.filter(server=self.server).first()

    @cached_property
    def review(self) -> Publication | None:
        """The latest one of any of its tools."""
        mine = Publication.objects.filter(definition__tool__server=self.server)
        return mine.select_related("person").order_by("-at").first()

    @property
    def tools(self) -> int:
        return self.server.tools.exclude(state=Tool.State.RETIRED).count()

    @property
    def published(self) -> int:
        return self.server.tools.filter(state=Tool.State.PUBLISHED).count()

    @property
    def is_official(self) -> bool:
        """It came from the registry that checks namespaces."""
        return self.origin is not None and self.origin.registry == foreign_registry.OFFICIAL

    @property
    def is_moved(self) -> bool:
        return self.origin is not None and self.origin.address != self.server.address

    @property
    def names_package(self) -> bool:
        package = self.origin.package if self.origin else {}
        return bool(package) and importing.names_package(self.server.argv, package)

    @property
    def digest(self) -> str:
        package = self.origin.package if self.origin else {}
        return document.pinned_digest(package)
