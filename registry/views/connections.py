"""Accounts of people, and of the installation, at servers: connected and disconnected."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as translate
from django.views.decorators.http import require_safe

from accounts import refusals
from accounts.http import ConsoleRequest
from accounts.models import User
from core.english import gettext as _
from core.errors import CountersignError
from core.http import page
from registry.credentials import authorization, clients, credential_store, links
from registry.credentials.authorization import AnswerRejected
from registry.credentials.authorization_server import SignInFailed
from registry.forms.sign_in import KeyForm, OwnedKeyForm, OwnerForm, ServerSignInForm
from registry.models import CredentialOwner, Server, ServerClient, ServerCredential

_PERSONAL = (Server.SignIn.PERSON, Server.SignIn.KEY)


class LinkRejected(CountersignError):
    """The link is another user's, or nobody's."""


@page("")
def connections(request: ConsoleRequest) -> HttpResponse:
    """The signed-in person's own, at the servers that take each person's credential."""
    own = {one.server_id: one for one in _own(request.user).select_related("server")}
    servers = _personal()
    if not request.user.has_perm("registry.view_server"):
        servers = servers.filter(pk__in=own)
    rows = [
        {
            "server": server,
            "credential": own.get(server.pk),
            "page": links.page_of(server, _owner(request.user)),
        }
        for server in servers
    ]
    return render(request, "registry/connections.html", {"section": "profile", "rows": rows})


@page("")
def linked(request: ConsoleRequest, slug: str, person: int, mark: str) -> HttpResponse:
    """The page behind the link that an agent got: for its user alone."""
    server = get_object_or_404(_personal(), slug=slug)
    if person != request.user.pk or not links.is_mark(server, person, mark):
        error = LinkRejected(_("This link is for another user."))
        refusals.connection(request, server.slug, error)
        context = {"section": "profile", "other": True}
        return render(request, "registry/connection.html", context, status=403)
    return _one(request, server, KeyForm())


@page("", "POST")
def connect(request: ConsoleRequest, slug: str) -> HttpResponse:
    """A page with a link to the authorization server, since a form may lead to no other site."""
    server = get_object_or_404(_personal(), slug=slug)
    if not (request.user.has_perm("registry.view_server") or _has_agent(request.user)):
        raise Http404
    if server.takes_keys:
        return _connect_key(request, server)
    return _to_authorization_server(request, server, _owner(request.user))


@page("", "POST")
def disconnect(request: ConsoleRequest, slug: str) -> HttpResponse:
    server = get_object_or_404(Server, slug=slug)
    if credential_store.remove(_own(request.user).filter(server=server), by=request.user):
        messages.success(request, translate("“%s” is disconnected.") % slug)
    return redirect("registry:connections")


@page("")
def callback(request: ConsoleRequest, server: int) -> HttpResponse:
    """The authorization server's answer, taken by its `state`, once, from who began it."""
    try:
        made = authorization.finish(request, server)
    except AnswerRejected as error:
        slug = Server.objects.filter(pk=server).values_list("slug", flat=True).first()
        refusals.connection(request, slug or "", error)
        messages.error(request, str(error))
        return redirect("registry:connections")
    except CountersignError as error:
        messages.error(request, str(error))
        return redirect("registry:connections")
    messages.success(request, translate("“%s” is connected.") % made.server.slug)
    if made.person is None:
        return redirect("registry:server_sign_in", made.server.slug)
    return redirect("registry:connections")


@require_safe
def client_document(request: HttpRequest, server: int) -> HttpResponse:
    """Anybody may read it: authorization servers do, to know this installation by."""
    said = clients.client_document(server)
    return JsonResponse(said, headers={"Cache-Control": "max-age=3600"})


@page("registry.change_server", "GET", "HEAD", "POST")
def server_sign_in(request: ConsoleRequest, slug: str) -> HttpResponse:
    server = get_object_or_404(Server.objects.kept(), slug=slug)
    form = ServerSignInForm.of(server, request.POST or None)
    if form.is_valid() and _set_sign_in(request, server, form):
        return redirect("registry:server_sign_in", slug)
    return _server_page(request, server, form)


@page("registry.change_server", "POST")
def connect_shared(request: ConsoleRequest, slug: str) -> HttpResponse:
    """Connects the account of the installation, or of the team or agent that was chosen."""
    server = get_object_or_404(Server.objects.kept().exclude(sign_in=""), slug=slug)
    if server.credential_of == "person":
        raise Http404
    owner, owned = CredentialOwner(), OwnerForm(server, request.POST)
    if server.credential_of:
        if not owned.is_valid():
            return _server_page(request, server, ServerSignInForm.of(server), owned, status=422)
        owner = owned.chosen
    if server.takes_keys:
        return _connect_key_of(request, server, owner, owned)
    return _to_authorization_server(request, server, owner)


@page("registry.change_server", "POST")
def disconnect_shared(request: ConsoleRequest, slug: str) -> HttpResponse:
    """Any credential of the server but people's own."""
    server = get_object_or_404(Server.objects.kept(), slug=slug)
    chosen = request.POST.get("credential", "")
    pk = int(chosen) if chosen.isdecimal() else 0
    rows = ServerCredential.objects.filter(server=server, person=None, pk=pk)
    if credential_store.remove(rows, by=request.user):
        messages.success(request, translate("“%s” is disconnected.") % slug)
    return redirect("registry:server_sign_in", slug)


def _server_page(
    request: ConsoleRequest,
    server: Server,
    form: ServerSignInForm,
    owned: OwnerForm | None = None,
    key: KeyForm | None = None,
    *,
    status: int = 200,
) -> HttpResponse:
    rows = server.credentials.with_owners().order_by("connected_at")
    context: dict[str, Any] = {"section": "servers", "server": server, "form": form}
    context |= {"client": ServerClient.objects.filter(server=server).first(), "rows": rows}
    context |= {"owner_form": owned or OwnerForm(server), "key_form": key or OwnedKeyForm()}
    context["redirect_uri"] = clients.redirect_uri(server.pk)
    return render(request, "registry/server_sign_in.html", context, status=status)


def _connect_key_of(
    request: ConsoleRequest, server: Server, owner: CredentialOwner, owned: OwnerForm
) -> HttpResponse:
    key = OwnedKeyForm(request.POST)
    if not key.is_valid():
        form = ServerSignInForm.of(server)
        return _server_page(request, server, form, owned, key, status=422)
    _save_key(request, server, owner, key.cleaned_data["key"])
    return redirect("registry:server_sign_in", server.slug)


def _save_key(request: ConsoleRequest, server: Server, owner: CredentialOwner, key: str) -> None:
    try:
        credential_store.connect_key(clients.client_of(server), owner, key, by=request.user)
    except SignInFailed as error:
        messages.error(request, str(error))
    else:
        messages.success(request, translate("“%s” is connected.") % server.slug)


def _set_sign_in(request: ConsoleRequest, server: Server, form: ServerSignInForm) -> bool:
    given = form.cleaned_data
    try:
        clients.set_sign_in(server, **form.wanted, by=request.user)
    except CountersignError as error:
        form.add_error("header" if given["header"] else "sign_in", str(error))
        return False
    messages.success(request, translate("The sign-in of “%s” is set.") % server.slug)
    return True


def _connect_key(request: ConsoleRequest, server: Server) -> HttpResponse:
    form = KeyForm(request.POST)
    if not form.is_valid():
        return _one(request, server, form, status=422)
    _save_key(request, server, _owner(request.user), form.cleaned_data["key"])
    return redirect("registry:connections")


def _to_authorization_server(
    request: ConsoleRequest, server: Server, owner: CredentialOwner
) -> HttpResponse:
    try:
        there = authorization.begin(request, server, owner)
    except CountersignError as error:
        messages.error(request, str(error))
        if owner.kind != "person":
            return redirect("registry:server_sign_in", server.slug)
        return redirect("registry:connections")
    context = {"server": server, "there": there, "host": urlsplit(there).netloc, "owner": owner}
    return render(request, "registry/to_authorization_server.html", context)


def _one(
    request: ConsoleRequest, server: Server, form: KeyForm, *, status: int = 200
) -> HttpResponse:
    own = _own(request.user).filter(server=server).first()
    context = {"section": "profile", "server": server, "credential": own, "form": form}
    return render(request, "registry/connection.html", context, status=status)


def _personal() -> Any:
    return Server.objects.kept().filter(sign_in__in=_PERSONAL, enabled=True)


def _owner(person: User) -> CredentialOwner:
    return CredentialOwner("person", person.pk, person.username)


def _own(person: User) -> Any:
    return ServerCredential.objects.filter(person=person)


def _has_agent(person: User) -> bool:
    return person.agents.filter(enabled=True).exists()
