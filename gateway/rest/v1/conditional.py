"""Versions of what the API shows, and changes of exactly the version that was read.

Source: RFC 9110, 8.8.3 and 13; RFC 6585, 3.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any

import orjson
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.request import Request

from core.english import gettext as _

_TAGS = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')


class NoVersion(APIException):
    status_code = status.HTTP_428_PRECONDITION_REQUIRED
    default_detail = _("Send If-Match with the ETag that you read: others may have changed it.")


class OtherVersion(APIException):
    status_code = status.HTTP_412_PRECONDITION_FAILED
    default_detail = _("It was changed since you read it. Read it again.")


def etag(plain: Mapping[str, Any], *, without: Collection[str] = ()) -> str:
    """A strong tag of all members but those that change by themselves."""
    settled = {name: value for name, value in plain.items() if name not in without}
    written = orjson.dumps(settled, option=orjson.OPT_SORT_KEYS)
    return f'"{sha256(written).hexdigest()[:32]}"'


def of_selection(tag: str, names: Collection[str] | None) -> str:
    """The tag of the members that `?fields=` chose; None: of all members."""
    return tag if names is None else f'{tag[:-1]}.{".".join(sorted({*names}))}"'


def _whole(tag: str) -> str:
    """The tag of all members: whoever read some of them read that version."""
    return re.sub(r'\.[^"]*"\Z', '"', tag)


def check(request: Request, tag: str) -> None:
    """Raises NoVersion and OtherVersion. `*` is no version: whoever sends it read none."""
    given = request.headers.get("If-Match", "").strip()
    if not given or given == "*":
        raise NoVersion
    if tag not in map(_whole, _TAGS.findall(given)):
        raise OtherVersion


def is_known(request: Request, tag: str) -> bool:
    given = _TAGS.findall(request.headers.get("If-None-Match", ""))
    return tag in (one.removeprefix("W/") for one in given)
