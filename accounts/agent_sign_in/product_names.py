"""Names of products that users know, which other clients may take."""

from __future__ import annotations

from core.look_alikes import readings, skeleton

# With the hosts of their documents; those without any register themselves, under their own name.
_HOSTS = {
    "Claude": ("claude.ai", "claude.com", "anthropic.com"),
    "Anthropic": ("claude.ai", "claude.com", "anthropic.com"),
    "ChatGPT": ("chatgpt.com", "openai.com"),
    "OpenAI": ("chatgpt.com", "openai.com"),
    "Visual Studio Code": ("vscode.dev", "visualstudio.com"),
    "VS Code": ("vscode.dev", "visualstudio.com"),
    "Copilot": ("github.com", "microsoft.com", "vscode.dev"),
    "Gemini": ("google.com",),
    "Cursor": (),
    "Windsurf": (),
    "Inspector": (),
}


def product_named(name: str, host: str) -> str:
    """The product whose name a client has or holds, in whatever letters, though no host of the
    product vouches for it; else empty. `host`: which vouches for the client, if one does."""
    looks, plain = readings(name), name.casefold()
    for product, hosts in _HOSTS.items():
        is_own = host.endswith(tuple(f".{one}" for one in hosts)) or host in hosts
        # A host is on the page in bold: there, a part of the name misleads nobody.
        own = skeleton(product)
        is_named = own in looks if host else any(own in look for look in looks)
        if is_named and not is_own and (hosts or product.casefold() not in plain):
            return product
    return ""
