"""Finds every message of templates and Python code, as gettext will look it up."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from django.utils.translation.template import templatize

from core.messages.catalogue import Catalogue, Message, MessageKey

PACKAGES = ("accounts", "approvals", "audit", "calls", "config", "core", "gateway", "inspection",
            "notifications", "policies", "registry")  # fmt: skip
# Who imports this keeps its sentences in English.
KEPT = ("from core.english import", "from core.kept_english import")
SINGULAR = {"_", "gettext", "gettext_lazy", "gettext_noop"}
PLURAL = {"ngettext", "ngettext_lazy"}
WITH_CONTEXT = {"pgettext", "pgettext_lazy"}
ALL = SINGULAR | PLURAL | WITH_CONTEXT


def extract(root: Path) -> Catalogue:
    found: Catalogue = {}
    for path in _files(root):
        text = path.read_text(encoding="utf-8")
        source = path.relative_to(root).as_posix()
        flags = {"kept"} if any(one in text for one in KEPT) else set()
        for key in _keys(text, is_template=path.suffix == ".html"):
            message = found.setdefault(key, Message(key))
            message.sources.append(source)
            message.flags |= flags
    for message in found.values():
        message.sources = sorted(set(message.sources))
    return found


def _files(root: Path) -> Iterator[Path]:
    yield from sorted((root / "templates").rglob("*.html"))
    for package in PACKAGES:
        yield from sorted((root / package).rglob("*.py"))


def _keys(source: str, *, is_template: bool) -> Iterator[MessageKey]:
    if is_template:
        # Django's own way into xgettext: each tag becomes a call of gettext.
        yield from _of_template(templatize(source))
        return
    nodes = list(ast.walk(ast.parse(source)))
    # `from … import gettext_lazy as _lazy` is called by that name.
    called = {
        name.asname: name.name
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.asname and name.name in ALL
    }
    for node in nodes:
        if isinstance(node, ast.Call) and (key := _key(node, called)):
            yield key


_CALL = re.compile(
    r" (?P<name>_|gettext|ngettext|pgettext|npgettext)\("
    r"(?P<texts>u?(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"(?:, ?u?(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'))*)(?:,count)?"
)


def _of_template(source: str) -> Iterator[MessageKey]:
    for found in re.finditer(r" (?:_|n?p?gettext)\(", source):
        call = _CALL.match(source, found.start())
        if call is None:
            raise SyntaxError(f"a message that cannot be read: {source[found.start() :][:80]}")
        yield _of_texts(
            call["name"], [str(text) for text in ast.literal_eval(f"({call['texts']},)")]
        )


def _of_texts(name: str, texts: list[str]) -> MessageKey:
    match name:
        case "pgettext" | "pgettext_lazy":
            return MessageKey(texts[1], texts[0])
        case "ngettext" | "ngettext_lazy":
            return MessageKey(texts[0], "", texts[1])
        case "npgettext":
            return MessageKey(texts[1], texts[0], texts[2])
    return MessageKey(texts[0])


def _key(call: ast.Call, called: Mapping[str, str]) -> MessageKey | None:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    name = called.get(name, name)
    wanted = 1 if name in SINGULAR else 2 if name in PLURAL | WITH_CONTEXT else 0
    texts = [
        argument.value
        for argument in call.args[:wanted]
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    return _of_texts(name, texts) if wanted and len(texts) == wanted else None
