"""One change for one idempotency key, however often its request arrives.

Source: draft-ietf-httpapi-idempotency-key-header-07. The key is kept with the change, in one
transaction: what failed kept none and may be sent again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256

import orjson
from django.db import transaction
from rest_framework import status
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import ServiceAccount
from core.english import gettext as _
from gateway.models import AnsweredRequest

_KEY = re.compile(r"[\x21-\x7e]{1,200}")
_HEADERS = ("Location", "ETag")


class OtherRequest(APIException):
    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_detail = _("This idempotency key belongs to another request.")


def once(
    request: Request, account: ServiceAccount, work: Callable[[], Response], *, secret: str = ""
) -> Response:
    """Does `work` in a transaction, or repeats its answer. `secret`: a member that no repetition
    has, since it is shown once."""
    key = _key(request)
    with transaction.atomic():
        kept = _claim(request, account, key) if key else None
        if kept is not None and kept.status:
            return _replay(kept)
        answer = work()
        if answer.status_code >= 400:
            transaction.set_rollback(True)
        elif kept is not None:
            _keep(kept, answer, secret)
    return answer


def answered(request: Request, account: ServiceAccount) -> Response | None:
    """The answer that the request's key has by now. Raises OtherRequest."""
    key = _key(request)
    kept = AnsweredRequest.objects.answer_to(account, key) if key else None
    if kept is None:
        return None
    _check(kept, _digest(request))
    return _replay(kept)


def _key(request: Request) -> str:
    given = request.headers.get("Idempotency-Key")
    key = (given or "").strip()
    if given is not None and not _KEY.fullmatch(key):
        said = _("Idempotency-Key is 1 to 200 visible ASCII characters.")
        raise ValidationError({"detail": said})
    return key


def _claim(request: Request, account: ServiceAccount, key: str) -> AnsweredRequest:
    """Waits for another request with the key, which is then answered already or failed."""
    digest = _digest(request)
    AnsweredRequest.objects.outdated().filter(account=account, key=key).delete()
    kept, _made = AnsweredRequest.objects.get_or_create(
        account=account, key=key, defaults={"request_digest": digest}
    )
    _check(kept, digest)
    return kept


def _check(kept: AnsweredRequest, digest: bytes) -> None:
    if bytes(kept.request_digest) != digest:
        raise OtherRequest


def _digest(request: Request) -> bytes:
    body = orjson.dumps(request.data, option=orjson.OPT_SORT_KEYS)
    return sha256(f"{request.method} {request.path}\n".encode() + body).digest()


def _keep(kept: AnsweredRequest, answer: Response, secret: str) -> None:
    shown = {**answer.data, secret: None} if secret else answer.data
    kept.status, kept.body = answer.status_code, b"" if shown is None else orjson.dumps(shown)
    kept.headers = {name: answer[name] for name in _HEADERS if name in answer}
    kept.save()


def _replay(kept: AnsweredRequest) -> Response:
    headers = {**kept.headers, "Idempotency-Replayed": "true"}
    body = bytes(kept.body)
    return Response(orjson.Fragment(body) if body else None, kept.status, headers=headers)
