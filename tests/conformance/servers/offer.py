"""What every one of these servers offers: the names that the conformance suite calls.

`offer.json` has the tools by name (what they answer, tell and ask), resources by URI, the template
and the prompts, in the words of the wire.
"""

import json
from pathlib import Path
from typing import Any

_offer: dict[str, Any] = json.loads((Path(__file__).parent / "offer.json").read_text())
TOOLS: dict[str, dict[str, Any]] = _offer["tools"]
RESOURCES: dict[str, dict[str, str]] = _offer["resources"]
TEMPLATE: dict[str, str] = _offer["template"]
PROMPTS: dict[str, dict[str, Any]] = _offer["prompts"]


def tools() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "description": f"Tool {name} of the suite.",
            "inputSchema": it["inputSchema"],
        }
        for name, it in TOOLS.items()
    ]


def resources() -> list[dict[str, Any]]:
    return [
        {
            "uri": uri,
            "name": uri.removeprefix("test://"),
            "mimeType": it["mimeType"],
            "description": "One.",
        }
        for uri, it in RESOURCES.items()
    ]


def templates() -> list[dict[str, Any]]:
    return [{"uriTemplate": TEMPLATE["uriTemplate"], "name": "template"}]


def prompts() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "description": f"Prompt {name} of the suite.",
            "arguments": [{"name": one, "required": True} for one in it["arguments"]],
        }
        for name, it in PROMPTS.items()
    ]


def contents(uri: str) -> dict[str, str] | None:
    """What stands at this address; None where nothing does."""
    before, after = TEMPLATE["uriTemplate"].split("{id}")
    if uri in RESOURCES:
        return {"uri": uri, **RESOURCES[uri]}
    name = uri.removeprefix(before).removesuffix(after)
    if uri != f"{before}{name}{after}" or "/" in name:
        return None
    text = TEMPLATE["text"].replace("{id}", name)
    return {"uri": uri, "mimeType": TEMPLATE["mimeType"], "text": text}


def prompt(name: str, given: dict[str, str]) -> dict[str, Any]:
    """Its only message, with the arguments filled in."""
    content = {key: _filled(it, given) for key, it in PROMPTS[name]["content"].items()}
    return {"role": "user", "content": content}


def _filled(value: Any, given: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(it, given) for key, it in value.items()}
    for name, it in given.items():
        value = value.replace(f"{{{name}}}", it)
    return value


def asked(name: str, at: int, given: dict[str, Any]) -> dict[str, Any]:
    """The requests of one round of a tool, by key, in the words of its caller where it has some."""
    tool = TOOLS[name]
    words = given.get(tool.get("asksWith", ""))
    rounds: list[dict[str, Any]] = tool["asks"]
    return {key: _in_words(request, words) for key, request in rounds[at].items()}


def _in_words(request: dict[str, Any], words: str | None) -> dict[str, Any]:
    if words is None:
        return request
    params = request["params"]
    if request["method"] == "sampling/createMessage":
        said = {"role": "user", "content": {"type": "text", "text": words}}
        return {**request, "params": {**params, "messages": [said]}}
    return {**request, "params": {**params, "message": words}}
