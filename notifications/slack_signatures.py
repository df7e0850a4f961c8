"""Signatures of requests that come from Slack. Source: docs.slack.dev, Verifying requests."""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import time
from collections.abc import Mapping
from datetime import timedelta

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.utils import timezone

from core.english import gettext as _
from core.errors import CountersignError
from notifications import slack_secrets
from notifications.models import SlackApp, SlackRequest
from notifications.outcomes import Impossible

log = logging.getLogger(__name__)

TOLERANCE_S = 300
VERSION = "v0"
_SIGNATURE = re.compile(r"v0=[0-9a-f]{64}")
# Longer than a timestamp is accepted, before and after.
KEPT = timedelta(seconds=3 * TOLERANCE_S)


class SlackSignatureInvalid(CountersignError):
    """The request is not one of Slack's, or not a new one; says why."""


def body_of(request: HttpRequest) -> bytes:
    """Raises SlackSignatureInvalid for more than Slack ever sends."""
    try:
        return request.body
    except RequestDataTooBig:
        raise SlackSignatureInvalid(_("The request is too large for one of Slack's.")) from None


def check(headers: Mapping[str, str], body: bytes) -> list[SlackApp]:
    """The apps whose secret signed it: several, where one app sends to several channels. Raises
    SlackSignatureInvalid."""
    given = headers.get("X-Slack-Signature", "")
    moment = headers.get("X-Slack-Request-Timestamp", "")
    if not _SIGNATURE.fullmatch(given) or not re.fullmatch(r"[0-9]{1,12}", moment):
        raise SlackSignatureInvalid(_("The request has no signature of Slack's."))
    apps = [one for one in SlackApp.objects.enabled() if _is_by(one, given, moment, body)]
    if not apps:
        raise SlackSignatureInvalid(
            _("The signature is not by the signing secret of a Slack app here.")
        )
    if abs(time.time() - int(moment)) > TOLERANCE_S:
        raise SlackSignatureInvalid(_("The request was signed more than five minutes ago."))
    if not _is_new(given):
        raise SlackSignatureInvalid(_("The request came before: it is a replay."))
    return apps


def sign(secret: str, moment: str, body: bytes) -> str:
    signed = f"{VERSION}:{moment}:".encode() + body
    return f"{VERSION}={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"


def _is_by(app: SlackApp, given: str, moment: str, body: bytes) -> bool:
    try:
        secret = slack_secrets.signing_secret(app)
    except Impossible as error:
        log.warning("Slack app %s: %s", app.pk, error)
        return False
    return hmac.compare_digest(sign(secret, moment, body), given)


def _is_new(signature: str) -> bool:
    """The row decides, whichever process has it."""
    SlackRequest.objects.filter(at__lt=timezone.now() - KEPT).delete()
    _row, made = SlackRequest.objects.get_or_create(signature=signature)
    return made
