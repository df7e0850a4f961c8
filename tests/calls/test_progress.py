"""What servers say of how far a long call is, as its row and its page have it."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import Agent, User
from calls.models import Call
from calls.running.pace import Pace
from calls.running.progress import CUT, MESSAGE_MAX
from registry.models import Toolset
from tests.calls import rows
from tests.gateway.conftest import Play, the_call, until
from tests.processes import Stack
from tests.upstreams.recorder import running
from tests.upstreams.stepping import Stepping

pytestmark = pytest.mark.django_db(transaction=True)

running_recorder = running(Stepping)


async def shown(**row: Any) -> Call:
    async def has() -> bool:
        return await Call.objects.filter(**row).aexists()

    await until(has)
    return await the_call()


@pytest.mark.long
async def test_what_is_said_without_a_rise_is_shown_all_the_same(
    toolset: Toolset, stack: Stack, scout: Agent, bob: User, upstream: Stepping
) -> None:
    assert stack.worker
    await sync_to_async(rows.queue)(scout, bob, "steps")
    upstream.said.append('"progress":5,"total":10,"message":"Fetching"')
    await shown(progress_message="Fetching")

    upstream.said.append('"progress":5,"total":10,"message":"Fetching, slowly"')
    await shown(progress=5, progress_message="Fetching, slowly")
    upstream.said.append('"progress":4,"message":"Once more"')
    await shown(progress=5, progress_message="Once more")
    upstream.release()


async def test_a_long_message_is_cut_and_ends_with_a_sign_of_it(
    toolset: Toolset, stack: Stack, scout: Agent, bob: User, upstream: Stepping
) -> None:
    assert stack.worker
    await sync_to_async(rows.queue)(scout, bob, "steps")

    upstream.said.append(f'"progress":5,"message":"{"x" * 5000}"')

    await shown(progress_message="x" * (MESSAGE_MAX - 1) + CUT)
    upstream.release()


ABSURD = [
    '"progress":1' + "0" * 400,
    '"progress":1e400',
    '"progress":-1.7e308,"total":1.7e308',
    '"progress":0,"total":-1' + "0" * 400,
    '"progress":"7"',
    '"progress":true',
    '"progress":9e307,"total":1.7e308,"message":"nearly"',
]


async def test_absurd_numbers_cost_no_call_its_outcome(play: Play, upstream: Stepping) -> None:
    upstream.said.extend(ABSURD)
    upstream.release()

    reply = await play().call("rec.steps", token="t")

    assert reply.text == "done"
    *steps, _answer = reply.messages
    assert steps[-1]["params"]["message"] == "nearly"


@pytest.mark.parametrize(
    ("steps", "rate"),
    [
        # Too few, too soon.
        ([(0, 1), (1, 2)], None),
        ([(0.2 * n, n) for n in range(10)], None),
        # A slow beginning is forgotten.
        ([(0, 1), (600, 2), *((600 + n, 2 + n) for n in range(1, 40))], 1.0),
        # Steps that come together count once.
        ([(n / 100, n) for n in range(1000)], 100.0),
        ([(n, n * 1e308) for n in (-1.7, 0, 1, 1.5, 1.7)], None),
    ],
)
def test_the_pace_is_that_of_the_last_steps(
    steps: list[tuple[float, float]], rate: float | None
) -> None:
    pace = Pace()
    for at, progress in steps:
        pace.add(at, progress)

    assert pace.rate == (None if rate is None else pytest.approx(rate, rel=0.05))
