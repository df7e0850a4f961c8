"""The counter of calls, as the console tells it, beside what the record has."""

from __future__ import annotations

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from tests.faults.house import House

COUNTER = "countersign_calls_total"
MOVED = """
    SELECT to_state, count(*) FROM audit_entryrow
    WHERE seq IS NOT NULL AND to_state <> from_state GROUP BY to_state
"""
TALLY = "SELECT reached FROM calls_movetally"


async def miscounted(house: House) -> list[str]:
    """What differs, once nothing moves any more."""
    async with asyncio.timeout(60):
        # What a busy database does not answer in time is left out of the figures.
        while not (told := await _told(house)):
            await asyncio.sleep(0.5)
    with house.databases.superuser(house.urls) as admin:
        moved = {state: float(n) for state, n in admin.execute(MOVED).fetchall()}
        tally = admin.execute(TALLY).fetchone()
    if not tally or not tally[0]:
        return ["no moves were counted before the counter was asked"]
    said = "{} is {:g} for {}, and the record has {:g}"
    return [
        said.format(COUNTER, told.get(state, 0), state, moved.get(state, 0))
        for state in sorted(told.keys() | moved)
        if told.get(state, 0) != moved.get(state, 0)
    ]


async def _told(house: House) -> dict[str, float]:
    headers = {"Authorization": f"Bearer {house.env['COUNTERSIGN_METRICS_TOKEN']}"}
    async with house.http.get(f"{house.web_url}/metrics", headers=headers) as response:
        families = list(text_string_to_metric_families(await response.text()))
    samples = [sample for family in families for sample in family.samples]
    return {one.labels["state"]: one.value for one in samples if one.name == COUNTER}
