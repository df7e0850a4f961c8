"""How REST learns which agent or service account asks. People's sessions open no door here."""

from __future__ import annotations

from django.db import OperationalError
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import APIException, AuthenticationFailed
from rest_framework.request import Request

from accounts import rejected_tokens, service_accounts, tokens
from accounts.agent_addresses import note_address
from accounts.models import Agent, ServiceAccount
from accounts.rejected_tokens import LOOK_UPS
from accounts.service_accounts import ServiceBearer
from accounts.services import note_used
from accounts.tokens import Bearer
from core.client_address import client_address
from core.english import gettext as _


class CannotKnow(APIException):
    """Whether the token was revoked cannot be known now, so nobody is let in."""

    status_code = 503
    default_detail = _("Tokens cannot be checked at the moment. Try again soon.")
    default_code = "unavailable"
    # Seconds, for the header Retry-After.
    wait = 1


def _bearer_token(request: Request) -> str | None:
    scheme, _space, token = get_authorization_header(request).partition(b" ")
    return token.strip().decode("latin-1") if scheme.lower() == b"bearer" else None


class _TokenAuthentication(BaseAuthentication):
    def authenticate_header(self, request: Request) -> str:
        # Source: RFC 6750, 3.1: no error where no token was sent.
        error = ', error="invalid_token"' if _bearer_token(request) else ""
        return f'Bearer realm="countersign"{error}'


class AgentTokenAuthentication(_TokenAuthentication):
    """`request.user` is the Agent (no person's permissions), `request.auth` its Bearer."""

    def authenticate(self, request: Request) -> tuple[Agent, Bearer] | None:
        token = _bearer_token(request)
        if token is None:
            return None
        try:
            return self._look_up(token, client_address(request._request))
        except OperationalError as error:
            raise CannotKnow from error

    def _look_up(self, token: str, address: str) -> tuple[Agent, Bearer]:
        bearer = tokens.look_up(token)
        if bearer is None:
            if not LOOK_UPS.wait_s(address):
                rejected_tokens.note(token, address)
            # One answer for garbage, expired, revoked and disabled: it teaches a thief nothing.
            raise AuthenticationFailed(_("This agent token is not valid."))
        if bearer.requires_dpop:
            raise AuthenticationFailed(
                _("This agent's tokens must be bound to a key (DPoP), which REST does not take.")
            )
        if address:
            note_address(bearer.agent_id, address)
        note_used({bearer.token_id: address})
        return Agent.objects.select_related("owner").get(pk=bearer.agent_id), bearer


class ServiceTokenAuthentication(_TokenAuthentication):
    """`request.user` is the ServiceAccount, `request.auth` its ServiceBearer."""

    def authenticate(self, request: Request) -> tuple[ServiceAccount, ServiceBearer] | None:
        token = _bearer_token(request)
        if token is None:
            return None
        try:
            bearer = service_accounts.authenticate(token)
            if bearer is not None:
                service_accounts.note_used(bearer.token, client_address(request._request))
        except OperationalError as error:
            raise CannotKnow from error
        if bearer is None:
            raise AuthenticationFailed(_("This service account's token is not valid."))
        return bearer.token.account, bearer


class ReaderTokenAuthentication(_TokenAuthentication):
    """An agent or a service account, whichever the token is of."""

    def authenticate(
        self, request: Request
    ) -> tuple[Agent, Bearer] | tuple[ServiceAccount, ServiceBearer] | None:
        token = _bearer_token(request)
        if token is not None and tokens.parse(token, tokens.SERVICE):
            return ServiceTokenAuthentication().authenticate(request)
        return AgentTokenAuthentication().authenticate(request)
