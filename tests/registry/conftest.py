"""Servers to discover."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from accounts.models import User
from core import loop
from registry import services
from registry.discovery import discovery
from registry.models import Discovery, Server
from tests.registry.offering import ADD, Offering, serving


@pytest.fixture
def offering() -> Offering:
    offering = Offering()
    offering.tools = [ADD]
    return offering


@pytest.fixture
def address(offering: Offering) -> Iterator[str]:
    with serving(offering) as url:
        yield url


@pytest.fixture
def calculator(address: str, olga: User) -> Server:
    return services.register(
        "calculator", transport="http", url=f"{address}/mcp", owner=olga, by=olga
    )


@pytest.fixture
def look() -> Callable[[Server], Discovery]:
    """One look at a server through the real client, as the worker takes it."""

    def look(server: Server) -> Discovery:
        (row,) = loop.discovery.run(discovery.look_at([server.pk]), timeout=60)
        return row

    return look


@pytest.fixture
def commands(settings: Any, tmp_path: Path) -> Callable[..., None]:
    """Writes the host's catalogue of commands."""

    def write(**listed: Any) -> None:
        settings.STDIO_CATALOGUE = tmp_path / "stdio.json"
        settings.STDIO_CATALOGUE.write_bytes(orjson.dumps(listed))

    return write
