"""How REST learns which agent asks. People's sessions open no door here."""

from __future__ import annotations

from django.db import OperationalError
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import APIException, AuthenticationFailed
from rest_framework.request import Request

from accounts import tokens
from accounts.models import Agent
from accounts.tokens import Bearer
from core.english import gettext as _


class CannotKnow(APIException):
    """Whether the token was revoked cannot be known now, so nobody is let in."""

    status_code = 503
    default_detail = _("Tokens cannot be checked at the moment. Try again soon.")
    default_code = "unavailable"


class AgentTokenAuthentication(BaseAuthentication):
    """`request.user` is the Agent (no person's permissions), `request.auth` its Bearer."""

    def authenticate(self, request: Request) -> tuple[Agent, Bearer] | None:
        scheme, _space, token = get_authorization_header(request).partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        try:
            return self._look_up(token.strip().decode("latin-1"))
        except OperationalError as error:
            raise CannotKnow from error

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="countersign"'

    def _look_up(self, token: str) -> tuple[Agent, Bearer]:
        bearer = tokens.look_up(token)
        if bearer is None:
            # One answer for garbage, expired, revoked and disabled: it teaches a thief nothing.
            raise AuthenticationFailed(_("This agent token is not valid."))
        return Agent.objects.select_related("owner").get(pk=bearer.agent_id), bearer
