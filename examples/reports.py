"""Writes a report on the passengers of a ferry company, slowly, and tells how far it is.

The report is ready in a moment. The waiting is the point of this server: it is what a long tool
looks like to a gateway, with progress and a call that can be cancelled at any time.
"""

import argparse
import csv
import logging
import time
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field

TABLE = Path(__file__).parent / "data" / "passengers.csv"
STAGES = ["Reading the counts", "Adding up the routes", "Comparing the years", "Writing it down"]
PROGRESS_A_SECOND = 4

logger = logging.getLogger("reports")


class Line(BaseModel):
    """One route in one month."""

    month: date = Field(description="Its first day.")
    route: str
    passengers: int
    revenue: int
    crossings: int
    cancelled: int


class RouteReport(BaseModel):
    route: str
    passengers: int
    revenue: int = Field(description="In crowns.")
    busiest_month: date = Field(description="Its first day.")
    cancelled_percent: float = Field(ge=0, le=100)
    change_percent: float | None = Field(
        description="Passengers, against the same months a year before. Null for the first year."
    )


class Report(BaseModel):
    year: int
    months: int = Field(ge=1, le=12)
    passengers: int
    revenue: int = Field(description="In crowns.")
    routes: list[RouteReport]


server = MCPServer("reports", title="Reports", version="1.0")


@server.tool(
    title="Write a passenger report",
    annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
)
async def write_report(
    ctx: Context,
    year: Annotated[Literal[2025, 2026], Field(description="The year to report on.")] = 2026,
    seconds: Annotated[int, Field(ge=1, le=600, description="How long to take.")] = 30,
) -> Annotated[CallToolResult, Report]:
    """Report on a year's passengers, revenue and cancellations. Takes 30 seconds by default."""
    started = time.monotonic()
    try:
        await take_time(ctx, seconds)
    except anyio.get_cancelled_exc_class():
        logger.info("report cancelled after %.1f s", time.monotonic() - started)
        raise

    report = report_on(year)
    return CallToolResult(
        content=[TextContent(type="text", text=as_markdown(report))],
        structured_content=report.model_dump(mode="json"),
    )


async def take_time(ctx: Context, seconds: int) -> None:
    ticks = seconds * PROGRESS_A_SECOND
    for tick in range(ticks):
        stage = STAGES[tick * len(STAGES) // ticks]
        await ctx.report_progress(tick / PROGRESS_A_SECOND, seconds, stage)
        await anyio.sleep(1 / PROGRESS_A_SECOND)
    await ctx.report_progress(seconds, seconds, "Done")


def report_on(year: int) -> Report:
    lines = lines_of(year)
    routes = sorted({line.route for line in lines})
    return Report(
        year=year,
        months=len({line.month for line in lines}),
        passengers=sum(line.passengers for line in lines),
        revenue=sum(line.revenue for line in lines),
        routes=[route_report(route, lines, lines_of(year - 1)) for route in routes],
    )


def route_report(route: str, this_year: list[Line], last_year: list[Line]) -> RouteReport:
    lines = [line for line in this_year if line.route == route]
    passengers = sum(line.passengers for line in lines)
    # A year that is not over is compared with as many months of the year before.
    months = {line.month.month for line in lines}
    before = sum(
        line.passengers for line in last_year if line.route == route and line.month.month in months
    )
    return RouteReport(
        route=route,
        passengers=passengers,
        revenue=sum(line.revenue for line in lines),
        busiest_month=max(lines, key=lambda line: line.passengers).month,
        cancelled_percent=percent(
            sum(line.cancelled for line in lines), sum(line.crossings for line in lines)
        ),
        change_percent=percent(passengers - before, before) if before else None,
    )


def percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1)


def lines_of(year: int) -> list[Line]:
    with TABLE.open(encoding="utf-8", newline="") as rows:
        lines = [Line.model_validate(row) for row in csv.DictReader(rows)]
    return [line for line in lines if line.month.year == year]


def as_markdown(report: Report) -> str:
    rows = [
        f"| {each.route} | {each.passengers:,} | {change(each)} | {each.revenue:,} | "
        f"{each.busiest_month:%B} | {each.cancelled_percent} % |"
        for each in report.routes
    ]
    return "\n".join(
        [
            f"# Passengers in {report.year}",
            "",
            f"{report.passengers:,} passengers in {report.months} months paid "
            f"{report.revenue:,} crowns.",
            "",
            "| Route | Passengers | Change | Revenue | Busiest month | Cancelled |",
            "|---|---|---|---|---|---|",
            *rows,
        ]
    )


def change(route: RouteReport) -> str:
    return "first year" if route.change_percent is None else f"{route.change_percent:+} %"


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
