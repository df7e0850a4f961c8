"""Snippets to paste into MCP clients. docs/en/guides/connect-clients.md shows the same words."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from registry.models import Toolset
from registry.names import MAX_NAME

# Stands wherever a token belongs.
TOKEN = "csa_…"  # noqa: S105 the place of one, not one
EXPORT = f"export COUNTERSIGN_TOKEN={TOKEN}"
NAME = "countersign"
# What these clients put before a tool's name; the whole must still fit into 64 characters.
PREFIXES = {
    "Claude Code": f"mcp__{NAME}__",
    "Codex": f"mcp__{NAME}__",
    "VS Code": f"mcp_{NAME}_",
    "Gemini CLI": f"mcp_{NAME}_",
}

CLAUDE_COMMAND = """claude mcp add --transport http countersign {url} \\
  --header "Authorization: Bearer $COUNTERSIGN_TOKEN"
"""
CLAUDE_PROJECT = """{
  "mcpServers": {
    "countersign": {
      "type": "http",
      "url": "{url}",
      "headers": { "Authorization": "Bearer ${COUNTERSIGN_TOKEN}" }
    }
  }
}
"""
CLAUDE_DESKTOP = """{
  "mcpServers": {
    "countersign": {
      "command": "npx",
      "args": [
        "-y",
        "mcp-remote",
        "{url}",
        "--transport",
        "http-only",
        "--header",
        "Authorization:${AUTHORIZATION}"
      ],
      "env": { "AUTHORIZATION": "Bearer csa_…" }
    }
  }
}
"""
CURSOR = """{
  "mcpServers": {
    "countersign": {
      "url": "{url}",
      "headers": { "Authorization": "Bearer ${env:COUNTERSIGN_TOKEN}" }
    }
  }
}
"""
VS_CODE = """{
  "inputs": [
    {
      "type": "promptString",
      "id": "countersign-token",
      "description": "Token of the agent in Countersign",
      "password": true
    }
  ],
  "servers": {
    "countersign": {
      "type": "http",
      "url": "{url}",
      "headers": { "Authorization": "Bearer ${input:countersign-token}" }
    }
  }
}
"""
CODEX = """[mcp_servers.countersign]
url = "{url}"
bearer_token_env_var = "COUNTERSIGN_TOKEN"
# Longer than Countersign holds a stream, which is 45 seconds.
tool_timeout_sec = 120
"""
GEMINI = """{
  "mcpServers": {
    "countersign": {
      "httpUrl": "{url}",
      "headers": { "Authorization": "Bearer $COUNTERSIGN_TOKEN" },
      "timeout": 120000
    }
  }
}
"""
HTTP = """curl -sS {url} \\
  -H "Authorization: Bearer $COUNTERSIGN_TOKEN" \\
  -H 'Content-Type: application/json' \\
  -H 'Accept: application/json, text/event-stream' \\
  -d '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
"""


@dataclass(frozen=True, slots=True)
class Snippet:
    id: str
    client: str
    where: Any
    language: str
    text: str
    # Opens the client with the configuration filled in. A scheme of its own: nothing of it
    # passes through anybody's web site.
    link: str = ""


def endpoint(toolset: Toolset) -> str:
    return f"{settings.AGENT_URL}/mcp/{toolset.slug}"


def snippets(url: str) -> list[Snippet]:
    def snippet(
        id_: str, client: str, where: Any, language: str, text: str, link: str = ""
    ) -> Snippet:
        return Snippet(id_, client, where, language, text.replace("{url}", url), link)

    return [
        snippet("claude-code", "Claude Code", _("In a terminal"), "sh", CLAUDE_COMMAND),
        snippet(
            "claude-code-project",
            "Claude Code",
            _("For everybody who works in a folder: .mcp.json there"),
            "json",
            CLAUDE_PROJECT,
        ),
        snippet(
            "claude-desktop",
            "Claude Desktop",
            _("claude_desktop_config.json (Settings, Developer, Edit Config); needs Node.js"),
            "json",
            CLAUDE_DESKTOP,
        ),
        snippet(
            "cursor",
            "Cursor",
            _("~/.cursor/mcp.json, or .cursor/mcp.json of a project"),
            "json",
            CURSOR,
            cursor_link(url),
        ),
        snippet(
            "vs-code",
            "VS Code",
            _(".vscode/mcp.json; the editor asks for the token and keeps it out of the file"),
            "json",
            VS_CODE,
            vs_code_link(url),
        ),
        snippet("codex", "Codex", _("~/.codex/config.toml"), "toml", CODEX),
        snippet("gemini-cli", "Gemini CLI", _("~/.gemini/settings.json"), "json", GEMINI),
        snippet("http", "HTTP", _("Any client: what it offers, in the shortest way"), "sh", HTTP),
    ]


def cursor_link(url: str) -> str:
    server = json.loads(CURSOR.replace("{url}", url))["mcpServers"][NAME]
    config = base64.b64encode(json.dumps(server).encode()).decode()
    return f"cursor://anysphere.cursor-deeplink/mcp/install?name={NAME}&config={quote(config)}"


def vs_code_link(url: str) -> str:
    whole = json.loads(VS_CODE.replace("{url}", url))
    server = {"name": NAME, **whole["servers"][NAME], "inputs": whole["inputs"]}
    return f"vscode:mcp/install?{quote(json.dumps(server))}"


def too_long_for(name: str) -> list[str]:
    """The clients whose prefix makes this name longer than they accept."""
    return [client for client, prefix in PREFIXES.items() if len(prefix) + len(name) > MAX_NAME]
