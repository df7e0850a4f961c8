"""Policy files as text: names in our order, hidden characters escaped, no anchors."""

from __future__ import annotations

from typing import Any

import yaml

from core.text import revealed

HEAD = "# yaml-language-server: $schema=%s\n"


class _Dumper(yaml.SafeDumper):
    """Writes texts as they are, and those with characters that nobody sees in double quotes with
    escapes: a reader of a pull request sees them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def analyze_scalar(self, scalar: str) -> Any:
        found: Any = super().analyze_scalar(scalar)
        if revealed(scalar) != scalar:
            found.special_characters = True
            found.allow_flow_plain = found.allow_block_plain = False
            found.allow_single_quoted = found.allow_block = False
        return found

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        shown, self.allow_unicode = (
            self.allow_unicode,
            self.allow_unicode and revealed(text) == text,
        )
        super().write_double_quoted(text, split)
        self.allow_unicode = shown

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        # Items of a list stand further in than its name.
        super().increase_indent(flow, False)


def write_yaml(value: Any, schema: str = "") -> str:
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, indent=2
    )
    return (HEAD % schema if schema else "") + text
