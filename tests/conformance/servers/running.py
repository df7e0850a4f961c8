"""The four of them as processes: of either SDK, one that speaks 2026-07-28 and one from before."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from config.embedded.valkey import free_port
from tests.clients import environment_of
from tests.conformance.suite import ROOT, node
from tests.flows.servers import Server
from tests.processes import HOST, Running

HERE = Path(__file__).parent
OLD_PYTHON = str(environment_of("sqlite") / "bin" / "python")
ARGV = {
    "python-1": [OLD_PYTHON, "-m", "tests.conformance.servers.legacy"],
    "python-2": [sys.executable, "-m", "tests.conformance.servers.modern"],
    "typescript-1": [node(), str(HERE / "legacy.mjs")],
    "typescript-2": [node(), str(HERE / "modern.mjs")],
}


@contextmanager
def running_servers(folder: Path, env: dict[str, str]) -> Iterator[dict[str, Server]]:
    env = {**env, "PYTHONPATH": os.pathsep.join([str(ROOT), env.get("PYTHONPATH", "")])}
    with ExitStack() as stack:
        servers = {}
        for slug, argv in ARGV.items():
            port, log = free_port(), folder / f"{slug}.log"
            command = [*argv, "--http", str(port)]
            process = Running(command, env=env, log=log, ready=lambda it: "running on" in it.text())
            stack.callback(process.kill)
            servers[slug] = Server(slug, url=f"http://{HOST}:{port}/mcp", process=process)
        yield servers
