"""A server that is an HTTP API: each call is one request, made of the reviewed definition.

An API speaks no MCP: a status is its answer. Only where a status says that nobody knows (502, 504)
the outcome of what may have changed something is unknown.
"""

import base64
import re
from collections.abc import Mapping

import orjson
from yarl import URL

from core.connection_pool import ConnectionPool
from core.kept_english import gettext as _
from core.outbound import AddressRefused
from registry.upstream.session.calling import CancelScope, UpstreamCall
from registry.upstream.transport.api_request import ApiRequest, render
from registry.upstream.transport.http_request import (
    HttpRequest,
    PlainAnswer,
    exchange_plainly,
    head_of,
)
from registry.upstream.values import (
    CallReply,
    CancelledUpstream,
    NotSent,
    RefusedByServer,
    Target,
    UnclearStatus,
)

# A gateway's: what stands behind it may have acted.
_UNCLEAR = {502, 504}
_JSON = re.compile(r"application/(?:json|[a-z0-9.+-]+\+json)").fullmatch
_TEXT = re.compile(
    r"text/.*|application/(?:xml|javascript|yaml|graphql|x-www-form-urlencoded|[a-z0-9.+-]+\+xml)"
).fullmatch
_ERROR_LENGTH = 20_000


class ApiServer:
    def __init__(self, target: Target, pool: ConnectionPool) -> None:
        self._target, self._pool = target, pool
        try:
            self._url: URL = pool.guard.check_url(target.url)
        except AddressRefused as error:
            raise NotSent(str(error)) from error

    async def call(self, call: UpstreamCall) -> CallReply:
        if call.request_plan is None:
            raise NotSent(
                _("The definition names no request: publish its newest version."), status=400
            )
        rendered = render(call.request_plan, self._url.raw_path, call.arguments)
        request = self._request(rendered, call)
        try:
            with CancelScope(call.cancel, None, call.limits.cancel_grace_s):
                await call.note_send()
                answer = await exchange_plainly(self._pool, request)
        except CancelledUpstream:
            if request.left:
                raise
            raise NotSent(_("The call was withdrawn before it was sent.")) from None
        if answer.status == 401 and call.signs_in:
            said = _("The API did not accept the credential (HTTP 401).")
            raise RefusedByServer(said, 401, answer.headers.get(b"www-authenticate"))
        if answer.status in _UNCLEAR and rendered.method != "GET":
            said = _("The API answered with HTTP %d: it may have acted or not.")
            raise UnclearStatus(said % answer.status, answer.status)
        return _reply(answer, str(self._url.join(URL(rendered.target, encoded=True))), call)

    def _request(self, rendered: ApiRequest, call: UpstreamCall) -> HttpRequest:
        headers = {"User-Agent": "Countersign", "Accept-Encoding": "identity"}
        own = {name.lower() for name in self._target.headers}
        # The operator's come before the agent's.
        headers |= {name: v for name, v in rendered.headers.items() if name.lower() not in own}
        headers |= self._target.headers
        head = head_of(rendered.method, rendered.target, self._url, headers)
        origin = self._pool.origin_of(self._url)
        request = HttpRequest(0, origin, head, rendered.body, call.limits)
        request.is_bare = rendered.method in ("GET", "DELETE") and not rendered.body
        return request


def _reply(answer: PlainAnswer, uri: str, call: UpstreamCall) -> CallReply:
    kind = answer.headers.get(b"content-type").partition(";")[0].strip().lower()
    if answer.headers.get(b"content-encoding", "identity") != "identity":
        return _failed(_("The API answered compressed, though it was asked not to."))
    if not 200 <= answer.status < 300:
        return _failed(_error_text(answer))
    content: list[dict[str, object]] = [_content(answer, kind, uri)]
    if 'rel="next"' in (link := answer.headers.get(b"link")):
        content.append({"type": "text", "text": f"Link: {link}"})
    result = orjson.dumps({"content": content, "isError": False})
    assert call.request_plan is not None
    form = call.request_plan.get("result")
    if form and _JSON(kind) and (structured := _structured(answer.body, form)):
        result = result[:-1] + b',"structuredContent":' + structured + b"}"
    return CallReply(result, is_error=False, kind="complete")


def _content(answer: PlainAnswer, kind: str, uri: str) -> dict[str, object]:
    if not answer.body:
        return {"type": "text", "text": f"HTTP {answer.status}, without content."}
    if _JSON(kind) or _TEXT(kind) or not kind:
        return {"type": "text", "text": _decoded(answer)}
    data = base64.b64encode(answer.body).decode()
    family = kind.partition("/")[0]
    if family in ("image", "audio"):
        return {"type": family, "mimeType": kind, "data": data}
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "blob": data}}


def _structured(body: bytes, form: str) -> bytes:
    """The value as the result's schema has it; nothing where it is no such JSON."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return b""
    if form == "wrapped":
        return b'{"result":' + body + b"}"
    return body if isinstance(value, Mapping) else b""


def _decoded(answer: PlainAnswer) -> str:
    said = re.search(r"charset=\"?([\w.:-]+)", answer.headers.get(b"content-type"))
    try:
        return answer.body.decode(said[1] if said else "utf-8", errors="replace")
    except LookupError:
        return answer.body.decode(errors="replace")


def _error_text(answer: PlainAnswer) -> str:
    if location := answer.headers.get(b"location"):
        return f"HTTP {answer.status}: it redirects to {location}, which is not followed."
    said = _decoded(answer)[:_ERROR_LENGTH].strip()
    return f"HTTP {answer.status}: {said}" if said else f"HTTP {answer.status}."


def _failed(text: str) -> CallReply:
    content = [{"type": "text", "text": text}]
    return CallReply(orjson.dumps({"content": content, "isError": True}), True, "complete")
