"""Publishing what was found in a definition, as a person does who has read it."""

from accounts.models import User
from registry import services
from registry.models import Server, Tool, versioned

WHY = "It is as its server says."


def publish_what_is_found(*, by: User) -> None:
    """Of servers whose tools are published as they come: `write_report` only reads, for one,
    though its name says otherwise."""
    for tool in Tool.objects.filter(state=Tool.State.NEW, latest__isnull=False):
        services.publish(tool, difference=versioned.difference(tool), by=by, reason=WHY)


def publish_as_read(server: Server, *, by: User | None) -> list[str]:
    """Every tool of it that waits. Returns why some were not, in sentences."""
    waiting = server.tools.waiting().select_related("published", "latest")
    read = {tool.pk: versioned.difference(tool) for tool in waiting}
    return services.publish_all(server, by=by, differences=read, reason=WHY)


def publish_items_as_read(server: Server, *, by: User | None) -> list[str]:
    waiting = server.items.waiting().select_related("published", "latest")
    read = {item.pk: versioned.difference(item) for item in waiting}
    return services.publish_items(server, by=by, differences=read, reason=WHY)
