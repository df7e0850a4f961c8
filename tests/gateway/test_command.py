"""`manage.py call`: a call in an agent's name, from the host's command line."""

import asyncio
import os
import subprocess
import sys

import pytest

from calls.record.states import State
from policies.models import Effect
from registry.models import Toolset
from tests.gateway.conftest import AddRule, the_call
from tests.processes import ROOT, Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


async def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "manage.py", "call", *arguments],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
async def test_it_prints_the_result(toolset: Toolset, stack: Stack, upstream: Recorder) -> None:
    assert stack.worker

    done = await call("scout", "desk", "rec.echo", '{"text": "hi"}')

    assert done.returncode == 0, done.stderr
    assert done.stdout == '{"content":[{"type":"text","text":"hi"}]}\n'
    made = await the_call()
    assert (made.origin, made.state, made.token_id) == ("command", State.SUCCEEDED, None)
    assert f"call {made.pk}" in done.stderr
    assert upstream.calls[0].arguments == b'{"text": "hi"}'


async def test_it_says_what_waits_for_a_person(
    toolset: Toolset, upstream: Recorder, rule: AddRule
) -> None:
    await rule(Effect.ASK, "echo")

    done = await call("scout", "desk", "rec.echo", '{"text": "hi"}', "--wait", "0")

    assert done.returncode == 4, done.stderr
    assert "pending approval" in done.stderr
    assert (await the_call()).state == State.HELD
    assert upstream.calls == []


@pytest.mark.long
async def test_it_says_every_violation(toolset: Toolset, upstream: Recorder) -> None:
    done = await call("scout", "desk", "rec.form", '{"days": 9}')

    assert done.returncode == 3
    assert "$.city: is required" in done.stderr
    assert "$.days" in done.stderr
    assert upstream.calls == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nobody", "desk", "rec.echo"), 1, "no enabled agent"),
        (("scout", "no-such", "rec.echo"), 1, "no such toolset"),
        (("scout", "desk", "rec.echo", '{"a":1,"a":2}'), 2, "appears twice"),
        (("scout", "desk", "rec.nope"), 3, "no such tool"),
        (("scout",), 2, "required"),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) and len(value) > 1 else str(value),
)
async def test_it_says_why_it_cannot(
    toolset: Toolset, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = await call(*arguments)

    assert done.returncode == code, done.stderr
    assert said in done.stderr
