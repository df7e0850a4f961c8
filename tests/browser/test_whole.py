"""Runs after all other browser tests of a run (whole.py): no control was left unused."""

import time

import pytest

from tests.browser.whole import compared, directory, unfinished

pytestmark = pytest.mark.long

LONGEST_S = 600


@pytest.mark.alone
def test_every_control_of_every_page_was_used_as_a_person_does() -> None:
    # In a run of several workers the others may still be at their last.
    given_up = time.monotonic() + LONGEST_S
    while unfinished() and time.monotonic() < given_up:
        time.sleep(0.1)

    left = compared(directory())
    assert not left.unused, "\n".join(left.unused)
    assert not left.never_keyed, "\n".join(left.never_keyed)
