"""The official conformance suite, at our endpoint with a server behind it: what concerns tools,
resources, prompts and completion."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.embedded.valkey import free_port
from policies.models import Effect
from registry import services
from registry.models import Server as RegisteredServer
from tests.conformance.scenarios import ALL, WISHES
from tests.conformance.suite import assert_clean, check
from tests.flows.house import House, open_house, rule
from tests.flows.servers import Server
from tests.processes import HOST, Running, Stack


@pytest.fixture(scope="module")
def house(
    lasting_database: None, stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    folder, port = tmp_path_factory.mktemp("conformance"), free_port()
    argv = [sys.executable, "-m", "tests.conformance.server", "--http", str(port)]
    log = folder / "server.log"
    server = Running(argv, env=stack.env, log=log, ready=lambda it: "running on" in it.text())
    opened = open_house(stack, [Server("suite", url=f"http://{HOST}:{port}/mcp")])
    rule(Effect.ALLOW, "*", position=1)
    # Models are asked only where an operator says so.
    suite_server = RegisteredServer.objects.get(slug="suite")
    services.set_relays(suite_server, RegisteredServer.Relay.values, by=None)
    yield opened
    server.kill()


@pytest.mark.parametrize(("scenario", "revision"), ALL, ids=["@".join(one) for one in ALL])
def test_nothing_fails(scenario: str, revision: str, house: House, tmp_path: Path) -> None:
    url, token = house.url("suite"), house.token

    checks = check("server", scenario, revision, tmp_path, url=url, token=token)

    assert_clean(checks, but=WISHES.get(scenario, frozenset()))
