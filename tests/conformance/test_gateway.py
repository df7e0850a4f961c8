"""The official conformance suite at our endpoint, with servers behind it that speak either era:
what it says through Countersign is what it says of the server directly."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.models import Effect
from registry import services
from registry.models import Server as RegisteredServer
from tests.conformance import differences
from tests.conformance.scenarios import ALL, LEGACY, WISHES
from tests.conformance.servers.running import running_servers
from tests.conformance.suite import Check, assert_clean, check
from tests.flows.house import House, open_house, rule
from tests.flows.servers import Server
from tests.processes import Stack

# Those of the SDKs' first line speak the earlier revisions, those of the second the newest.
PAIRS = [
    (server, scenario, revision)
    for server in ("python-1", "typescript-1", "python-2", "typescript-2")
    for scenario, revision in ALL
    if (revision in LEGACY) == server.endswith("1")
]
# Agents of the earlier revisions at a server of the newest.
ACROSS = [("python-2", scenario, revision) for scenario, revision in ALL if revision in LEGACY]


@pytest.fixture(scope="module")
def servers(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Server]]:
    with running_servers(tmp_path_factory.mktemp("conformance"), stack.env) as running:
        yield running


@pytest.fixture(scope="module")
def house(lasting_database: None, stack: Stack, servers: dict[str, Server]) -> House:
    opened = open_house(stack, servers.values())
    rule(Effect.ALLOW, "*", position=1)
    for row in RegisteredServer.objects.all():
        # Models are asked only where an operator says so.
        services.set_relays(row, RegisteredServer.Relay.values, by=None)
    return opened


@pytest.mark.parametrize(
    ("server", "scenario", "revision"), PAIRS, ids=["@".join(it) for it in PAIRS]
)
def test_it_is_as_directly(
    server: str,
    scenario: str,
    revision: str,
    house: House,
    servers: dict[str, Server],
    tmp_path: Path,
) -> None:
    (tmp_path / "direct").mkdir()
    direct = check("server", scenario, revision, tmp_path / "direct", url=servers[server].url)
    through = _through(house, server, scenario, revision, tmp_path)

    assert_clean(through, but=WISHES.get(scenario, frozenset()))
    assert _differences(direct, through) == differences.of(server, scenario)


@pytest.mark.parametrize(
    ("server", "scenario", "revision"), ACROSS, ids=["@".join(it) for it in ACROSS]
)
def test_nothing_fails_across_the_eras(
    server: str, scenario: str, revision: str, house: House, tmp_path: Path
) -> None:
    assert_clean(_through(house, server, scenario, revision, tmp_path))


def _through(house: House, server: str, scenario: str, revision: str, folder: Path) -> list[Check]:
    # Of its own: the suite's files of a direct run are not to be taken for these.
    folder = folder / "through"
    folder.mkdir()
    return check("server", scenario, revision, folder, url=house.url(server), token=house.token)


def _differences(direct: list[Check], through: list[Check]) -> dict[str, tuple[str, str]]:
    before, after = _worst(direct), _worst(through)
    return {
        name: (before.get(name, "-"), after.get(name, "-"))
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }


def _worst(checks: list[Check]) -> dict[str, str]:
    """By check: some are made several times."""
    order = ["INFO", "SKIPPED", "SUCCESS", "WARNING", "FAILURE"]
    found: dict[str, str] = {}
    for how, name, _why in checks:
        found[name] = max(how, found.get(name, "INFO"), key=order.index)
    return found
