"""REST's JSON: taken only where all parsers agree, and given with the very bytes of results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import orjson
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError, UnsupportedMediaType
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from core import strict_json
from core.strict_json import Ambiguous
from gateway.http.request_checks import MAX_BODY


class BodyTooLarge(APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = f"The body may be {MAX_BODY} bytes long at most."


class StrictParser(BaseParser):
    """Gives the members, and under "raw" the characters of one of them as they were written."""

    media_type = "application/json"
    raw_member = "arguments"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        body = _read(stream, media_type, (parser_context or {})["request"])
        return _members(body, self.raw_member)


class ObjectParser(BaseParser):
    """Gives the members of one JSON object; none of no body."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        body = _read(stream, media_type, (parser_context or {})["request"])
        return _object(body) if body else {}


def _read(stream: IO[Any], media_type: str | None, request: Request) -> bytes:
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise UnsupportedMediaType(media_type or "", "Send the body without Content-Encoding.")
    body: bytes = stream.read(MAX_BODY + 1)
    if len(body) > MAX_BODY:
        raise BodyTooLarge
    return body


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = strict_json.loads(body)
    except Ambiguous as error:
        raise ParseError(str(error)) from error
    if not isinstance(value, dict):
        raise ParseError("The body must be one JSON object.")
    return value


def _members(body: bytes, raw_member: str) -> dict[str, Any]:
    value, raw = _object(body), b"{}"
    if value.get(raw_member) is not None:
        text = body.decode()
        start, end = strict_json.spans(text)[raw_member]
        raw = strict_json.one_line(text[start:end])
    return {**value, "raw": raw}


class Renderer(BaseRenderer):
    """orjson, so that what is JSON already stays as it is."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return b"" if data is None else orjson.dumps(data)
