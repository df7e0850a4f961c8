from datetime import date
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from config.management.commands import demo_day
from tests.examples.running import Connection

EXAMPLE = "weather"


def forecast(server: Connection, **arguments: Any) -> Any:
    return server.call("forecast", **arguments).structured_content


def test_it_gives_structured_content_that_fits_its_output_schema(server: Connection) -> None:
    schema = server.tools()["forecast"].output_schema
    assert schema is not None
    Draft202012Validator.check_schema(schema)

    answer = forecast(server, city="Bergen", first_day="2026-11-21", days=14)

    Draft202012Validator(schema).validate(answer)
    assert [each["day"] for each in answer["days"]][::13] == ["2026-11-21", "2026-12-04"]


def test_it_knows_the_city_that_the_demonstration_asks_for(server: Connection) -> None:
    ((_tool, asked),) = [one for one in demo_day.DAY if one[0] == "weather.forecast"]

    assert not server.call("forecast", **{**asked, "first_day": "2026-11-21"}).is_error


def test_it_tells_the_same_weather_to_everybody(server: Connection) -> None:
    assert forecast(server, city="bergen ", first_day="2026-11-21", days=1) == {
        "city": "Bergen",
        "country": "Norway",
        "unit": "celsius",
        "days": [
            {
                "day": "2026-11-21",
                "condition": "rain",
                "low": 1.1,
                "high": 4.5,
                "precipitation_mm": 6.4,
                "wind_kmh": 11,
            }
        ],
    }


def test_it_starts_today_if_not_told_otherwise(server: Connection) -> None:
    before = date.today().isoformat()

    days = forecast(server, city="Lisbon")["days"]

    assert days[0]["day"] in (before, date.today().isoformat())
    assert len(days) == 3


def test_it_speaks_fahrenheit(server: Connection) -> None:
    celsius, fahrenheit = (
        forecast(server, city="Cairo", first_day="2026-07-01", days=1, unit=unit)["days"][0]
        for unit in ("celsius", "fahrenheit")
    )

    assert fahrenheit["high"] == pytest.approx(celsius["high"] * 9 / 5 + 32, abs=0.2)


def test_seasons_are_the_other_way_round_in_the_south(server: Connection) -> None:
    def warmest(city: str) -> int:
        months = server.call("climate_normals", city=city).structured_content["months"]
        month: int = max(months, key=lambda each: each["high"])["month"]
        return month

    assert (warmest("Montréal"), warmest("Buenos Aires")) == (7, 1)


def test_it_snows_in_sapporo_and_never_in_singapore(server: Connection) -> None:
    def conditions(city: str) -> set[str]:
        days = forecast(server, city=city, first_day="2027-01-10", days=14)["days"]
        return {each["condition"] for each in days}

    assert "snow" in conditions("Sapporo")
    assert "snow" not in conditions("Singapore")


def test_it_lists_the_cities_it_knows(server: Connection) -> None:
    cities = server.call("list_cities").structured_content["result"]

    assert {"Lisbon", "Reykjavík"} <= set(cities)


@pytest.mark.parametrize("tool", ["forecast", "climate_normals"])
def test_it_names_the_cities_there_are_when_one_is_unknown(server: Connection, tool: str) -> None:
    error = server.error(tool, city="Atlantis")

    assert "No city 'Atlantis' in the table. There are: Auckland, Bergen," in error


@pytest.mark.parametrize(
    ("argument", "value", "reason"),
    [
        ("days", 15, "less than or equal to 14"),
        ("days", 0, "greater than or equal to 1"),
        ("unit", "kelvin", "'celsius' or 'fahrenheit'"),
        ("first_day", "tomorrow", "valid date"),
        ("first_day", "9999-12-31", "less than or equal to 2199-12-31"),
    ],
)
def test_it_refuses_an_argument_outside_its_schema(
    server: Connection, argument: str, value: Any, reason: str
) -> None:
    assert reason in server.error("forecast", city="Lisbon", **{argument: value})


def test_its_default_day_is_not_in_the_schema(server: Connection) -> None:
    schema = server.tools()["forecast"].input_schema

    assert schema["required"] == ["city"]
    assert "default" not in schema["properties"]["first_day"]


def test_every_tool_only_reads(server: Connection) -> None:
    tools = server.tools()

    assert list(tools) == ["list_cities", "forecast", "climate_normals"]
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
