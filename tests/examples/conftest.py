"""Each module of tests names its example server in EXAMPLE, and meets it over HTTP; the long tests
meet it over every transport."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples.running import Connection, Log, http_server, over_http, over_stdio

OTHERS = [pytest.param(name, marks=pytest.mark.long) for name in ("stdio", "http-legacy")]
TRANSPORTS = ["http", *OTHERS]


@pytest.fixture(scope="module")
def name(request: pytest.FixtureRequest) -> str:
    example: str = request.module.EXAMPLE
    return example


@pytest.fixture(scope="module")
def options() -> list[str]:
    """What follows the server's name on its command line; modules override it."""
    return []


@pytest.fixture(scope="module")
def served(name: str, options: list[str]) -> Iterator[tuple[str, Log]]:
    with http_server(name, *options) as url_and_log:
        yield url_and_log


@pytest.fixture(scope="module", params=TRANSPORTS)
def server(request: pytest.FixtureRequest, name: str, options: list[str]) -> Iterator[Connection]:
    if request.param == "stdio":
        with over_stdio(name, *options) as connection:
            yield connection
        return
    url, log = request.getfixturevalue("served")
    with over_http(url, log, "legacy" if request.param == "http-legacy" else "auto") as connection:
        yield connection


@pytest.fixture(scope="module")
def outbox(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outbox")
