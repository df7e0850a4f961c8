"""The example in TypeScript: dates by the calendar, and errors that name what was wrong."""

from typing import Any

import pytest

from tests.examples.running import Connection, text_of

EXAMPLE = "dates"
pytestmark = pytest.mark.long


def test_it_describes_its_tools(server: Connection) -> None:
    tools = server.tools()

    assert [*tools] == ["days_between", "add_working_days"]
    for tool in tools.values():
        assert tool.title
        assert tool.output_schema
        assert tool.annotations
        assert tool.annotations.read_only_hint is True


@pytest.mark.parametrize(
    ("first", "second", "days"),
    [
        ("2026-03-01", "2026-03-01", 0),
        ("2024-02-28", "2024-03-01", 2),
        ("2026-03-28", "2026-03-30", 2),
        ("2026-12-31", "2025-12-31", -365),
    ],
)
def test_it_counts_days(server: Connection, first: str, second: str, days: int) -> None:
    result = server.call("days_between", first=first, second=second)

    assert result.structured_content == {"days": days}
    assert text_of(result) == f'{{"days":{days}}}'


@pytest.mark.parametrize(
    ("arguments", "date"),
    [
        ({"start": "2026-11-27", "count": 1}, "2026-11-30"),
        ({"start": "2026-11-28", "count": 0}, "2026-11-28"),
        ({"start": "2026-11-30", "count": -1}, "2026-11-27"),
        (
            {"start": "2026-12-23", "count": 2, "holidays": ["2026-12-24", "2026-12-25"]},
            "2026-12-29",
        ),
    ],
)
def test_it_adds_working_days(server: Connection, arguments: dict[str, Any], date: str) -> None:
    result = server.call("add_working_days", **arguments)

    assert result.structured_content == {"date": date}


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("days_between", {"first": "2026-02-30", "second": "2026-03-01"}, "first"),
        ("days_between", {"first": "2026-03-01"}, "second"),
        ("add_working_days", {"start": "2026-03-01", "count": 1001}, "count"),
        ("add_working_days", {"start": "2026-03-01", "count": 1.5}, "count"),
    ],
)
def test_errors_name_the_argument(
    server: Connection, tool: str, arguments: dict[str, Any], named: str
) -> None:
    assert named in server.error(tool, **arguments)
