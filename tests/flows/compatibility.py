"""What the clients' tests saw, as the table of docs/en/reference/compatibility.md."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.processes import ROOT

PAGE = ROOT / "docs" / "en" / "reference" / "compatibility.md"
BEGIN, END = "<!-- the table: begin -->", "<!-- the table: end -->"
COLUMNS = ("discover", "list", "call", "error", "progress", "cancel", "resource", "prompt")
CLIENTS = {
    "python": "Python SDK 2.3, 2026-07-28",
    "python-legacy": "Python SDK 2.3, 2025-11-25",
    "typescript": "TypeScript client 2.4, 2026-07-28",
    "typescript-legacy": "TypeScript client 2.4, 2025-11-25",
    "typescript-v1": "TypeScript SDK 1.32, 2025-11-25",
    "fastmcp": "FastMCP 4.1 with tasks, 2026-07-28",
    "inspector": "Inspector 2.12, command line, 2026-07-28",
    "raw": "No SDK, 2025-03-26",
}

Cell = tuple[str, str]
# By client and server: what held there in this run.
_seen: dict[Cell, set[str]] = defaultdict(set)


def note(client: str, servers: Iterable[str], column: str) -> None:
    assert column in COLUMNS
    for server in servers:
        _seen[client, server].add(column)


def seen() -> dict[Cell, set[str]]:
    return {cell: set(columns) for cell, columns in _seen.items()}


def by_column(found: dict[Cell, set[str]]) -> dict[Cell, set[str]]:
    """By client and column: the servers with which it held."""
    turned: dict[Cell, set[str]] = defaultdict(set)
    for (client, server), columns in found.items():
        for column in columns:
            turned[client, column].add(server)
    return turned


def by_server(columns: dict[Cell, set[str]]) -> dict[Cell, set[str]]:
    """The other way round."""
    cells: dict[Cell, set[str]] = defaultdict(set)
    for (client, column), servers in columns.items():
        for server in servers:
            cells[client, server].add(column)
    return cells


def table(found: dict[Cell, set[str]]) -> str:
    """A row for each server, a column for each client."""
    servers = list(dict.fromkeys(server for _, server in found))
    lines = [["", *CLIENTS.values()], ["---"] * (len(CLIENTS) + 1)]
    for server in sorted(servers):
        cells = (found.get((client, server), set()) for client in CLIENTS)
        lines.append([f"**{server}**", *(words(cell) for cell in cells)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def words(cell: set[str]) -> str:
    return ", ".join(column for column in COLUMNS if column in cell) or "–"


def written() -> dict[Cell, set[str]]:
    """As the page has it."""
    text = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    return dict(_cells(text))


def _cells(text: str) -> Iterator[tuple[Cell, set[str]]]:
    for line in text.strip().splitlines()[2:]:
        server, *cells = (cell.strip() for cell in line.strip("| ").split("|"))
        for client, cell in zip(CLIENTS, cells, strict=True):
            yield (client, server.strip("*")), {c for c in COLUMNS if c in cell.split(", ")}


def write(found: dict[Cell, set[str]]) -> None:
    """Of what was left out of this run the page goes on to say what it said."""
    found = by_server(by_column(written()) | by_column(found))
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table(found)}\n{END}{after}")
