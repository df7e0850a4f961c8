"""Where the official suite says something else through Countersign than of the server directly.

Everything else is equal, check by check; docs/en/reference/compatibility.md shows this list.
"""

from typing import NamedTuple


class Difference(NamedTuple):
    """`directly`, `through`: the worst that the suite says of this check; "-" if it is not made."""

    scenario: str
    check: str
    directly: str
    through: str
    why: str
    servers: tuple[str, ...]


FIRST_LINE = ("python-1", "typescript-1")
SECOND_LINE = ("python-2", "typescript-2")
SESSION = (
    "These clients get no session: it is the server's choice (2025-11-25, Transports, Session "
    "Management: “MAY assign a session ID”), and nothing of theirs needs one here."
)
STREAM = (
    "Without a session the suite does not try to come back to a stream. Closing it before the "
    "answer is the server's choice (2025-11-25, Transports, Sending Messages: “MAY close the "
    "connection”)."
)
ONE_DOCUMENT = (
    "Calls that end at once are answered as one JSON document (2025-11-25, Transports, Sending "
    "Messages: either form); the suite counts streams only."
)
PUBLISHED = (
    "An agent's list changes when a definition is published or withdrawn, and then it is told so. "
    "The server's own word that something changed makes Countersign look again; nothing unreviewed "
    "reaches agents (2026-07-28, Tools, List Changed Notification: SHOULD)."
)
SPACES = (
    "Python SDK 2.3 takes spaces around a header's value for a part of it; here they are cut (RFC "
    "9110, 5.5: a field value does not include leading or trailing whitespace)."
)
PARAMETERS = (
    "The low-level `Server` of the TypeScript SDK 2.4 does not compare `Mcp-Param-…` headers with "
    "the arguments; Countersign does (2026-07-28, Transports, Custom Headers: MUST)."
)

DIFFERENCES = [
    Difference(
        "server-session-lifecycle",
        f"server-session-{name}",
        "SUCCESS",
        "SKIPPED",
        SESSION,
        FIRST_LINE,
    )
    for name in ("delete-accepted", "terminated-returns-404")
]
DIFFERENCES += [
    Difference(
        "server-sse-polling", "server-sse-disconnect-resume", "SUCCESS", "INFO", STREAM, FIRST_LINE
    ),
    Difference(
        "server-sse-multiple-streams",
        "server-sse-streams-functional",
        "SUCCESS",
        "INFO",
        ONE_DOCUMENT,
        FIRST_LINE,
    ),
]
DIFFERENCES += [
    Difference(
        "server-stateless",
        f"sep-2575-server-sends-{kind}-list-changed-on-subscription",
        "SUCCESS",
        "WARNING",
        PUBLISHED,
        SECOND_LINE,
    )
    for kind in ("tools", "prompts")
]
DIFFERENCES.append(
    Difference(
        "http-header-validation",
        "sep-2243-server-accepts-whitespace-header-value",
        "FAILURE",
        "SUCCESS",
        SPACES,
        ("python-2",),
    )
)
DIFFERENCES += [
    Difference(
        "http-custom-header-server-validation",
        f"sep-2243-server-{what}",
        "FAILURE",
        "SUCCESS",
        PARAMETERS,
        ("typescript-2",),
    )
    for what in ("reject-invalid-param-chars", "reject-param-mismatch", "validate-param-match")
]


def of(server: str, scenario: str) -> dict[str, tuple[str, str]]:
    return {
        it.check: (it.directly, it.through)
        for it in DIFFERENCES
        if server in it.servers and it.scenario == scenario
    }


def table() -> str:
    lines = [["Scenario, check", "Server", "Directly", "Through", "Why"], ["---"] * 5]
    for it in DIFFERENCES:
        name, servers = f"{it.scenario}, `{it.check}`", ", ".join(it.servers)
        lines.append([name, servers, it.directly, it.through, it.why])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
