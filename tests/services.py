"""The embedded services for the length of a `with`, for tests and for the pytest plugin."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.embedded.postgres import Postgres
from config.embedded.service import CannotStart, Service, wait_until
from config.embedded.valkey import Valkey
from core import die_with_parent


@contextmanager
def running(service: Service, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    service.prepare()
    argv, env = service.command()
    with log.open("ab") as output:
        process = subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            pass_fds=die_with_parent.lifelines(),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_until(lambda: service.is_ready(process.pid) or process.poll() is not None, seconds=30)
        if not service.is_ready(process.pid):
            raise CannotStart(log.read_text()[-2000:])
        yield process
    finally:
        process.send_signal(service.stop_signal)
        process.wait(30)


@contextmanager
def services(data: Path) -> Iterator[dict[str, str]]:
    """PostgreSQL and Valkey in `data`, and their URLs."""
    data.mkdir(mode=0o711, exist_ok=True)
    postgres, valkey = Postgres(data), Valkey(data)
    with running(postgres, data / "postgres.log"), running(valkey, data / "valkey.log"):
        postgres.make_roles()
        yield {**postgres.urls(), **valkey.urls()}
