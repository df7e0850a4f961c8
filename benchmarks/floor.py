"""What is left of a governed call when nothing is governed: its two commits and its three hops.

`python -m benchmarks.floor PORT SERVER-URL` answers every request as a call of the tool `echo` that
is allowed: no token, rule, schema or revision is looked at, and nothing can go wrong. The rows, the
statements, the front and the connections are the product's own, so that no gateway built of these
parts can be faster.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from typing import Any

import django
import orjson
import uvicorn

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.conf import settings  # noqa: E402

from accounts.models import Agent  # noqa: E402
from audit.services import SYSTEM  # noqa: E402
from calls.record.new_call import NewCall, OpenedCall  # noqa: E402
from calls.record.states import Executed, State  # noqa: E402
from calls.record.transitions import Outcome, ending  # noqa: E402
from calls.record.usual_calls import SUCCEED  # noqa: E402
from config.front import Front  # noqa: E402
from core.connection_pool import ConnectionPool  # noqa: E402
from core.ids import uuid7  # noqa: E402
from core.journal import GroupCommit  # noqa: E402
from core.outbound import Guard  # noqa: E402
from gateway.process.new_call_cache import NewCallTemplate  # noqa: E402
from gateway.protocol.header_cache import BODY  # noqa: E402
from registry.models import Tool  # noqa: E402
from registry.upstream import wire  # noqa: E402
from registry.upstream.transport.http_request import head  # noqa: E402
from registry.upstream.values import USUAL  # noqa: E402

OK = b"200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
MARK = b'"result":'


class Floor:
    def __init__(self, url: str) -> None:
        self._links = ConnectionPool(Guard(settings.UPSTREAM_NETWORKS))
        checked = self._links.guard.check_url(url)
        self._origin = self._links.origin_of(checked)
        self._head = head("POST", checked, {"Content-Type": "application/json"})
        self._journal = GroupCommit(settings.DATABASE_URL)
        self._usual = usual()
        self._ids = count(1)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = scope.get(BODY) or (await receive())["body"]
        request = orjson.loads(body)
        call, arguments = uuid7(), orjson.dumps(request["params"]["arguments"])
        (row,) = await self._journal.write(self._usual.written(call, arguments, ""))
        if row and (names := OpenedCall(*row).names):
            self._usual.learn(names)
        result = await self._sent(arguments)
        outcome = Outcome(State.SUCCEEDED, "", Executed.YES, result)
        await self._journal.write((SUCCEED, ending(call, 1, outcome, SYSTEM)), within=None)
        answer = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (request["id"], result)
        if BODY in scope:
            send.whole(OK % len(answer), answer)
        else:
            fields = [(b"content-length", b"%d" % len(answer))]
            await send({"type": "http.response.start", "status": 200, "headers": fields})
            await send({"type": "http.response.body", "body": answer})

    async def _sent(self, arguments: bytes) -> bytes:
        body = wire.call(next(self._ids), b'"echo"', arguments, wire.meta(True))
        connection = await self._links.connect(self._origin, USUAL)
        await connection.ask(
            self._head + b"\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body), USUAL.idle_s
        )
        reply = await connection.readany()
        connection.release()
        return reply[reply.index(MARK) + len(MARK) : -1]


def usual() -> NewCallTemplate:
    tool = Tool.objects.for_catalogue().get(name="echo")
    agent = Agent.objects.select_related("owner").get()
    assert tool.published is not None
    opening = NewCall(
        id=uuid7(),
        agent_id=agent.pk,
        agent=agent.name,
        token_id=None,
        person_id=agent.owner.pk,
        person=agent.owner.username,
        toolset="desk",
        server_id=tool.server.pk,
        server=tool.server.slug,
        tool_id=tool.pk,
        definition_id=tool.published.pk,
        definition_digest=tool.published.digest,
        tool_name=tool.exposed_name,
        arguments=b"{}",
        origin="mcp",
        mode="inline",
        effect="allow",
        rule_id=None,
        rule="allow all",
        reason="Rule “allow all” allows it.",
        state=State.RUNNING,
        lease_owner="floor",
    )
    return NewCallTemplate(opening.line())


if __name__ == "__main__":
    uvicorn.run(
        Floor(sys.argv[2]),
        port=int(sys.argv[1]),
        loop="uvloop",
        http=Front,
        interface="asgi3",
        lifespan="off",
        access_log=False,
        log_level="warning",
    )
