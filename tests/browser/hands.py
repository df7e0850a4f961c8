"""Fields that Playwright sets by script, set here by keys, as people without a mouse do."""

from datetime import datetime
from typing import Any

from playwright.sync_api import FilePayload, Locator, expect

PLACE = """([select, wanted]) => [
  [...select.options].findIndex((o) => o.value === wanted || o.label === wanted),
  select.selectedIndex,
]"""


def choose(select: Locator, wanted: str) -> None:
    """By value or by what is read there; what is chosen already is left and chosen again."""
    select.focus()
    place, now = _places(select, wanted)
    if place == now:
        select.press("ArrowUp" if place else "ArrowDown")
    while True:
        place, now = _places(select, wanted)
        if place == now:
            return
        select.press("ArrowDown" if place > now else "ArrowUp")


def _places(select: Locator, wanted: str) -> Any:
    place, now = select.evaluate(f"(select, wanted) => ({PLACE})([select, wanted])", wanted)
    assert place >= 0, f"{wanted} is not to be chosen"
    return place, now


def type_time(field: Locator, value: str) -> None:
    """`2026-11-21T09:05`, or a part of it as the field has it; in the browser's own notation."""
    day, _, clock = value.rpartition("T") if ":" in value else (value, "", "")
    keyboard = field.page.keyboard
    field.focus()
    if day:
        keyboard.type(f"{datetime.fromisoformat(day):%m%d%Y}")
        keyboard.press("ArrowRight")
    if clock:
        keyboard.type(f"{datetime.strptime(clock, '%H:%M'):%I%M%p}")
    expect(field).to_have_value(value)


def pick_file(field: Locator, file: FilePayload) -> None:
    with field.page.expect_file_chooser() as chooser:
        field.press("Enter")
    chooser.value.set_files([file])
