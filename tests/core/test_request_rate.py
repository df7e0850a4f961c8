from core import request_rate
from core.request_rate import RequestRate


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_address_waits_for_the_end_of_its_window_and_no_other_does() -> None:
    clock = Clock()
    rate = RequestRate(2, 60, clock)

    assert [rate.wait_s("a"), rate.wait_s("a"), rate.wait_s("a")] == [0, 0, 60]
    assert rate.wait_s("b") == 0
    clock.now = 45.5
    assert rate.wait_s("a") == 15
    clock.now = 60
    assert rate.wait_s("a") == 0


def test_so_many_addresses_are_remembered_at_most(monkeypatch) -> None:
    monkeypatch.setattr(request_rate, "ADDRESSES_MAX", 3)
    rate = RequestRate(1, 60, Clock())

    for n in range(10):
        assert rate.wait_s(str(n)) == 0

    assert len(rate._windows) == 3
    assert rate.wait_s("9") == 60
