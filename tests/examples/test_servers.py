import subprocess
import sys
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters
from mcp_types import ListToolsResult

from examples.servers import ExampleServer, example_servers
from tests.examples.running import EXAMPLES

SERVERS = example_servers(Path("outbox"))
README = (EXAMPLES / "README.md").read_text()


def file_of(server: ExampleServer) -> str:
    return Path(server.arguments[0]).name


async def first_contact(server: ExampleServer, folder: Path) -> tuple[str, ListToolsResult]:
    command, *arguments = server.argv
    process = StdioServerParameters(command=command, args=arguments, cwd=folder)
    async with Client(process) as client:
        assert client.server_info
        return client.server_info.name, await client.list_tools()


@pytest.mark.long
@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.slug)
def test_it_starts_in_any_folder_and_describes_its_tools(
    server: ExampleServer, tmp_path: Path
) -> None:
    with start_blocking_portal() as portal:
        name, listed = portal.call(first_contact, server, tmp_path)

    assert name == server.slug
    (readme,) = [line for line in README.splitlines() if f"| [{file_of(server)}]" in line]
    assert readme.split("|")[2].strip() == ", ".join(f"`{tool.name}`" for tool in listed.tools)
    for tool in listed.tools:
        assert tool.title
        assert tool.description
        assert "\n " not in tool.description
        assert tool.annotations
        assert tool.annotations.read_only_hint is not None
        Draft202012Validator.check_schema(tool.input_schema)


def test_every_server_has_its_own_slug_and_file() -> None:
    files = [Path(server.arguments[0]) for server in SERVERS]

    assert len({server.slug for server in SERVERS}) == len(SERVERS)
    assert {file.parent for file in files} == {EXAMPLES}
    # Everything beside them is this list, the agent, which is no server, and two servers in another
    # style.
    others = {"__init__.py", "servers.py", "agent.py", "statement.py"}
    others |= {"low_level_calculator.py", "low_level_text_analyser.py"}
    assert {file.name for file in EXAMPLES.glob("*.py")} - others == {file.name for file in files}


def test_those_that_write_are_told_where() -> None:
    told = {server.slug: server.arguments[1:] for server in SERVERS if server.arguments[1:]}

    assert told == dict.fromkeys(
        ["mailer", "file-writer"], ("--outbox", str(Path("outbox").absolute()))
    )


def test_the_list_does_not_import_mcp() -> None:
    code = "import sys, examples.servers; print('mcp' in sys.modules)"

    assert subprocess.check_output([sys.executable, "-c", code], cwd=EXAMPLES.parent) == b"False\n"
