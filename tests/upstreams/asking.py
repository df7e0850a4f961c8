"""The recorder as a server that asks in the middle of a call, in either era."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tests.upstreams.recorder import OBJECT, TOOLS, Received, Recorder

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORM = {
    "method": "elicitation/create",
    "params": {"message": "What is your name?", "requestedSchema": NAME},
}
_PARAMS = {"mode": "url", "message": "Sign in.", "url": "https://example.com/in?s=1"}
LINK = {"method": "elicitation/create", "params": _PARAMS}
NAMED_LINK = {
    "method": "elicitation/create",
    "params": {**_PARAMS, "elicitationId": "n1"},
}
PLAIN_LINK = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Sign in.", "url": "http://example.com/in"},
}
SAMPLE = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Capital of France?"}}],
        "maxTokens": 100,
    },
}
ROOTS = {"method": "roots/list", "params": {}}
# By tool: rounds of questions by their keys.
QUESTIONS: dict[str, list[dict[str, Any]]] = {
    "ask": [{"who": FORM}],
    "twice": [{"who": FORM}, {"who": FORM}],
    "link": [{"in": LINK}],
    "named": [{"in": NAMED_LINK}],
    "plain": [{"in": PLAIN_LINK}],
    "sample": [{"capital": SAMPLE}],
    "roots": [{"folders": ROOTS}],
    "many": [{"who": FORM, "capital": SAMPLE, "folders": ROOTS}],
    # Nothing to answer: it only wants to be asked again.
    "later": [{}, {}],
}
# Of 2025-11-25: this page has to be opened before the same is asked for again.
GATED = {"mode": "url", "elicitationId": "e1", "message": "Sign in.", "url": "https://a.example/1"}
ASKING = TOOLS | {name: {"inputSchema": OBJECT} for name in (*QUESTIONS, "gated")}
NO_SESSION = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}'
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
EVENTS = [(b"content-type", b"text/event-stream")]


@dataclass
class Asking(Recorder):
    legacy: bool = False
    # So often the legacy server answers "gated" only that a page has to be opened first.
    gates: int = 1
    # By tool, what a client must be able to be asked to be shown it.
    shy: dict[str, str] = field(default_factory=dict)
    # What each greeting declared, by session.
    greeted: dict[str, Any] = field(default_factory=dict)
    # Pages that it says are done with, on the stream beside each session.
    done: list[str] = field(default_factory=list)
    beside: int = 0
    _posted: dict[Any, "asyncio.Future[Any]"] = field(default_factory=dict)

    def __exit__(self, *error: object) -> None:
        self._give_up()
        # Nor do the streams beside its sessions.
        self.legacy = False
        super().__exit__(*error)

    def _give_up(self) -> None:
        """What nobody answered: or its stream would be open for ever."""
        for posted in list(self._posted.values()):
            nothing = {"error": {"code": 0}}
            posted.get_loop().call_soon_threadsafe(_set, posted, nothing)
        self._posted.clear()

    def reset(self) -> None:
        super().reset()
        self._give_up()
        self.tools = ASKING
        self.legacy = False
        self.gates = 1
        self.shy = {}
        self.greeted.clear()
        self.done = []

    @property
    def declared(self) -> list[Any]:
        """With each call of a tool, what its agent can be asked."""
        if self.legacy:
            sessions = [r.headers.get("mcp-session-id") for r in self.calls]
            return [self.greeted[one] for one in sessions if one and one in self.greeted]
        return [_without_tasks(r.message["params"]["_meta"][CAPABILITIES]) for r in self.calls]

    @property
    def calls(self) -> list[Received]:
        return [r for r in self.received if r.message.get("method") == "tools/call"]

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {k.decode(): v.decode() for k, v in scope["headers"]}
        session = headers.get("mcp-session-id")
        if session is not None and not (self.legacy and session in self.greeted):
            await _say(send, 404, b"")
            return
        if scope["method"] == "DELETE":
            await _say(send, 200, b"")
            return
        if scope["method"] == "GET" and self.legacy:
            await self._beside(receive, send)
            return
        if scope["method"] == "GET":
            await _say(send, 405, b"")
            return
        if not self.legacy:
            await super().app(scope, receive, send)
            return
        received = Received(headers, (await receive())["body"])
        self.received.append(received)
        await self._of_a_session(received, receive, send)

    def shown(self, received: Received) -> dict[str, dict[str, Any]]:
        """Without the tools that are only for clients with what they are `shy` of."""
        if self.legacy:
            can = self.greeted[received.headers["mcp-session-id"]]
        else:
            can = received.message["params"]["_meta"][CAPABILITIES]
        return {
            name: tool for name, tool in self.tools.items() if self.shy.get(name, "") in ("", *can)
        }

    def capabilities(self) -> dict[str, Any]:
        return {"tools": {}}

    async def _of_a_session(self, received: Received, receive: Any, send: Any) -> None:
        message = received.message
        match message.get("method"):
            case "initialize":
                await self._greet(message, send)
            case _ if "mcp-session-id" not in received.headers:
                await _say(send, 400, NO_SESSION)
            case "tools/list":
                listed = [{"name": name, **tool} for name, tool in self.shown(received).items()]
                await self._result(send, received, json.dumps({"tools": listed}).encode())
            case "tools/call" if message["params"]["name"] == "gated" and self.gates:
                self.gates -= 1
                named = message["params"]["arguments"].get("page", "e1")
                page = {**GATED, "elicitationId": named}
                error = {"code": -32042, "message": "Sign in.", "data": {"elicitations": [page]}}
                reply = {"jsonrpc": "2.0", "id": message["id"], "error": error}
                await _say(send, 200, json.dumps(reply).encode())
            case "tools/call":
                await self._ask_on_stream(received, send)
            case None:
                self._posted.pop(message["id"]).set_result(message)
                await _say(send, 202, b"")
            case _:
                await _say(send, 202, b"")

    async def _greet(self, message: Any, send: Any) -> None:
        session = uuid4().hex
        self.greeted[session] = message["params"]["capabilities"]
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": self.capabilities(),
            "serverInfo": {"name": "asking", "version": "1"},
        }
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        await _say(send, 200, json.dumps(reply).encode(), session=session)

    async def _ask_on_stream(self, received: Received, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        answers = []
        for round_ in QUESTIONS.get(received.message["params"]["name"], []):
            for key, request in round_.items():
                answers.append({key: await self._answer(request, send)})
        text = {"type": "text", "text": json.dumps(answers)}
        reply = {"jsonrpc": "2.0", "id": received.message["id"], "result": {"content": [text]}}
        await _event(send, reply, more=False)

    async def _beside(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        await send({"type": "http.response.body", "body": b": here\n\n", "more_body": True})
        gone, told = asyncio.ensure_future(receive()), 0
        self.beside += 1
        while not gone.done() and self.legacy:
            for name in self.done[told:]:
                method = "notifications/elicitation/complete"
                note = {"jsonrpc": "2.0", "method": method, "params": {"elicitationId": name}}
                await _event(send, note, more=True)
            told = len(self.done)
            await asyncio.sleep(0.01)
        self.beside -= 1
        if not gone.done():
            gone.cancel()
            await send({"type": "http.response.body", "body": b""})

    async def _answer(self, request: Any, send: Any) -> Any:
        request_id = f"q{len(self.received)}"
        posted = self._posted[request_id] = asyncio.get_running_loop().create_future()
        await _event(send, {"jsonrpc": "2.0", "id": request_id, **request}, more=True)
        message = await posted
        return message["result"] if "result" in message else {"error": message["error"]["code"]}

    async def _call(self, received: Received, receive: Any, send: Any) -> None:
        params = received.message["params"]
        if params["name"] not in QUESTIONS:
            await super()._call(received, receive, send)
            return
        rounds = QUESTIONS[params["name"]]
        state = json.loads(params.get("requestState", "[]"))
        answers = state + ([params["inputResponses"]] if "inputResponses" in params else [])
        if not rounds[0] and "requestState" in params:
            answers = [*state, {}]
        if len(answers) == len(rounds):
            text = {"type": "text", "text": json.dumps(answers)}
            result: dict[str, Any] = {"resultType": "complete", "content": [text]}
        else:
            # Spelled so that writing it anew would change it.
            result = {"resultType": "input_required", "requestState": json.dumps(answers) + " "}
            if rounds[len(answers)]:
                result["inputRequests"] = rounds[len(answers)]
        await self._result(send, received, json.dumps(result).encode())


def _set(posted: "asyncio.Future[Any]", value: Any) -> None:
    if not posted.done():
        posted.set_result(value)


def _without_tasks(capabilities: dict[str, Any]) -> dict[str, Any]:
    """Tasks are followed by the gateway itself, whatever the agent can do."""
    return {name: value for name, value in capabilities.items() if name != "extensions"}


async def _say(send: Any, status: int, body: bytes, *, session: str = "") -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    if session:
        headers.append((b"mcp-session-id", session.encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _event(send: Any, message: Any, *, more: bool) -> None:
    body = b"data: %b\n\n" % json.dumps(message).encode()
    await send({"type": "http.response.body", "body": body, "more_body": more})
