"""The door of endpoints that clients reach without a session: no cookie opens anything here, so
pages of every origin may ask (as Inspector does)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest, SuspiciousOperation
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from accounts import dpop, refusals, used_proofs
from accounts.dpop import ProofFailed
from accounts.models import Agent
from accounts.resources import canonical_resource
from core.client_address import client_address, host_network
from core.connections import each_within
from core.errors import RecordUnavailable
from core.outage import AWAY
from core.request_rate import RequestRate
from registry.models import Toolset

STATEMENT_S = 10.0
NO_ANSWER = "The database does not answer. Try again soon."
FORM = "application/x-www-form-urlencoded"
# Which users may sign in agents.
SIGNS_IN = "registry.view_toolset"
# Of one address in a minute; of IPv6, of the network of 64 bits.
REQUESTS = RequestRate(300, 60.0)
View = Callable[[HttpRequest], HttpResponse]


class OAuthError(Exception):
    """An answer of RFC 6749, 5.2: `error`, and a sentence for whoever reads the client's log."""

    def __init__(self, error: str, description: str, status: int = 400, *, wait_s: int = 0) -> None:
        super().__init__(description)
        self.error, self.status, self.wait_s = error, status, wait_s


def open_endpoint(*methods: str) -> Callable[[View], View]:
    def decorate(view: View) -> View:
        @csrf_exempt
        @never_cache
        @require_http_methods([*methods, "OPTIONS"])
        @wraps(view)
        def answered(request: HttpRequest) -> HttpResponse:
            answer = HttpResponse(status=204) if request.method == "OPTIONS" else _tried(request)
            answer["Access-Control-Allow-Origin"] = "*"
            answer["Access-Control-Allow-Methods"] = ", ".join(methods)
            answer["Access-Control-Allow-Headers"] = "*, Authorization"
            return answer

        def _tried(request: HttpRequest) -> HttpResponse:
            try:
                check_rate(request, REQUESTS)
                with each_within(STATEMENT_S):
                    return view(request)
            except OAuthError as error:
                return _problem(error)
            except (*AWAY, RecordUnavailable):
                return _problem(OAuthError("temporarily_unavailable", NO_ANSWER, 503, wait_s=1))

        return answered

    return decorate


def _problem(error: OAuthError) -> HttpResponse:
    said = {"error": error.error, "error_description": str(error)}
    headers = {"Retry-After": error.wait_s} if error.wait_s else None
    return JsonResponse(said, status=error.status, headers=headers)


def proved_key(request: HttpRequest) -> str:
    """The thumbprint of the key that the client proved to have (RFC 9449, 5); empty where it sends
    no proof. Raises OAuthError."""
    if "DPoP" not in request.headers:
        return ""
    there = settings.PUBLIC_URL + request.path
    try:
        proof = dpop.check(request.headers["DPoP"], method=request.method or "", url=there)
        used_proofs.use_up(proof)
    except ProofFailed as error:
        refusals.agent_sign_in(request, str(error))
        raise OAuthError("invalid_dpop_proof", str(error)) from error
    return proof.jkt


def check_rate(request: HttpRequest, rate: RequestRate) -> None:
    """Raises OAuthError."""
    if wait_s := rate.wait_s(network_of(request)):
        said = f"Too many requests of this address: wait {wait_s} s."
        raise OAuthError("temporarily_unavailable", said, 429, wait_s=wait_s)


def network_of(request: HttpRequest) -> str:
    """Empty where the peer has no address."""
    address = client_address(request)
    return host_network(address) if address else ""


def form_of(request: HttpRequest) -> dict[str, str]:
    """Its parameters, each once. Raises OAuthError."""
    if request.content_type != FORM:
        raise OAuthError("invalid_request", f"Send a form ({FORM}).")
    try:
        given: dict[str, Any] = dict(request.POST.lists())
    except (BadRequest, SuspiciousOperation) as error:
        raise OAuthError("invalid_request", "Send a shorter form, in UTF-8.") from error
    if any(len(values) > 1 or "\0" in values[0] for values in given.values()):
        raise OAuthError("invalid_request", "Send each parameter once, and without NUL.")
    form = {name: values[0] for name, values in given.items()}
    if "resource" in form:
        form["resource"] = canonical_resource(form["resource"])
    return form


def needed(given: dict[str, str], name: str) -> str:
    """Raises OAuthError."""
    if not given.get(name):
        raise OAuthError("invalid_request", f"Send the parameter {name}.")
    return given[name]


def toolset_at(resource: str) -> Toolset | None:
    """The toolset at exactly this address, where users sign in agents; also of one server of it."""
    return _toolset(resource, Toolset.objects.filter(agent_sign_in=True))


def is_open(resource: str, agent: Agent) -> bool:
    """Whether the agent is in the toolset there, and its owner may sign it in, also after the
    consent."""
    return _is_member(agent, toolset_at(resource)) and agent.owner.has_perm(SIGNS_IN)


def is_open_to_workload(resource: str, agent: Agent) -> bool:
    """Whether the agent is in the toolset there. Users need not sign in agents to it: an operator
    bound the agent to its program."""
    return _is_member(agent, _toolset(resource, Toolset.objects.all()))


def _is_member(agent: Agent, toolset: Toolset | None) -> bool:
    return toolset is not None and toolset.agents.filter(pk=agent.pk).exists()


def _toolset(resource: str, among: QuerySet[Toolset]) -> Toolset | None:
    base = f"{settings.AGENT_URL}/mcp/"
    slug, _slash, server = resource.removeprefix(base).partition("/")
    if not resource.startswith(base) or resource != base + slug + (f"/{server}" if server else ""):
        return None
    found = among.filter(slug=slug)
    if server:
        found = found.filter(servers__slug=server) | found.filter(tools__server__slug=server)
    return found.distinct().first()
