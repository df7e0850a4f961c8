"""Servers, what they offer, every version of it, and what agents are shown."""

from registry.models.icons import Icon
from registry.models.items import Item, ItemVersion, Subscription
from registry.models.servers import Discovery, Server, usual_relays
from registry.models.tools import (
    NAME,
    Definition,
    Listing,
    Publication,
    Tag,
    Tool,
    ToolQuerySet,
)
from registry.models.toolsets import (
    OwnTool,
    SearchTool,
    Separator,
    ShownTool,
    Toolset,
    own_tools,
)

__all__ = [
    "NAME",
    "Definition",
    "Discovery",
    "Icon",
    "Item",
    "ItemVersion",
    "Listing",
    "OwnTool",
    "Publication",
    "SearchTool",
    "Separator",
    "Server",
    "ShownTool",
    "Subscription",
    "Tag",
    "Tool",
    "ToolQuerySet",
    "Toolset",
    "own_tools",
    "usual_relays",
]
