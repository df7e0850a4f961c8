"""Servers of ours and of others, as real processes, and what the tests ask of them."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config.embedded.valkey import free_port
from examples.servers import ExampleServer, example_servers
from tests.clients import environment_of
from tests.processes import HOST, ROOT, Running

MODULES = ROOT / "node_modules" / "@modelcontextprotocol"
NODE = shutil.which("node") or "there-is-no-node"
HEARING = Path(__file__).parent / "clients" / "hearing.mjs"
FILESYSTEM = [NODE, str(MODULES / "server-filesystem" / "dist" / "index.js")]
MEMORY = [NODE, str(MODULES / "server-memory" / "dist" / "index.js")]
THINKING = [NODE, str(MODULES / "server-sequential-thinking" / "dist" / "index.js")]
INSPECTOR = MODULES / "inspector" / "clients" / "launcher" / "build" / "index.js"
# Some of the examples are met on stdio, as `up` runs them; to start one again takes longer.
ON_STDIO = ("calculator", "documents")


@dataclass(frozen=True)
class Server:
    """One of `url` and `argv` says where it is."""

    slug: str
    argv: list[str] = field(default_factory=list)
    url: str = ""
    process: Running | None = None

    @property
    def transport(self) -> str:
        return "http" if self.url else "stdio"


@contextmanager
def running_servers(folder: Path, env: dict[str, str]) -> Iterator[dict[str, Server]]:
    """All of them; those on stdio are started by whoever wants to talk to them."""
    examples = example_servers(folder / "outbox")
    servers = [Server("everything", everything(folder, "everything", "stdio")), *of_others(folder)]
    servers += [Server(it.slug, it.argv) for it in examples if it.slug in ON_STDIO]
    with ExitStack() as running, ThreadPoolExecutor() as pool:
        starting = [
            pool.submit(_example_over_http, it, folder, env)
            for it in examples
            if it.slug not in ON_STDIO
        ]
        starting.append(pool.submit(_everything_over_http, folder, env))
        starting.append(pool.submit(_everything_over_events, folder, env))
        for started in starting:
            server = started.result()
            assert server.process
            running.callback(server.process.kill)
            servers.append(server)
        yield {server.slug: server for server in servers}


def everything(folder: Path, slug: str, transport: str) -> list[str]:
    script = MODULES / "server-everything" / "dist" / "index.js"
    env = ["/usr/bin/env", f"HEARD={folder / slug}.heard"]
    return [*env, NODE, "--import", str(HEARING), str(script), transport]


def of_others(folder: Path) -> list[Server]:
    files, repository = folder / "files", folder / "repository"
    _fill(files)
    _commit(repository)
    graph, shop = folder / "graph.jsonl", folder / "shop.db"
    graph.write_text(GRAPH)
    _stock(shop)
    python = [sys.executable, "-m"]
    sqlite = str(environment_of("sqlite") / "bin" / "mcp-server-sqlite")
    return [
        Server("filesystem", [*FILESYSTEM, str(files)]),
        Server("git", [*python, "mcp_server_git", "--repository", str(repository)]),
        Server("time", [*python, "mcp_server_time", "--local-timezone", "UTC"]),
        Server("memory", ["/usr/bin/env", f"MEMORY_FILE_PATH={graph}", *MEMORY]),
        Server("thinking", THINKING),
        Server("sqlite", [sqlite, "--db-path", str(shop)]),
    ]


GRAPH = (
    '{"type":"entity","name":"bob","entityType":"person","observations":["owns scout"]}\n'
    '{"type":"entity","name":"scout","entityType":"agent","observations":[]}\n'
    '{"type":"relation","from":"bob","to":"scout","relationType":"owns"}\n'
)


def _stock(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as link, link:
        link.execute("CREATE TABLE fruit (name TEXT, price REAL)")
        link.execute("INSERT INTO fruit VALUES ('pear', 0.4), ('quince', 1.25)")


def _fill(files: Path) -> None:
    files.mkdir()
    (files / "hello.txt").write_text("Grüße\n")
    # The smallest of all PNG files.
    (files / "dot.png").write_bytes(bytes.fromhex(DOT))


DOT = (
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c020000000b49444154789c6360"
    "60000000030001682986410000000049454e44ae426082"
)


def _commit(repository: Path) -> None:
    repository.mkdir()
    (repository / "note.txt").write_text("one\n")
    who = ["-c", "user.name=bob", "-c", "user.email=bob@example.org", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-qm", "First"]):
        subprocess.run(["git", *command], cwd=repository, check=True, capture_output=True)
    (repository / "note.txt").write_text("two\n")


def _example_over_http(example: ExampleServer, folder: Path, env: dict[str, str]) -> Server:
    port = free_port()
    argv = [*example.argv, "--http", str(port)]
    return _started(example.slug, argv, port, folder, env, says="running on")


def _everything_over_http(folder: Path, env: dict[str, str]) -> Server:
    port = free_port()
    slug, env = "everything-http", {**env, "PORT": str(port)}
    argv = everything(folder, slug, "streamableHttp")
    return _started(slug, argv, port, folder, env, says="listening on port")


def _everything_over_events(folder: Path, env: dict[str, str]) -> Server:
    port = free_port()
    slug, env = "everything-sse", {**env, "PORT": str(port)}
    argv, says = everything(folder, slug, "sse"), "running on port"
    return _started(slug, argv, port, folder, env, says=says, path="/sse")


def _started(
    slug: str,
    argv: list[str],
    port: int,
    folder: Path,
    env: dict[str, str],
    *,
    says: str,
    path: str = "/mcp",
) -> Server:
    log = folder / f"{slug}.log"
    process = Running(argv, env=env, log=log, ready=lambda it: says in it.text())
    return Server(slug, url=f"http://{HOST}:{port}{path}", process=process)


Question = tuple[str, dict[str, Any]]


def questions(folder: Path) -> dict[str, list[Question]]:
    """By server: calls whose answer is the same however often it is asked, good ones and bad."""
    files, repository = folder / "files", {"repo_path": str(folder / "repository")}
    noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    return {
        "calculator": [("add", {"a": 1, "b": 2}), ("divide", {"dividend": 1, "divisor": 0})],
        "code-search": [("search_code", {"query": "def "}), ("read_source", {"path": "no.py"})],
        "documents": [
            ("search_documents", {"query": "refunds"}),
            ("read_document", {"name": "refunds"}),
            ("read_document", {"name": "nothing"}),
        ],
        "file-writer": [("list_files", {}), ("read_file", {"path": "nothing.txt"})],
        "low-level": [
            ("list_units", {}),
            ("convert", {"value": 1, "from": "mile", "to": "metre"}),
            ("convert", {"value": 1, "from": "mile", "to": "gram"}),
        ],
        "mailer": [("list_sent", {})],
        "reports": [("write_report", {"seconds": 1})],
        "text-analyser": [("count_words", {"text": "one"}), ("most_common_words", {"text": "a"})],
        "weather": [
            ("list_cities", {}),
            ("climate_normals", {"city": "Lisbon"}),
            ("forecast", {"city": "Nowhere"}),
        ],
        "everything": EVERYTHING_ASKED,
        "everything-http": EVERYTHING_ASKED,
        "everything-sse": EVERYTHING_ASKED,
        "filesystem": [
            ("read_text_file", {"path": str(files / "hello.txt")}),
            ("read_media_file", {"path": str(files / "dot.png")}),
            ("list_directory", {"path": str(files)}),
            ("read_text_file", {"path": "/etc/hostname"}),
        ],
        "git": [
            ("git_log", repository),
            ("git_diff_unstaged", repository),
            ("git_show", {**repository, "revision": "nothing"}),
        ],
        "memory": [
            ("read_graph", {}),
            ("open_nodes", {"names": ["bob"]}),
            ("search_nodes", {"query": "nobody"}),
            ("add_observations", {"observations": [{"entityName": "x", "contents": ["y"]}]}),
        ],
        "sqlite": [
            ("list_tables", {}),
            ("read_query", {"query": "SELECT * FROM fruit WHERE price < 1"}),
            ("read_query", {"query": "SELECT FROM"}),
        ],
        "thinking": [("sequentialthinking", THOUGHT)],
        "time": [("convert_time", noon), ("get_current_time", {"timezone": "Mars/Olympus"})],
    }


THOUGHT = {"thought": "one", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
EVERYTHING_ASKED: list[Question] = [
    ("echo", {"message": "hello"}),
    ("get-sum", {"a": 2, "b": 3}),
    ("get-tiny-image", {}),
    ("get-structured-content", {"location": "Chicago"}),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}),
    ("get-resource-links", {"count": 2}),
    ("trigger-long-running-operation", {"duration": 0.2, "steps": 2}),
]
FEATURES = "demo://resource/static/document/features.md"
PROMPTS: list[Question] = [
    ("simple-prompt", {}),
    ("args-prompt", {"city": "Delft"}),
    ("resource-prompt", {"resourceType": "Text", "resourceId": "7"}),
]

# By server with resources or prompts: what is read there, and what is got, good ones and bad.
READ: dict[str, list[str]] = {
    "documents": ["documents://refunds"],
    "everything": [
        FEATURES,
        "demo://resource/dynamic/text/7",
        "demo://resource/dynamic/blob/7",
        "demo://resource/dynamic/text/x",
    ],
    "everything-http": [FEATURES, "demo://resource/dynamic/blob/7"],
    "everything-sse": [FEATURES, "demo://resource/dynamic/text/7"],
    "memory": ["memory://knowledge-graph"],
    "sqlite": ["memo://insights"],
}
GOT: dict[str, list[Question]] = {
    "everything": PROMPTS,
    "everything-http": PROMPTS,
    "everything-sse": PROMPTS,
    "sqlite": [("mcp-demo", {"topic": "fruit"})],
}
