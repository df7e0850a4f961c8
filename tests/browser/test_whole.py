"""Runs after all other browser tests of a run (whole.py): no control was left unused."""

import time

import pytest

from tests.browser.whole import Left, compared, directory, unfinished

LONGEST_S = 600
# Not covered yet, each with its reason. The list may only shrink: what some test uses has to go.
RELAYS = "what a server may ask of agents has no browser test of its form"
ELSEWHERE = "leads where links beside it lead, which are followed"
KNOWN = {
    "audit:report | link | audit:list": ELSEWHERE,
    "frame | link | what was found": "places of the palette are opened by keyboard, never clicked",
    "gateway:try | link | gateway:try agent": ELSEWHERE,
    "gateway:try | link | gateway:try less": ELSEWHERE,
    "many pages | button | registry:set_server_relays": RELAYS,
    "many pages | checkbox | registry:set_server_relays relay": RELAYS,
    "many pages | form | registry:set_server_relays post": RELAYS,
    "registry:tool_policy | link | policies:explain tool": "a form takes its place at once",
    "registry:tool_versions | link | registry:tool_versions less": ELSEWHERE,
}
# Its one field is filled by script; its buttons are those of many pages.
NEVER_KEYED = ["registry:connect"]


@pytest.mark.alone
def test_every_control_of_every_page_was_used_as_a_person_does() -> None:
    # In a run of several workers the others may still be at their last.
    given_up = time.monotonic() + LONGEST_S
    while unfinished() and time.monotonic() < given_up:
        time.sleep(0.1)

    assert compared(directory()) == Left(sorted(KNOWN), NEVER_KEYED)
