"""The sign-in of a server: whose credential its calls carry, and how that is got."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.rest.v1 import forms, plain
from gateway.rest.v1.members import Members, NameList, StrictChoice, Text
from gateway.rest.v1.servers import OneServer
from gateway.rest.v1.views import RowView, caller_of
from registry.credentials import clients
from registry.forms.sign_in import ServerSignInForm
from registry.models import Server, ServerClient


class SignInBody(Members):
    """The whole setting. Another one than before deletes every credential of the server."""

    mode = StrictChoice(choices=Server.SignIn.values, allow_blank=True)
    client_id = Text(required=False, allow_blank=True, max_length=2000)
    client_secret = Text(required=False, allow_blank=True, max_length=2000, write_only=True)
    scopes = NameList(required=False)
    header = Text(required=False, allow_blank=True, max_length=100)


class SignInAnswer(serializers.Serializer[Any]):
    mode = serializers.ChoiceField(choices=Server.SignIn.values, allow_blank=True)
    client_id = serializers.CharField()
    registration = serializers.ChoiceField(
        choices=ServerClient.Registration.values, allow_blank=True
    )
    has_client_secret = serializers.BooleanField()
    issuer = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    header = serializers.CharField()
    redirect_uri = serializers.CharField()


class SignInOfServer(RowView):
    scopes = {"GET": ("registry.view_server",), "PUT": ("registry.change_server",)}
    bodies = {"PUT": SignInBody}
    answers = {"GET": SignInAnswer, "PUT": SignInAnswer}
    # As the authorization server is found, and registers the client.
    volatile = ("client_id", "registration", "issuer")
    row = OneServer.row

    def plain(self, row: Server) -> dict[str, Any]:
        return plain.server_sign_in(row)

    def unseen(self, row: Server) -> dict[str, Any]:
        client = ServerClient.objects.filter(server=row).first()
        given = client.client_id if client and client.registration == "given" else ""
        sealed = (client and client.sealed_secret) or b""
        return {"given": given, "sealed": bytes(sealed).hex()}

    def put(self, request: Request, slug: str) -> Response:
        return self.changed(request, lambda server: self._set(request, server), slug=slug)

    def _set(self, request: Request, server: Server) -> Response:
        body = self.body(request)
        written = {**body, "sign_in": body["mode"], "scopes": " ".join(body.get("scopes", []))}
        form = ServerSignInForm(written)
        forms.check(form, {"sign_in": "mode"})
        clients.set_sign_in(server, **form.wanted, by=caller_of(request), if_changed=True)
        return self.answer(server)
