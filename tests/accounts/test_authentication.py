"""REST knows agents by their tokens, and people by nothing at all."""

from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIClient
from rest_framework.views import APIView

from accounts import services, tokens
from accounts.models import Agent, AgentToken, User


class Mirror(APIView):
    """The smallest view behind the authentication that every REST view has."""

    def get(self, request: Request) -> Response:
        bearer: Any = request.auth
        return Response({"agent": str(request.user), "person": bearer.person_name})


urlpatterns = [path("mirror/", Mirror.as_view())]
pytestmark = [pytest.mark.urls(__name__), pytest.mark.django_db]


def _get(authorization: str | None) -> Any:
    headers = {} if authorization is None else {"Authorization": authorization}
    return APIClient().get("/mirror/", headers=headers)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_it_knows_the_agent(scout_token: str, scheme: str) -> None:
    response = _get(f"{scheme} {scout_token}")

    assert response.json() == {"agent": "scout", "person": "bob"}


@pytest.mark.parametrize("sent", [None, "", "Bearer", "Bearer ", "Basic Ym9iOmJvYg==", "Bearer é"])
def test_it_asks_for_a_token(scout_token: str, sent: str | None) -> None:
    response = _get(sent)

    assert response.status_code == 401
    error = ', error="invalid_token"' if sent == "Bearer é" else ""
    assert response["WWW-Authenticate"] == f'Bearer realm="countersign"{error}'


def test_every_wrong_token_gets_the_same_answer(scout: Agent, bob: User, scout_token: str) -> None:
    unknown = _get(f"Bearer {tokens.make()}")
    garbage = _get("Bearer csa_")
    services.revoke_token(AgentToken.objects.get(), by=bob)
    revoked = _get(f"Bearer {scout_token}")

    answers = {
        (r.status_code, r.content, r["WWW-Authenticate"]) for r in (unknown, garbage, revoked)
    }
    assert len(answers) == 1
    assert unknown.status_code == 401


def test_a_signed_in_person_is_nobody_here(client: Client, alice: User) -> None:
    client.force_login(alice)

    assert client.get("/mirror/").status_code == 401


def test_it_lets_nobody_in_when_it_cannot_know(scout_token: str) -> None:
    def away(*_: object) -> None:
        raise OperationalError("the database went away")

    with connection.execute_wrapper(away):
        response = _get(f"Bearer {scout_token}")

    assert response.status_code == 503
