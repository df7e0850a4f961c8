"""Gives every run a PostgreSQL and a Valkey before Django reads its settings.

Loaded early (`-p tests.plugin`). DATABASE_URL (a superuser's) and REDIS_URL are used if given. Run
by several workers (`-n 3`), the first process has the PostgreSQL, and each worker databases there
and a Valkey of its own.
"""

import fcntl
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from config.embedded.postgres import SUPERUSER, Postgres
from config.embedded.service import CannotStart
from config.embedded.valkey import Valkey
from tests.database import Cleaner, Databases
from tests.processes import Stack
from tests.services import running

# Nothing in a test outlives its machine, so nothing waits for the disk.
FAST = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
FAST |= {"max_connections": "400"}
# How workers find the PostgreSQL of the process that started them.
SHARED_ADMIN = "TESTS_SHARED_ADMIN_URL"

# Directories of tests that kill what runs, and of long proofs.
ALONE = {"faults"}
LONG = {"conformance", "faults", "hostile"}

databases_key = pytest.StashKey[Databases]()
reports_key = pytest.StashKey[list[Stack]]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, Any]:
    # A wrapper comes before pytest-django's hook, which reads the settings.
    wanted = early_config.known_args_namespace
    if not (wanted.help or wanted.version):
        keep_bytecode()
        resources = ExitStack()
        early_config.add_cleanup(resources.close)
        early_config.stash[databases_key] = resources.enter_context(environment())
    return (yield)


@contextmanager
def environment() -> Iterator[Databases]:
    """Sets the variables that settings read, for this process and its children."""
    with ExitStack() as resources:
        data = Path(resources.enter_context(tempfile.TemporaryDirectory(prefix="countersign-")))
        given = {name: os.environ.pop(name, "") for name in ("DATABASE_URL", "REDIS_URL")}
        if is_worker():
            given = {"DATABASE_URL": os.environ[SHARED_ADMIN], "REDIS_URL": ""}
        for name in [name for name in os.environ if name.startswith("COUNTERSIGN_")]:
            del os.environ[name]
        os.environ |= {
            "COUNTERSIGN_DATA": str(data),
            "COUNTERSIGN_SECRET_KEY": "only for tests, " + "x" * 40,
            "COUNTERSIGN_SEAL_KEY_FILE": str(data / "seal" / "key"),
            "COUNTERSIGN_UPSTREAM_NETWORKS": "127.0.0.0/8,::1/128",
        }

        slot = resources.enter_context(claimed_slot())
        admin = given["DATABASE_URL"] or resources.enter_context(embedded_postgres(slot))
        os.environ["REDIS_URL"] = given["REDIS_URL"] or resources.enter_context(
            embedded_valkey(slot)
        )
        os.environ[SHARED_ADMIN] = admin
        databases = Databases(admin)
        if not given["DATABASE_URL"]:
            databases.tidy()
        urls = databases.clone()
        resources.callback(databases.drop, urls)
        resources.callback(close_pools)
        os.environ |= urls
        yield databases


def is_worker() -> bool:
    return "PYTEST_XDIST_WORKER" in os.environ


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what whole directories have in common; workers get what takes longest first, or one of
    them ends long after the others."""
    for item in items:
        directory = item.path.parent.name
        if directory == "browser":
            item.add_marker("browser")
            # A browser takes more of the cores than all else: the short command has the main ways.
            if not item.get_closest_marker("smoke"):
                item.add_marker("long")
        if directory in ALONE:
            item.add_marker("alone")
        if directory in LONG or item.get_closest_marker("alone"):
            item.add_marker("long")
    if "proof" not in config.option.markexpr:
        by_hand = [item for item in items if item.get_closest_marker("proof")]
        items[:] = [item for item in items if item not in by_hand]
        config.hook.pytest_deselected(items=by_hand)
    if is_worker():
        items.sort(key=lambda item: not item.get_closest_marker("long"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Nearly all that is made now stays: to look for what can go is for later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tests and modules stay until the end: looking through them again and again for what can go
    takes an eighth of a run's processor time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


def own_directory() -> Path:
    base = Path(f"/tmp/countersign-tests-{os.getuid()}")
    base.mkdir(mode=0o711, exist_ok=True)
    if base.lstat().st_uid != os.getuid():
        raise SystemExit(f"{base} belongs to somebody else.")
    return base


def keep_bytecode() -> None:
    """A run starts hundreds of Python programs, which need not compile the same modules each.

    Beside the tree and the packages: who wants no such files there gets none.
    """
    kept = own_directory() / "bytecode"
    sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", str(kept))
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if not is_worker():
        # Of programs that an earlier run made, and that are gone.
        shutil.rmtree(kept / tempfile.gettempdir().lstrip("/"), ignore_errors=True)


@contextmanager
def claimed_slot() -> Iterator[Path]:
    """A directory that no other run uses now, and that the next run finds warm."""
    base = own_directory()
    for number in range(100):
        slot = base / f"{version('embedded-postgres')}-{number}"
        slot.mkdir(mode=0o711, exist_ok=True)
        with (slot / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield slot
            return
    raise SystemExit(f"A hundred runs of the tests hold {base}.")


@contextmanager
def embedded_postgres(slot: Path) -> Iterator[str]:
    with ExitStack() as resources:
        try:
            postgres = Postgres(slot, settings=FAST)
            resources.enter_context(running(postgres, slot / "postgres.log"))
        except CannotStart:
            # Without fsync a machine's crash spoils it, and it holds nothing to be missed.
            shutil.rmtree(slot / "postgres", ignore_errors=True)
            postgres = Postgres(slot, settings=FAST)
            resources.enter_context(running(postgres, slot / "postgres.log"))
        yield postgres.url(SUPERUSER, "postgres")


@contextmanager
def embedded_valkey(slot: Path) -> Iterator[str]:
    shutil.rmtree(slot / "valkey", ignore_errors=True)
    valkey = Valkey(slot)
    with running(valkey, slot / "valkey.log"):
        yield valkey.urls()["REDIS_URL"]


def close_pools() -> None:
    # Django may only be imported once its settings can be read.
    from django.db import connections
    from django.db.backends.postgresql.base import DatabaseWrapper

    for connection in connections.all(initialized_only=True):
        connection.close()
        if isinstance(connection, DatabaseWrapper):
            connection.close_pool()


@pytest.fixture(scope="session")
def databases(pytestconfig: pytest.Config) -> Databases:
    return pytestconfig.stash[databases_key]


@pytest.fixture(scope="session")
def cleaner(databases: Databases) -> Iterator[Cleaner]:
    with databases.superuser(os.environ) as connection:
        yield Cleaner(connection)


@pytest.fixture
def fresh_database(databases: Databases) -> Iterator[dict[str, str]]:
    """A database of the test's own: DATABASE_URL and DATABASE_OWNER_URL of it."""
    urls = databases.clone()
    yield urls
    databases.drop(urls)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The product's processes on the run's database, each started when first asked for."""
    with Stack(tmp_path_factory.mktemp("stack")) as started:
        yield started


@pytest.fixture
def own_stack(tmp_path: Path) -> Iterator[Stack]:
    """Processes for one test alone, which it may kill; set its `env` before the first start."""
    with Stack(tmp_path) as started:
        yield started


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Stack):
                report.sections.extend(value.output())
    return report
