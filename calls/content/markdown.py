"""Markdown of a result as nodes that a template draws: no HTML of anybody's is ever made or passed.

Images are not loaded and links are no links: both are shown with their address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import groupby

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

# More than this is shown as text: what parsing may cost is bounded.
LONGEST = 12_000
# Of all texts of a result together.
LONGEST_RESULT = 2 * LONGEST
MAX_NODES = 3_000
# The parser compares these with each other.
MAX_MARKS = 1_500
# A text without any of these is better shown as it was written.
TELLING = {"heading", "bullet_list", "ordered_list", "table", "fence", "strong", "link"}
# Beyond, the parser leaves out what is within: such a text is shown as it is.
NESTING = 12
PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": 2 * NESTING}).enable("table")
# Definitions that nothing refers to would not be seen.
PARSER.disable("reference")


@dataclass(slots=True)
class MarkdownNode:
    """`kind` names the branch of templates/calls/markdown.html."""

    kind: str
    text: str = ""
    # Of links and images; of code, what it says of itself.
    address: str = ""
    # Of headings, below those of the page.
    level: int = 0
    children: list[MarkdownNode] = field(default_factory=list)


def markdown(text: str) -> list[MarkdownNode]:
    """Its blocks; none for a text that is not written in Markdown, or too long."""
    if len(text) > LONGEST or _is_costly(text):
        return []
    tokens = PARSER.parse(text)
    if any(token.level >= NESTING for token in tokens):
        return []
    tree = SyntaxTreeNode(tokens)
    nodes = list(tree.walk())
    if len(nodes) > MAX_NODES or not TELLING.intersection(node.type for node in nodes):
        return []
    return [] if any(_depth(node) > NESTING for node in nodes) else _blocks(tree)


def _is_costly(text: str) -> bool:
    """Whether parsing it could take long: a table's short rows are filled up by the parser."""
    lines = re.split(r"\r\n?|\n", text)
    if len(lines) > MAX_NODES or sum(map(text.count, "*_[")) > MAX_MARKS:
        return True
    blocks = groupby(lines, key=lambda line: bool(line.strip(" \t")))
    return sum(_cells(list(block)) for _is_text, block in blocks) > MAX_NODES


def _cells(lines: list[str]) -> int:
    """At most so many a table would have that stands in these lines."""
    return len(lines) * max(line.count("|") for line in lines)


def _depth(node: SyntaxTreeNode) -> int:
    depth = 0
    while node.parent is not None:
        node, depth = node.parent, depth + 1
    return depth


def _blocks(node: SyntaxTreeNode) -> list[MarkdownNode]:
    return [_node(child) for child in node.children]


def _node(node: SyntaxTreeNode) -> MarkdownNode:
    match node.type:
        case "text" | "code_inline" | "code_block" | "fence":
            kind = "code" if node.type in ("code_block", "fence") else node.type
            return MarkdownNode(kind, node.content, address=node.info if kind == "code" else "")
        case "image":
            return MarkdownNode("image", node.content, address=_address(node, "src"))
        case "link":
            return MarkdownNode("link", address=_address(node, "href"), children=_blocks(node))
        case "heading":
            level = min(6, int(node.tag.removeprefix("h")) + 2)
            return MarkdownNode("heading", level=level, children=_blocks(node))
        case _:
            return MarkdownNode(node.type, children=_blocks(node))


def _address(node: SyntaxTreeNode, name: str) -> str:
    title = node.attrs.get("title")
    return f"{node.attrs.get(name, '')} “{title}”" if title else str(node.attrs.get(name, ""))
