"""Lists of a server beside its tools: resources, resource templates and prompts."""

import re
from collections.abc import Callable
from typing import Any

from core.kept_english import gettext as _
from core.text import revealed
from registry.upstream.values import ProtocolError

KINDS = ("resources", "templates", "prompts")
CAPABILITY = {"resources": "resources", "templates": "resources", "prompts": "prompts"}
LISTED = {"resources": "resources", "templates": "resources/templates", "prompts": "prompts"}
METHOD = {kind: f"{listed}/list" for kind, listed in LISTED.items()}
# How it is known, of which nothing else in its list may have the same.
KEY = {"resources": "uri", "templates": "uriTemplate", "prompts": "name"}
_MEMBER = {"resources": "resources", "templates": "resourceTemplates", "prompts": "prompts"}

KEY_BYTES = 2000
PROMPT_NAME = 128
OURS = "countersign:"
_braces_fit = re.compile(r"(?:[^{}]|\{[^{}]+\})*").fullmatch


class Items:
    """One list as it comes in, page by page. What cannot be offered is left out, and why."""

    def __init__(self, kind: str, left_out: list[tuple[str, str]]) -> None:
        self.found: list[dict[str, Any]] = []
        self._kind = kind
        self._left_out = left_out
        self._seen: set[str] = set()

    def collect(self, page: dict[str, Any]) -> int:
        listed = page.get(_MEMBER[self._kind])
        if not isinstance(listed, list):
            raise ProtocolError(_("The server's %s has no list.") % METHOD[self._kind])
        for item in listed:
            self._take(item)
        return len(self.found)

    def _take(self, item: Any) -> None:
        key = item.get(KEY[self._kind]) if isinstance(item, dict) else None
        if not isinstance(key, str) or not key:
            self._left_out.append((METHOD[self._kind], f"One has no {KEY[self._kind]}."))
        elif why := self._wrong(key, item):
            self._left_out.append((key, why))
        else:
            self._seen.add(key)
            self.found.append(item)

    def _wrong(self, key: str, item: dict[str, Any]) -> str:
        if key in self._seen:
            return "It is listed twice."
        if not isinstance(item.get("name"), str):
            return "It has no name."
        return _WRONG[self._kind](key, item)


def _wrong_uri(uri: str, item: dict[str, Any]) -> str:
    if uri.startswith(OURS):
        return f"URIs that begin with {OURS} are ours."
    if len(uri.encode(errors="replace")) > KEY_BYTES:
        return f"Its URI is longer than {KEY_BYTES} bytes."
    if revealed(uri) != uri or any(character.isspace() for character in uri):
        return "Its URI has characters that are not seen, or pass for others."
    return ""


def _wrong_template(template: str, item: dict[str, Any]) -> str:
    return _wrong_uri(template, item) if _braces_fit(template) else "Its braces do not fit."


def _wrong_prompt(name: str, item: dict[str, Any]) -> str:
    if len(name) > PROMPT_NAME:
        return f"Its name is longer than {PROMPT_NAME} characters."
    if revealed(name) != name or "\n" in name:
        return "Its name has characters that are not seen, or pass for others."
    arguments = item.get("arguments")
    if arguments is None:
        return ""
    if not isinstance(arguments, list) or not all(map(_is_argument, arguments)):
        return "Its arguments are not a list of objects with names."
    return ""


def _is_argument(argument: Any) -> bool:
    return isinstance(argument, dict) and isinstance(argument.get("name"), str)


_WRONG: dict[str, Callable[[str, dict[str, Any]], str]] = {
    "resources": _wrong_uri,
    "templates": _wrong_template,
    "prompts": _wrong_prompt,
}
