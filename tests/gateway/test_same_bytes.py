"""What the agent wrote, what people were shown and approved, and what the server received are the
same bytes; what two parsers could read differently is refused at the door.

DOCUMENTS says how many the long tests generate, DOCUMENTS_SEED from which seed.
"""

import asyncio
import hashlib
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from uuid import UUID

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.test import Client
from django.urls import reverse

from accounts.models import User
from approvals.models import Vote
from calls.models import Call
from calls.record.statements import DOMAIN
from calls.record.states import State
from policies.models import Effect
from tests.gateway.agent import Agent, Reply
from tests.gateway.conftest import AddRule, Play, until
from tests.gateway.documents import DEPTH, WRONG, Documents
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

SOME, ALL = 200, int(os.environ.get("DOCUMENTS", "10000"))
SEED = int(os.environ.get("DOCUMENTS_SEED", random.randrange(10**9)))
# Of ten documents so many are wrong, each asked for by itself; the others share calls.
WRONG_OF_TEN = 4
MOST_OF_A_CALL = 80
AT_ONCE = 100
MARK = re.compile("⟦(?:U\\+([0-9A-F]{4,6})|(.) U\\+[0-9A-F]{4,6})⟧", re.DOTALL)

HOW_MANY = pytest.mark.parametrize(
    "how_many", [SOME, pytest.param(ALL, marks=pytest.mark.long, id="all")]
)


async def post(agent: Agent, arguments: bytes) -> Reply:
    """With exactly these bytes as arguments."""
    message = await agent.message("tools/call", {"name": "rec.say", "arguments": "@@"})
    body = orjson.dumps(message).replace(b'"@@"', arguments)
    return await agent.post(body, headers=agent.headers(message))


class Shown(HTMLParser):
    """The bytes that a card says it would send, read back from what it shows, and its digest."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.digest = "", ""
        self._open: list[str] = []
        self._marks = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "input" and given.get("name") == "seen":
            self.digest = given["value"] or ""
        if tag == "details":
            self._open.append("bytes" if "data-bytes" in given else tag)
        elif tag == "pre" and "bytes" in self._open:
            self._open.append(tag)
        elif tag == "span":
            self._marks = given.get("class") == "hidden-character"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("details", "pre") and self._open:
            self._open.pop()
        self._marks = False

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["pre"]:
            self.text += MARK.sub(named, data) if self._marks else data


def named(mark: re.Match[str]) -> str:
    return mark[2] or chr(int(mark[1], 16))


def bundles(documents: Documents, count: int) -> Iterator[bytes]:
    """Arguments that hold so many documents, several to a call, no two calls alike."""
    n = 0
    while count:
        size = min(count, documents.random.randint(1, MOST_OF_A_CALL))
        members = [f'"{n}":{documents.document(DEPTH - 1)}' for n in range(n, n + size)]
        yield f"{{{', '.join(members)}}}".encode()
        n, count = n + size, count - size


def decide(client: Client, call_id: UUID, arguments: bytes) -> None:
    """Read what the card shows, and approve just that."""
    card = client.get(reverse("approvals:detail", args=[call_id])).text
    shown = Shown(card)
    assert shown.text.encode() == arguments, (SEED, arguments)
    assert client.get(reverse("calls:arguments", args=[call_id])).content == arguments
    client.post(reverse("approvals:approve", args=[call_id]), {"seen": shown.digest})
    (vote,) = Vote.objects.filter(approval=call_id).select_related("approval__call")
    statement = vote.approval.call.statement
    assert orjson.loads(statement)["arguments"] == hashlib.sha256(arguments).hexdigest()
    assert vote.seen_digest == hashlib.sha256(DOMAIN + statement.encode()).hexdigest()


@pytest.fixture
def as_alice(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.mark.long
@HOW_MANY
async def test_what_is_shown_approved_and_received_are_the_same_bytes(
    stack: Stack, play: Play, rule: AddRule, upstream: Recorder, as_alice: Client, how_many: int
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "say")
    agent, documents = play(), Documents(SEED)
    clear = how_many * (10 - WRONG_OF_TEN) // 10
    asked = list(bundles(documents, clear))
    # Line breaks between tokens become spaces: some servers read a message a line.
    expected = [one.replace(b"\n", b" ").replace(b"\r", b" ") for one in asked]

    for start in range(0, len(asked), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        replies = await asyncio.gather(*(post(agent, one) for one in asked[some]))
        assert {reply.status for reply in replies} == {200}, SEED
        for reply, arguments in zip(replies, expected[some], strict=True):
            await sync_to_async(decide)(as_alice, UUID(reply.call_id), arguments)

        async def done() -> bool:
            return not await Call.objects.exclude(state=State.SUCCEEDED).aexists()

        await until(done, seconds=60)

    assert Counter(received(upstream)) == Counter(expected)


def received(upstream: Recorder) -> Iterator[bytes]:
    for one in upstream.calls:
        rest = one.body.partition(b'"arguments":')[2]
        yield rest.rpartition(b',"_meta"')[0]


@HOW_MANY
async def test_what_could_be_read_in_two_ways_is_refused_at_the_door(
    play: Play, upstream: Recorder, how_many: int
) -> None:
    agent, documents = play(), Documents(SEED)
    drawn = [documents.wrong() for _ in range(how_many * WRONG_OF_TEN // 10)]

    for start in range(0, len(drawn), AT_ONCE):
        some = drawn[start : start + AT_ONCE]
        replies = await asyncio.gather(*(post(agent, wrong.body) for wrong in some))
        for wrong, reply in zip(some, replies, strict=True):
            assert reply.status == 400, (SEED, wrong)
            assert wrong.said in reply.error["message"], (SEED, wrong, reply.error)

    assert {wrong.kind for wrong in drawn} == set(WRONG)
    assert upstream.received == []
    assert not await Call.objects.aexists()


@pytest.mark.parametrize("around", [b"\xef\xbb\xbf%b", b"%b{}", b"%b\n1", b"\x00%b", b"%b\x00"])
async def test_nothing_stands_around_a_message(
    agent: Agent, upstream: Recorder, around: bytes
) -> None:
    message = await agent.message("tools/call", {"name": "rec.say", "arguments": {}})

    reply = await agent.post(around % orjson.dumps(message), headers=agent.headers(message))

    assert reply.status == 400
    assert reply.error["message"]
    assert upstream.received == []
