"""Progress notifications only ever go forward, whatever a server or a worker says."""

import json
from typing import Any

import pytest

from calls.running.progress import ProgressStep
from gateway.protocol.reply_stream import ReplyStream, progress_of


class Client:
    """The other end of one HTTP exchange."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    async def receive(self) -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    @property
    def messages(self) -> list[Any]:
        body = b"".join(message.get("body", b"") for message in self.sent).decode()
        blocks = [block for block in body.split("\n\n") if "data: " in block]
        return [json.loads(block.partition("data: ")[2]) for block in blocks]


@pytest.fixture
def client() -> Client:
    return Client()


async def test_steps_that_go_back_or_stand_still_are_left_out(client: Client) -> None:
    reply = ReplyStream(client.receive, client.send)
    progress = progress_of(reply, "t")
    assert progress is not None

    for value in (0.000001, 1, 1, 0.5, 2, 2.0, 3):
        progress.step(ProgressStep(value, None, ""))
    await reply.finish(200, b"{}")

    *steps, answer = client.messages
    assert [step["params"]["progress"] for step in steps] == [0.000001, 1, 2, 3]
    assert all(step["params"].keys() == {"progressToken", "progress"} for step in steps)
    assert answer == {}


async def test_the_answer_comes_last_and_ends_the_stream(client: Client) -> None:
    reply = ReplyStream(client.receive, client.send)
    reply.stream()
    for n in range(3):
        reply.push(b'{"n":%d}' % n)
    await reply.finish(200, b'{"n":3}')

    assert [message["n"] for message in client.messages] == [0, 1, 2, 3]
    assert client.sent[-1]["more_body"] is False
    assert [message["type"] for message in client.sent].count("http.response.start") == 1
