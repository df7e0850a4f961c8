from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from mcp_types import CallToolResult

from tests.examples.running import Connection, text_of

EXAMPLE = "reports"
Progress = tuple[float, float | None, str | None]


def report(server: Connection, **arguments: Any) -> tuple[CallToolResult, list[Progress]]:
    heard: list[Progress] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async def call(client: Client) -> CallToolResult:
        return await client.call_tool("write_report", arguments, progress_callback=listen)

    return server.run(call), heard


def test_it_writes_a_report_and_tells_how_far_it_is(server: Connection) -> None:
    result, heard = report(server, seconds=1)

    assert text_of(result).startswith("# Passengers in 2026\n\n576,512 passengers in 10 months")
    assert "| Skarv - Holm | 434,104 | +4.1 % |" in text_of(result)
    assert heard == [
        (0, 1, "Reading the counts"),
        (0.25, 1, "Adding up the routes"),
        (0.5, 1, "Comparing the years"),
        (0.75, 1, "Writing it down"),
        (1, 1, "Done"),
    ]


def test_its_structured_content_fits_its_output_schema(server: Connection) -> None:
    schema = server.tools()["write_report"].output_schema
    assert schema is not None
    Draft202012Validator.check_schema(schema)

    result, _ = report(server, year=2025, seconds=1)

    Draft202012Validator(schema).validate(result.structured_content)
    assert result.structured_content["months"] == 12
    assert result.structured_content["passengers"] == sum(
        route["passengers"] for route in result.structured_content["routes"]
    )
    # There is no year before the first one to compare with.
    assert {route["change_percent"] for route in result.structured_content["routes"]} == {None}
    assert "first year" in text_of(result)


def test_it_stops_at_once_when_cancelled(server: Connection) -> None:
    async def cancel_after_first_progress(client: Client) -> None:
        started = anyio.Event()

        async def listen(progress: float, total: float | None, message: str | None) -> None:
            started.set()

        async def call() -> None:
            await client.call_tool("write_report", {"seconds": 600}, progress_callback=listen)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await started.wait()
            tasks.cancel_scope.cancel()

    before = server.log.count("report cancelled after")
    server.run(cancel_after_first_progress)

    server.log.wait_for(f"(?:report cancelled after .*?){{{before + 1}}}")
    # And it serves on.
    assert not report(server, seconds=1)[0].is_error


@pytest.mark.parametrize(
    ("argument", "value", "reason"),
    [
        ("seconds", 0, "greater than or equal to 1"),
        ("seconds", 601, "less than or equal to 600"),
        ("year", 2024, "Input should be 2025 or 2026"),
    ],
)
def test_it_refuses_an_argument_outside_its_schema(
    server: Connection, argument: str, value: int, reason: str
) -> None:
    assert reason in server.error("write_report", **{argument: value})


def test_it_takes_thirty_seconds_if_not_told_otherwise(server: Connection) -> None:
    tool = server.tools()["write_report"]

    assert tool.input_schema["properties"]["seconds"]["default"] == 30
    assert tool.annotations
    assert tool.annotations.read_only_hint is True
