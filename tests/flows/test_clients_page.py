"""docs/en/guides/connect-clients.md: what people paste is well-formed and reaches the endpoint."""

import json
import tomllib
from uuid import uuid4

import pytest

from calls.record.states import State
from gateway.submit import messages
from registry.publishing.agent_names import ToolsByName
from registry.publishing.published_tools import PublishedToolset
from tests.flows.snippets import CLIENTS, HERE, blocks

JSON = [json.loads(block) for block in blocks("json")]


def servers(configuration: dict[str, dict[str, object]]) -> dict[str, object]:
    return configuration.get("mcpServers") or configuration["servers"]


@pytest.mark.parametrize("configuration", JSON, ids=range(len(JSON)))
def test_every_configuration_names_the_endpoint_and_shows_a_token(
    configuration: dict[str, dict[str, object]],
) -> None:
    text = json.dumps(servers(configuration)["countersign"])

    assert f'"{HERE}/mcp/default"' in text
    assert "Authorization" in text


def test_codex_reads_the_token_from_the_environment() -> None:
    (block,) = blocks("toml")

    server = tomllib.loads(block)["mcp_servers"]["countersign"]

    assert server["url"] == f"{HERE}/mcp/default"
    assert server["bearer_token_env_var"] == "COUNTERSIGN_TOKEN"


def test_it_quotes_what_agents_are_told() -> None:
    quoted = " ".join(blocks("text")[0].split())
    call = uuid4()
    toolset = PublishedToolset("default", frozenset(), ToolsByName({}, {}, {}), {})
    told = f"{messages.stands(State.HELD, call, '3f9a01c7')} {messages.come_back(call, toolset)}"

    assert quoted == told.replace(str(call), "…")


def test_every_heading_has_something_to_paste() -> None:
    kinds = ("sh", "json", "toml", "python", "js")
    for section in CLIENTS.read_text().split("\n## ")[1:]:
        name = section.splitlines()[0]
        pasted = any(f"```{kind}" in section for kind in kinds)
        assert pasted or name.startswith(("What", "When")), name
