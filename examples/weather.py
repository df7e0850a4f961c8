"""Weather of a dozen cities, with structured results.

There is no network behind it: a table of climates, the time of year and a little noise that is the
same for the same city and day. Plausible, and made up.
"""

import argparse
import csv
import math
import random
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

TABLE = Path(__file__).parent / "data" / "climate.csv"

Unit = Literal["celsius", "fahrenheit"]
Condition = Literal["clear", "cloudy", "rain", "snow"]
City = Annotated[str, Field(description="A city of list_cities.", examples=["Lisbon"])]
# A default that moves: in the schema the argument is simply not required.
FirstDay = Annotated[
    date,
    Field(
        default_factory=date.today,
        ge=date(1900, 1, 1),
        le=date(2199, 12, 31),
        description="The first day, 1900 to 2199. Today if left out.",
    ),
]
UnitArgument = Annotated[Unit, Field(description="The unit of every temperature.")]


class Climate(BaseModel):
    """One line of the table."""

    city: str
    country: str
    latitude: float = Field(ge=-90, le=90)
    longitude: float = Field(ge=-180, le=180)
    coldest_month: int = Field(ge=1, le=12)
    mean_c: float = Field(description="Mean temperature of the year, °C.")
    swing_c: float = Field(description="How far the warmest month is above that mean, °C.")
    daily_range_c: float = Field(description="From night to afternoon, °C.")
    wet_days: int = Field(description="Days with rain or snow in a month.")
    dry_season_month: int = Field(ge=1, le=12)
    windy_kmh: int = Field(description="Mean wind, km/h.")


class Day(BaseModel):
    day: date
    condition: Condition
    low: float
    high: float
    precipitation_mm: float = Field(ge=0)
    wind_kmh: int = Field(ge=0)


class Forecast(BaseModel):
    city: str
    country: str
    unit: Unit
    days: list[Day]


class Month(BaseModel):
    month: int = Field(ge=1, le=12)
    low: float
    high: float
    wet_days: float


class Normals(BaseModel):
    city: str
    unit: Unit
    months: list[Month] = Field(min_length=12, max_length=12)


def read_table() -> dict[str, Climate]:
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return {
            line["city"].casefold(): Climate.model_validate(line) for line in csv.DictReader(lines)
        }


CLIMATES = read_table()
READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
server = MCPServer(
    "weather",
    title="Weather",
    version="1.0",
    instructions="Invented but plausible weather. Ask list_cities first.",
)


@server.tool(title="List cities", annotations=READ_ONLY)
def list_cities() -> list[str]:
    """List the cities that this server knows."""
    return [climate.city for climate in CLIMATES.values()]


@server.tool(title="Forecast the weather", annotations=READ_ONLY)
def forecast(
    city: City,
    first_day: FirstDay,
    days: Annotated[int, Field(ge=1, le=14, description="How many days.")] = 3,
    unit: UnitArgument = "celsius",
) -> Forecast:
    """Forecast the weather of a city, day by day."""
    climate = climate_of(city)
    return Forecast(
        city=climate.city,
        country=climate.country,
        unit=unit,
        days=[weather(climate, first_day + timedelta(days=ahead), unit) for ahead in range(days)],
    )


@server.tool(title="Show the climate", annotations=READ_ONLY)
def climate_normals(city: City, unit: UnitArgument = "celsius") -> Normals:
    """Show what the twelve months are usually like in a city."""
    climate = climate_of(city)
    return Normals(
        city=climate.city,
        unit=unit,
        months=[normal(climate, month, unit) for month in range(1, 13)],
    )


def climate_of(city: str) -> Climate:
    try:
        return CLIMATES[city.strip().casefold()]
    except KeyError as error:
        known = ", ".join(list_cities())
        raise ToolError(f"No city {city!r} in the table. There are: {known}.") from error


def normal(climate: Climate, month: int, unit: Unit) -> Month:
    mean, half_range = mean_temperature(climate, month), climate.daily_range_c / 2
    return Month(
        month=month,
        low=in_unit(mean - half_range, unit),
        high=in_unit(mean + half_range, unit),
        wet_days=round(30 * chance_of_rain(climate, month), 1),
    )


def weather(climate: Climate, day: date, unit: Unit) -> Day:
    # Seeded with text, so every machine and every start tells the same weather.
    noise = random.Random(f"{climate.city} {day.isoformat()}")  # noqa: S311
    wet = noise.random() < chance_of_rain(climate, day.month)
    half_range = climate.daily_range_c * (0.3 if wet else 0.55)
    mean = mean_temperature(climate, day.month + (day.day - 15) / 30) + noise.gauss(0, 2)

    return Day(
        day=day,
        condition=condition(wet, mean, noise),
        low=in_unit(mean - half_range, unit),
        high=in_unit(mean + half_range, unit),
        precipitation_mm=round(noise.expovariate(1 / 6), 1) if wet else 0,
        wind_kmh=round(climate.windy_kmh * noise.uniform(0.5, 1.8)),
    )


def mean_temperature(climate: Climate, month: float) -> float:
    return climate.mean_c - climate.swing_c * season(month - climate.coldest_month)


def chance_of_rain(climate: Climate, month: float) -> float:
    return climate.wet_days / 30 * (1 - 0.5 * season(month - climate.dry_season_month))


def season(months_away: float) -> float:
    """1 in the month itself, -1 half a year away."""
    return math.cos(2 * math.pi * months_away / 12)


def condition(wet: bool, mean: float, noise: random.Random) -> Condition:
    if wet:
        return "snow" if mean < 1 else "rain"
    return noise.choice(["clear", "cloudy"])


def in_unit(celsius: float, unit: Unit) -> float:
    return round(celsius if unit == "celsius" else celsius * 9 / 5 + 32, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP instead of stdio")
    port = parser.parse_args().http
    if port is None:
        server.run()
    else:
        server.run("streamable-http", port=port)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
