"""Where the description of an imported server came from."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone

# Whose workflows sign in the name of a GitHub account.
GITHUB_ISSUER = "https://token.actions.githubusercontent.com"


class ServerOrigin(models.Model):
    """The server.json that a server was registered by, and who gave it."""

    server = models.OneToOneField(
        "Server", models.CASCADE, related_name="origin", editable=False, primary_key=True
    )
    name = models.CharField(max_length=200)
    version = models.CharField(max_length=255)
    body = models.JSONField()
    # Of the body, as sha256:….
    digest = models.CharField(max_length=71)
    # The registry that gave it, and what that says of it; "": pasted or uploaded.
    registry = models.URLField(max_length=500, blank=True)
    status = models.CharField(max_length=255, blank=True)
    published_at = models.CharField(max_length=255, blank=True)
    fetched_at = models.DateTimeField(default=timezone.now)
    # The package that was chosen; {}: a remote.
    package = models.JSONField(default=dict)
    # The server's address then: a URL or a command.
    address = models.TextField()
    # A verified one, with the digest of the document that it was verified for (`of`).
    signature = models.JSONField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def is_moved(self) -> bool:
        return self.address != self.server.address

    @property
    def current_signature(self) -> dict[str, Any] | None:
        """None where it was verified for another document, or the server is elsewhere now."""
        known = self.signature
        return known if known and known["of"] == self.digest and not self.is_moved else None

    @property
    def is_signed_by_publisher(self) -> bool:
        """A workflow of the GitHub account that the namespace names."""
        known, owner = self.current_signature, self.github_owner
        if not known or not owner or known["issuer"] != GITHUB_ISSUER:
            return False
        return str(known["identity"]).lower().startswith(f"https://github.com/{owner}/")

    @property
    def github_owner(self) -> str:
        """The owner that the namespace names; empty where it is a domain."""
        namespace = self.name.partition("/")[0].lower()
        return namespace.removeprefix("io.github.") if namespace.startswith("io.github.") else ""

    @property
    def domain(self) -> str:
        return ".".join(reversed(self.name.partition("/")[0].split(".")))
