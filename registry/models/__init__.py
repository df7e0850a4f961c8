"""Servers, what they offer, every version of it, and what agents are shown."""

from registry.models.api_documents import ApiDocument
from registry.models.credentials import CredentialOwner, ServerClient, ServerCredential
from registry.models.icons import Icon
from registry.models.items import Item, ItemVersion, Subscription
from registry.models.managed import ManagedPart
from registry.models.registry_versions import RegistryVersion
from registry.models.server_origins import ServerOrigin
from registry.models.servers import Discovery, Server, usual_relays
from registry.models.tools import (
    HAS_METHOD,
    IS_METHOD,
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
    RegistryReaders,
    SearchTool,
    Separator,
    ShownTool,
    Toolset,
    own_tools,
)

__all__ = [
    "HAS_METHOD",
    "IS_METHOD",
    "NAME",
    "ApiDocument",
    "CredentialOwner",
    "Definition",
    "Discovery",
    "Icon",
    "Item",
    "ItemVersion",
    "Listing",
    "ManagedPart",
    "OwnTool",
    "Publication",
    "RegistryReaders",
    "RegistryVersion",
    "SearchTool",
    "Separator",
    "Server",
    "ServerClient",
    "ServerCredential",
    "ServerOrigin",
    "ShownTool",
    "Subscription",
    "Tag",
    "Tool",
    "ToolQuerySet",
    "Toolset",
    "own_tools",
    "usual_relays",
]
