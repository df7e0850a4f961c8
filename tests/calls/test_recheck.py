"""What is checked before a call is sent that people decided on."""

from approvals import eligibility, standing_approvals
from calls.queue import recheck


def test_approvals_are_checked_before_a_call_is_sent() -> None:
    assert recheck.registered() == (eligibility.obstacle, standing_approvals.obstacle)


def test_a_check_is_registered_once() -> None:
    recheck.register(eligibility.obstacle)

    assert recheck.registered().count(eligibility.obstacle) == 1
