from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import services
from accounts.models import AgentToken


class Command(BaseCommand):
    help = "Revoke agents' tokens: by the token itself, or by the eight characters after csa_."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("tokens", nargs="+")

    def handle(self, *, tokens: list[str], **options: Any) -> None:
        for text in tokens:
            token = _token(text)
            revoked = services.revoke_token(token, by=None)
            done = "revoked" if revoked else "was revoked before"
            self.stdout.write(f"{token} of {token.agent}: {done}.")


def _token(text: str) -> AgentToken:
    public_id = text.removeprefix("csa_")[:8]
    token = AgentToken.objects.select_related("agent").filter(public_id=public_id).first()
    if token is None:
        raise CommandError(f"There is no token csa_{public_id}_…")
    return token
