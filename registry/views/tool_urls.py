"""Tools' names in addresses of pages. Those that stand for a method have slashes: a method of MCP
keeps them, and one of an extension, whose last part may be called like a page, has colons there."""

import re

from django.urls import register_converter

from registry import methods

_known = re.compile("|".join(re.escape(f".{name}") + r"\Z" for name in methods.METHODS)).search


class ToolName:
    regex = f"[^/]+?(?:{'|'.join(re.escape('.' + name) for name in methods.METHODS)})|[^/]+"

    def to_python(self, value: str) -> str:
        return value.replace(":", "/")

    def to_url(self, value: object) -> str:
        name = str(value)
        return name if _known(name) else name.replace("/", ":")


def register() -> None:
    register_converter(ToolName, "tool")
