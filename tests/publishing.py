"""Publishing what was found red in a definition, as a person does who has read it."""

from accounts.models import User
from registry import services
from registry.models import Tool, versioned


def publish_what_is_red(*, by: User) -> None:
    """Of servers whose tools are published as they come: `write_report` only reads, for one,
    though its name says otherwise."""
    for tool in Tool.objects.filter(state=Tool.State.NEW, latest__isnull=False):
        services.publish(
            tool, difference=versioned.difference(tool), by=by, reason="It is as its server says."
        )
