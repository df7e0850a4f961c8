"""Tools' names in addresses of pages: those that stand for a method of MCP have a slash."""

import re

from django.urls import register_converter

from registry.methods import METHODS


class ToolName:
    regex = f"[^/]+?(?:{'|'.join(re.escape('.' + name) for name in METHODS)})|[^/]+"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


def register() -> None:
    register_converter(ToolName, "tool")
