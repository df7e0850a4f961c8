"""Worker, beat and sealer answer probes and tell their figures at ports of their own."""

import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from audit.models import Checkpoint
from audit.services import SYSTEM, record
from config import children
from config.embedded.service import wait_until
from config.embedded.valkey import Valkey, free_port
from config.ports import parse_address
from config.probes import PLACES
from tests.config.test_compose import OURS
from tests.database import Databases
from tests.faults.proxy import DatabaseWire
from tests.processes import HOST, ROOT, Running, Stack
from tests.services import running

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = "scrape-" + "x" * 20
# Longer than our own deadlines.
PROMPTLY_S = 4.0
SEALER = {
    "COUNTERSIGN_SECRET_KEY": "the sealer has no use for it",
    "COUNTERSIGN_SEAL_EVERY_S": "0.1",
}


def three_ports() -> int:
    return ports_in_a_row(3)


def ports_in_a_row(number: int) -> int:
    """The first of so many free ones."""
    while True:
        first = free_port()
        with ExitStack() as taken:
            try:
                for port in range(first + 1, first + number):
                    taken.enter_context(socket.socket()).bind((HOST, port))
            except OSError:
                continue
        return first


@pytest.fixture(scope="module")
def wire() -> Iterator[DatabaseWire]:
    with DatabaseWire(os.environ["DATABASE_URL"]) as wire:
        yield wire


@pytest.fixture
def database(wire: DatabaseWire) -> Iterator[DatabaseWire]:
    yield wire
    wire.let_go()


class House(Stack):
    first_port = 0


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, wire: DatabaseWire) -> Iterator[House]:
    with House(tmp_path_factory.mktemp("probes")) as house:
        house.first_port = three_ports()
        house.env |= {
            "COUNTERSIGN_PROBES": f"{HOST}:{house.first_port}",
            "COUNTERSIGN_METRICS_TOKEN": TOKEN,
            "COUNTERSIGN_DATABASE_SILENT_S": "0.5",
            "DATABASE_URL": wire.url,
        }
        assert house.worker
        assert house.beat
        yield house


@pytest.fixture
def sealer(house: House, databases: Databases, tmp_path: Path) -> Iterator[Running]:
    """With a key of its own, since tests empty the record between them."""
    env = {**house.env, **SEALER, "DATABASE_URL": databases.seal_url(os.environ)}
    process = Running(
        children.seal(),
        env=env | {"COUNTERSIGN_SEAL_KEY_FILE": str(tmp_path / "key")},
        log=tmp_path / "seal.log",
        ready=lambda _: answer(house.first_port + PLACES["seal"], "/livez")[0] == 200,
    )
    yield process
    process.kill()


def answer(port: int, path: str, **headers: str) -> tuple[int, str]:
    """As kubelet asks, by an address."""
    url = f"http://{HOST}:{port}{path}"
    request = urllib.request.Request(url, headers={"Host": "10.1.2.3", **headers})
    try:
        with urllib.request.urlopen(request, timeout=PROMPTLY_S) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except (OSError, HTTPException):
        # Where nobody listens, one may even connect to oneself, and be asked by oneself.
        return 0, ""


def is_ready(house: House, role: str) -> bool:
    return answer(house.first_port + PLACES[role], "/readyz") == (200, '{"status":"ok"}')


@pytest.mark.long
@pytest.mark.parametrize("role", PLACES)
def test_each_is_alive_and_ready(house: House, sealer: Running, role: str) -> None:
    port = house.first_port + PLACES[role]
    assert answer(port, "/livez") == (200, '{"status":"ok"}')
    wait_until(partial(is_ready, house, role), seconds=15)
    assert is_ready(house, role)
    assert answer(port, "/healthz")[0] == 200
    assert answer(port, "/")[0] == 404


@pytest.mark.long
@pytest.mark.parametrize("role", ["worker", "beat"])
def test_while_the_database_hangs_it_is_alive_and_not_ready(
    house: House, database: DatabaseWire, role: str
) -> None:
    port = house.first_port + PLACES[role]
    wait_until(partial(is_ready, house, role), seconds=15)
    database.hold()

    assert answer(port, "/readyz") == (503, '{"status":"no database"}')
    assert answer(port, "/livez")[0] == 200
    database.let_go()

    wait_until(partial(is_ready, house, role), seconds=15)
    assert is_ready(house, role)


@pytest.mark.long
@pytest.mark.parametrize("role", PLACES)
def test_each_tells_its_figures_to_who_has_the_token(
    house: House, sealer: Running, role: str
) -> None:
    port = house.first_port + PLACES[role]
    assert answer(port, "/metrics")[0] == 401
    assert answer(port, "/metrics", Authorization=f"Bearer {TOKEN}x")[0] == 401

    status, text = answer(port, "/metrics", Authorization=f"Bearer {TOKEN}")
    assert status == 200
    assert f'countersign_process{{role="{role}"}} 1.0' in text
    assert "countersign_process_ready 1.0" in text
    assert "countersign_record_readable" not in text


@pytest.mark.long
def test_the_next_process_takes_over_the_port(house: House, tmp_path: Path) -> None:
    """As in a restart: it begins before the old one ends."""
    port = house.first_port + PLACES["worker"]
    old = house.started["worker"]
    new = Running(
        children.worker(),
        env={**old.env, "DATABASE_URL": os.environ["DATABASE_URL"]},
        log=tmp_path / "next.log",
        ready=lambda it: " ready." in it.text(),
    )
    try:
        assert listeners(port) == 2
        old.kill()
        assert answer(port, "/livez")[0] == 200
    finally:
        new.kill()
        old.start()


def listeners(port: int) -> int:
    found = psutil.net_connections("tcp")
    return sum(one.status == psutil.CONN_LISTEN and one.laddr[1:] == (port,) for one in found)


@pytest.mark.long
def test_beat_is_not_ready_while_the_broker_takes_no_task(own_stack: Stack, tmp_path: Path) -> None:
    valkey, port = Valkey(tmp_path), three_ports() + PLACES["beat"]
    with running(valkey, tmp_path / "valkey.log") as broker:
        own_stack.env |= valkey.urls()
        own_stack.env["COUNTERSIGN_PROBES"] = f"{HOST}:{port - PLACES['beat']}"
        assert own_stack.beat
        assert wait_until(lambda: answer(port, "/readyz")[0] == 200, seconds=15)

        broker.kill()

        stands = (503, '{"status":"the clock stands"}')
        assert wait_until(lambda: answer(port, "/readyz") == stands, seconds=60)
        assert answer(port, "/livez")[0] == 200


@pytest.mark.long
def test_a_port_that_another_program_has_is_said_and_ends_nothing(own_stack: Stack) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        own_stack.env["COUNTERSIGN_PROBES"] = f"{HOST}:{port}"
        assert f"No probes at port {port}: Address already in use" in own_stack.worker.text()


@pytest.mark.long
def test_without_the_setting_there_are_none(own_stack: Stack) -> None:
    worker = psutil.Process(own_stack.worker.pid)
    everything = [worker, *worker.children(recursive=True)]
    assert [
        one
        for process in everything
        for one in process.net_connections("tcp4")
        if one.status == psutil.CONN_LISTEN
    ] == []


@pytest.mark.parametrize(
    ("text", "address"),
    [("", None), ("127.0.0.1:9100", ("127.0.0.1", 9100)), ("[::1]:9100", ("::1", 9100))],
)
def test_an_address_with_a_port(text: str, address: object) -> None:
    assert parse_address(text, setting="X") == address


@pytest.mark.parametrize("text", ["9100", "127.0.0.1", ":9100", "127.0.0.1:0", "127.0.0.1:99999"])
def test_anything_else_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(ValueError, match="COUNTERSIGN_PROBES is"):
        parse_address(text, setting="COUNTERSIGN_PROBES")


def test_containers_are_probed_where_they_answer() -> None:
    services: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    for role, place in PLACES.items():
        _, first = parse_address(
            services[role]["environment"]["COUNTERSIGN_PROBES"], setting=""
        ) or ("", 0)
        assert f":{first + place}/readyz" in json.dumps(services[role]["healthcheck"])
    assert set(PLACES) <= set(OURS)


CUT = "DELETE FROM audit_batch; DELETE FROM audit_tile; DELETE FROM audit_checkpoint"


def figure(port: int, name: str) -> float:
    _status, text = answer(port, "/metrics", Authorization=f"Bearer {TOKEN}")
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


def is_sealed() -> bool:
    return Checkpoint.objects.exists()


def alarms(process: Running, name: str) -> list[dict[str, Any]]:
    """Lines of its log at level ERROR that have these words."""
    lines = [json.loads(one) for one in process.text().splitlines() if one.startswith("{")]
    return [one for one in lines if one["level"] == "ERROR" and name in one["message"]]


@pytest.mark.long
def test_a_record_that_differs_from_what_was_signed_is_an_alarm_without_the_database(
    house: House, sealer: Running, databases: Databases
) -> None:
    """In the sealer's log and its counter: whoever changed the record may write entries too."""
    port = house.first_port + PLACES["seal"]
    failures = 'countersign_sealing_failures_total{kind="inconsistent"}'
    record("note.made", actor=SYSTEM)
    assert wait_until(is_sealed, seconds=15)
    assert figure(port, failures) == 0

    with databases.superuser(os.environ) as forger:
        forger.execute("SET session_replication_role = replica")
        forger.execute(f"UPDATE audit_entryrow SET seq = 1; {CUT}")
    record("note.made", actor=SYSTEM)

    assert wait_until(lambda: figure(port, failures) > 0, seconds=15)

    assert alarms(sealer, "nothing more is sealed")


@pytest.mark.long
def test_a_database_that_is_gone_is_an_alarm_without_it(
    house: House, databases: Databases, tmp_path: Path
) -> None:
    """In the log and figures of the sealer."""
    with DatabaseWire(databases.seal_url(os.environ)) as wire:
        env = {**house.env, **SEALER, "DATABASE_URL": wire.url}
        port = house.first_port + PLACES["seal"]
        process = Running(
            children.seal(),
            env=env | {"COUNTERSIGN_SEAL_KEY_FILE": str(tmp_path / "key")},
            log=tmp_path / "seal.log",
            ready=lambda _: answer(port, "/livez")[0] == 200,
        )
        try:
            wire.cut()
            failures = 'countersign_sealing_failures_total{kind="failed"}'
            assert wait_until(lambda: figure(port, failures) > 0, seconds=30)
            # It is counted before it is written.
            assert wait_until(lambda: bool(alarms(process, "Sealing failed")), seconds=30)
            assert answer(port, "/readyz") == (503, '{"status":"no database"}')
            # Once no round has gone well for long.
            assert wait_until(lambda: figure(port, "countersign_process_ready") == 0, seconds=90)
        finally:
            process.kill()
