"""Every page that there is, by the URL conf itself: nobody has to remember to add a new one."""

from base64 import b64encode
from collections.abc import Iterator
from datetime import time, timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

import orjson
from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone

from accounts import access_review, custom_roles, one_time_codes, password_reset, service_accounts
from accounts.agent_sign_in import clients as agent_clients
from accounts.agent_sign_in import devices as agent_devices
from accounts.agent_sign_in import grants
from accounts.custom_roles import RoleTerms
from accounts.models import AgentToken, BrowserSession, ScimToken, ScimUser, User
from accounts.roles import Role
from accounts.service_accounts import SCOPES
from accounts.services import sign_in_link
from approvals import comments, delegations, freezes, services, standing_approvals
from approvals.models import Approval, Delegation, Grant
from approvals.policy_plans import planning
from approvals.retention.changing import set_period
from approvals.standing_approvals import Terms
from audit import export_jobs
from audit.filters import Filters
from audit.models import Entry, Export
from audit.services import save_filter
from calls.content.payloads import containing
from calls.models import Call, RetainedContent, RetentionPeriod, RetentionScope
from calls.record.states import State
from gateway.models import SavedCase
from notifications import (
    chat_accounts,
    devices,
    escalation_policies,
    schedules,
    slack_apps,
    subscriptions,
)
from notifications.chat_accounts import SlackUser
from notifications.models import (
    ChatAccount,
    Delivery,
    EscalationPolicy,
    EscalationStep,
    OnCallOverride,
    OnCallSchedule,
    SlackApp,
    Webhook,
)
from notifications.services import add_webhook, set_mail
from policies.limits.services import save_limit
from policies.models import Limit, Rule
from policies.thresholds import Distinct, StepUp, Threshold
from registry.credentials import clients, credential_store, links
from registry.credentials.token_endpoint import ServerTokens
from registry.icons import fetching
from registry.labels import Label
from registry.models import CredentialOwner, Icon, Item, Server, ServerCredential, Toolset
from registry.openapi import document, importing
from registry.server_json import document as server_json
from registry.server_json.foreign_registry import OFFICIAL
from registry.server_json.importing import (
    ImportedDocument,
    keep_signature,
    register_remote,
)
from registry.server_json.signatures import Signature
from registry.services import register, set_agent_sign_in, set_tags
from tests.accounts import service_tokens
from tests.browser import moments
from tests.browser.kept_cases import keep_cases
from tests.browser.scene import SEARCH, Office
from tests.console import scenery
from tests.gateway import api_calls
from tests.notifications.push_service import PushService
from tests.signing_in import of

# Django's own pages, and what programs ask.
# The consent page is shown in tests/browser/test_agent_sign_in.py, as a client leads there.
API = "http://127.0.0.1:9/v1"
NOT_OURS = ("admin/", "api", "scim/", "oauth/", ".well-known/")


def everybody(name: str) -> User:
    """Somebody who may do everything: no control of any page is hidden from them."""
    person = scenery.person(name, *Role, password=scenery.PASSWORD)
    # No role contains it.
    person.user_permissions.add(Permission.objects.get(codename="break_glass"))
    return person


ISSUER = "https://id.example.org"


def furnish(office: Office, person: User) -> None:
    """What makes pages show all their parts."""
    carol = scenery.person("carol", Role.APPROVER)
    two = Threshold(approve=2, distinct=Distinct.TEAM, step_up=StepUp.TOTP)
    argued = scenery.call(
        office.scout,
        office.send,
        {**scenery.MAIL, "subject": "Two"},
        State.HELD,
        thresholds=(two,),
        details={"again": str(office.lost)},
    )
    approval = Approval.objects.get(pk=argued)
    services.vote(approval, by=carol, approve=True, seen_digest=approval.call.call_digest)
    comments.say(approval, by=carol, text="Does Ana know of it?", ask_agent=True)
    comments.answer(argued, agent=office.scout.actor, text="She asked for it.")
    see_again(office)
    shelve(office.sly.server)
    register_api(person)
    import_server(person)
    one_time_codes.begin(person)
    set_tags(office.search, ["code", "daily"], by=person)
    save_filter("What scout did", {"agent": "scout"}, shared=True, by=person)
    freezes.begin(by=carol, reason="The reports are being moved.", server=office.write.server)
    standing_approvals.make(Call.objects.get(pk=approved(office, person)), Terms(), by=person)
    person.identities.create(issuer=ISSUER, subject="248289", label="ada@example.org")
    notify(person)
    delegate(person)
    keep_cases(person)
    sign_in_at_books(person)
    moments.happen(office, person)


def sign_in_at_tickets(person: User) -> Server:
    """Each person has their own account there: this one is connected, and asked for more."""
    server = signed_in_at("tickets", Server.SignIn.PERSON, by=person)
    credential_store.want_scopes(connected(server, of(person), by=person), "write")
    return server


def sign_in_at_books(person: User) -> None:
    """Each team has its own account there, and one is asked for more."""
    server = signed_in_at("books", Server.SignIn.TEAM, by=person)
    for name in ("Payments", "Support of the northern region"):
        team = Group.objects.create(name=name)
        row = connected(server, CredentialOwner("team", team.pk, name), by=person)
    credential_store.want_scopes(row, "invoices:write")


def signed_in_at(slug: str, mode: str, *, by: User) -> Server:
    url = f"https://{slug}.example.com/mcp"
    server = register(slug, transport="http", url=url, owner=by, by=by)
    clients.set_sign_in(server, mode, by=by, client_id="countersign")
    client = server.client
    client.issuer, client.resource = ISSUER, server.url
    client.save()
    return server


def connected(server: Server, owner: CredentialOwner, *, by: User) -> ServerCredential:
    tokens = ServerTokens("an-access-token", "a-refresh-token", None, ["read"])
    return credential_store.connect_tokens(server.client, owner, tokens, ["read"], by=by)


def retention_period(person: User) -> int:
    set_period(RetainedContent.RESULT, (RetentionScope.LABEL, Label.SENSITIVE), 30, by=person)
    set_period(RetainedContent.PAYLOAD, (RetentionScope.ALL, ""), 90, by=person)
    return RetentionPeriod.objects.earliest("pk").pk


def escalation_policy(person: User) -> UUID:
    made = EscalationPolicy()
    step = EscalationStep(after_min=0, target=EscalationStep.Target.EVERYBODY)
    escalation_policies.save(made, [step], by=person)
    return made.pk


def schedule(person: User) -> UUID:
    made = OnCallSchedule(
        name="primary", handover_at=time(9), starts_on=timezone.now().date() - timedelta(days=9)
    )
    schedules.save(made, [person, User.objects.get(username="carol")], by=person)
    now = timezone.now()
    override = OnCallOverride(
        schedule=made, person=person, begins_at=now, ends_at=now + timedelta(days=1)
    )
    schedules.add_override(override, by=person)
    return made.pk


def delegate(person: User) -> None:
    now, carol = timezone.now(), User.objects.get(username="carol")
    delegations.make(
        Delegation(delegator=person, delegate=carol, begins_at=now, ends_at=now + timedelta(days=7))
    )


def notify(person: User) -> None:
    """A webhook that was reached, one message that was given up, an address and a device."""
    webhook = Webhook(name="ledger", url="https://ledger.example.org/hook")
    add_webhook(webhook, by=person)
    entry = Entry.objects.earliest("id").pk
    for state, error in (("sent", ""), ("dead", "The receiver answered with status 410.")):
        Delivery.objects.create(
            entry_id=entry,
            event="approval.needed" if error else "test",
            channel="webhook",
            webhook=webhook,
            state=state,
            attempts=1,
            error=error,
        )
    chat = Webhook(name="team", format=Webhook.Format.SLACK)
    add_webhook(chat, by=person, address="https://hooks.slack.com/services/T0/B0/secretwxyz")
    app = SlackApp(team_id="T0000TEAM", team_name="Acme", channel="C0000CHAN", takes_denials=True)
    made = Webhook(name="approvals")
    slack_apps.save(made, app, by=person, token="xoxb-1", signing_secret="8f742231")
    chat_accounts.begin(person)
    ChatAccount.objects.update(
        team_id="T0000TEAM", team_name="Acme", user_id="U0000USER", user_name="everybody",
        linked_at=timezone.now(),
    )  # fmt: skip
    set_mail(person, "everybody@example.org", ["approval.needed"])
    browser = PushService()
    browser.url = "https://fcm.googleapis.com/fcm/send/everybody"
    devices.add(person, subscriptions.read(browser.subscription()), user_agent="Firefox/145 Linux")


def named_account(person: User) -> str:
    """What a link in Slack says, for the account that is linked next."""
    code = chat_accounts.begin(person)
    user = SlackUser("T0000TEAM", "U0000NEXT", "everybody.else")
    return chat_accounts.name_user(user, {"T0000TEAM": "Acme"}, code, "")


def see_again(office: Office) -> None:
    """A second version, to compare with the first."""
    scenery.see(office.search.server, {**SEARCH, "description": "Finds lines, and says where."})


def drawn_icon(server: Server) -> int:
    """One of two that the server declares; the other is none that browsers are given."""
    picture = (settings.BASE_DIR / "static" / "img" / "app-192.png").read_bytes()
    source = f"data:image/png;base64,{b64encode(picture).decode()}"
    Server.objects.filter(pk=server.pk).update(server_info={"icons": [{"src": source}]})
    fetching.fetch_missing(server.pk)
    return Icon.objects.get(server=server).pk


def register_api(owner: User) -> None:
    """Some of its operations are offered, and some cannot be."""
    description = document.read(orjson.dumps(api_calls.document()))
    api = importing.register_api("stable", description, owner=owner, by=owner, url=API)
    importing.choose(api, {"GET /pets": "", "POST /form": "destroys"}, by=owner)


def import_server(owner: User) -> None:
    """By a document that another registry gave, with a signature."""
    remote = {"type": "streamable-http", "url": "https://mcp.example.com/"}
    about = {"name": "io.github.ana/tides", "description": "Tides", "version": "2.1.0"}
    read = server_json.read({**about, "remotes": [remote]})
    given = ImportedDocument(read, OFFICIAL, "active", "2026-03-01T08:00:00Z")
    made = register_remote("tides", given, read.remotes[0], {}, owner=owner, by=owner)
    issuer, at = "https://token.actions.githubusercontent.com", "2026-03-01T08:00:00+00:00"
    signer = "https://github.com/ana/tides/.github/workflows/release.yml@refs/tags/v2.1.0"
    digest = f"sha256:{'5e' * 32}"
    signature = Signature(digest, signer, issuer, at, True, "48121", "")
    keep_signature(made.origin, signature, by=owner)


def shelve(server: Server) -> None:
    """Of each kind one, in each state."""
    notes = {"uri": "notes://today", "name": "today", "title": "Today's notes"}
    greet = {"name": "greet", "arguments": [{"name": "tone"}]}
    by_day = {"uriTemplate": "notes://day/{day}", "name": "day", "description": "One day's notes."}
    scenery.shelve(server, Item.Kind.RESOURCE, notes, publish=True)
    scenery.shelve(server, Item.Kind.PROMPT, greet, publish=True)
    changed = {**notes, "description": "Read me first. ⟦Not hidden⟧"}
    scenery.shelve(server, Item.Kind.RESOURCE, changed, publish=False)
    scenery.shelve(server, Item.Kind.TEMPLATE, by_day, publish=False)


def approved(office: Office, person: User, **changes: Any) -> UUID:
    """By a toolset that fixes none of its arguments."""
    plain, _made = Toolset.objects.get_or_create(slug="plain")
    plain.agents.add(office.scout)
    plain.tools.add(office.send)
    mail = {**scenery.MAIL, "subject": "Done"}
    held = scenery.call(office.scout, office.send, mail, State.HELD, toolset="plain", **changes)
    approval = Approval.objects.get(pk=held)
    services.vote(approval, by=person, approve=True, seen_digest=approval.call.call_digest)
    return held


def policy_plan(person: User) -> str:
    """One that changes every rule."""
    text = "version: 1\nrules:\n  - {name: Nothing runs, effect: deny}\n"
    return planning.make_plan(text, by=person).digest


def signed_in(person: User) -> str:
    """The public id of a client's sign-in."""
    client = agent_clients.register(
        {"client_name": "Cursor", "redirect_uris": ["cursor://callback"]}
    )
    agent = grants.find_or_make_agent(person, client)
    resource = f"{settings.AGENT_URL}/mcp/office"
    code = grants.allow(
        client=client,
        person=person,
        agent=agent,
        resource=resource,
        redirect_uri="cursor://callback",
        challenge=grants.challenge_of("v" * 43),
    )
    grants.redeem(
        code,
        client_id=client.client_id,
        redirect_uri="cursor://callback",
        verifier="v" * 43,
        resource=resource,
        is_open=lambda _resource, _agent: True,
    )
    return AgentToken.objects.get(resource=resource).public_id


def toolset_choice(office: Office) -> str:
    """Where a client signs in that does not say which toolset it is for."""
    for toolset in Toolset.objects.filter(slug__in=["office", "plain"]):
        set_agent_sign_in(toolset, True, by=office.alice)
    return consent_page("Goose", "http://127.0.0.1:9/callback")


def consent_page(name: str, redirect: str, **more: str) -> str:
    """Where a client of this name, which registers itself, asks for a user's consent."""
    client = agent_clients.register({"client_name": name, "redirect_uris": [redirect]})
    asked = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": redirect,
        "code_challenge": grants.challenge_of("v" * 43),
        "code_challenge_method": "S256",
        **more,
    }
    return f"/oauth/authorize?{urlencode(asked)}"


def device_page(resource: str) -> str:
    """Where a user types the code that a device shows."""
    grant_types = [agent_clients.DEVICE_GRANT]
    said = {"client_name": "Build agent", "grant_types": grant_types}
    client = agent_clients.register(said)
    started = agent_devices.begin(client.client_id, resource, "192.0.2.7")
    return f"/oauth/device?{urlencode({'user_code': started.user_code})}"


def every_page(office: Office, person: User) -> list[str]:
    """The address of each page for people, with the office's things in it."""
    examples = _examples(office, person)
    client = Client()
    client.force_login(person)
    addresses = [_filled(route, examples) for route in _routes(get_resolver().url_patterns)]
    return [address for address in addresses if _is_page(client, address)]


def further(office: Office) -> list[str]:
    """What the same pages look like with something else in them."""
    addresses = [
        "/catalogue/?q=nothing+like+it",
        "/queue/deny-all/?agent=scout",
        f"/queue/approve-alike/?call={office.held}",
        "/servers/words/items/",
        "/servers/words/review/",
        "/catalogue/?q=mail&server=mailer",
        "/catalogue/?all=server",
        "/servers/mailer/edit/",
        "/servers/books/sign-in/",
        "/servers/tickets/sign-in/",
        f"/tools/{office.sly.exposed_name}/",
        f"/tools/{office.send.exposed_name}/try/",
        "/new/server/?by=paste",
        "/servers/stable/operations/",
        "/servers/stable/operations/?state=left-out",
        "/servers/stable/edit/",
        "/servers/tides/",
        "/cases/?state=troubled",
        "/servers/weather/",
        "/servers/weather/cases/",
        "/tools/weather.forecast/try/",
        "/toolsets/office/?q=write",
        f"/calls/{office.held}/",
        f"/calls/{office.running}/",
        f"/calls/{office.lost}/",
        "/calls/?state=live",
        "/audit/?state=held&range=24h",
        "/access/?person=alice",
        "/access/?kind=server&name=mailer",
        "/access/?kind=server&name=mailer&person=bob",
        "/access/?kind=tool&name=mailer.send_mail",
        f"/access/?kind=call&name={office.held}",
        "/access/?kind=server&name=mail",
        "/access-review/?kind=service_account",
        "/access-review/?kind=agent",
        "/audit/?live=1",
        "/audit/?group=call",
        "/audit/who-ran-what/?agent=scout&range=24h",
        "/new/rule/?template=new-tool",
        "/policies/explain/?agent=scout&tool=mailer.send_mail",
        toolset_choice(office),
        *moments.shown_pages(),
        *moments.pages(),
    ]
    return list(dict.fromkeys(addresses))


def _routes(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[str]:
    for one in patterns:
        route = before + str(one.pattern)
        if route.startswith(NOT_OURS):
            continue
        if isinstance(one, URLResolver):
            yield from _routes(one.url_patterns, route)
        else:
            yield route


def _filled(route: str, examples: dict[str, str]) -> str:
    for place, address in examples.items():
        route = route.replace(place, address)
    assert "<" not in route, f"every_page knows no example for {route}"
    return f"/{route}"


def _is_page(client: Client, address: str) -> bool:
    response = client.get(address)
    # The address of a form answers 405, before it looks what it is about.
    assert response.status_code in (200, 302, 405), (address, response.status_code)
    is_html = response.headers.get("Content-Type", "").startswith("text/html")
    return response.status_code == 200 and is_html and b"<!doctype html>" in response.content


def exported(person: User) -> Export:
    """One that is ready, after one in each state that a row can show."""
    everything = Filters.read({"agent": "scout", "range": "7d"}, ZoneInfo("UTC"))
    states = ["cancelled", "expired", "failed", "changed", "preparing", "ready"]
    for state in states:
        made = export_jobs.request(
            everything, Export.Format.CSV, by=person.actor, person_id=person.pk
        )
        taken = export_jobs.take()
        assert taken
        export_jobs.prepare(taken, containing, lambda: False)
        Export.objects.filter(pk=made.pk).update(state=state)
    half = Export.objects.filter(state="preparing")
    half.update(
        finished_at=None,
        digest="",
        first_id=0,
        last_id=100,
        reached_id=40,
        leased_until=timezone.now() + timedelta(days=1),
    )
    Export.objects.filter(state="failed").update(fault="no_space")
    return made


def _examples(office: Office, person: User) -> dict[str, str]:
    """By the place in a route; the longer places first."""
    token, rule = AgentToken.objects.first(), Rule.objects.first()
    entry = Entry.objects.of_call(office.pictured).last()
    assert token
    assert rule
    assert entry
    limit = save_limit(
        Limit(
            name="A minute", kind="calls", amount=60, period="minute", effect="deny", per=["agent"]
        ),
        by=person.actor,
    )
    export = exported(person)
    dave = scenery.person("dave", Role.VIEWER)
    link = sign_in_link(dave).rstrip("/").rpartition("/")[2]
    password_reset.set_allowed(dave, True)
    for issuer, double in (
        ("https://id.example.org", dave),
        ("https://old.example.org", office.bob),
    ):
        ScimUser.objects.create(issuer=issuer, person=double, user_name="dave@example.org")
    searched = office.search.exposed_name
    case = SavedCase.objects.earliest("id")
    robot = service_accounts.create("robot", purpose="Nightly reports", scopes=SCOPES, by=person)
    robots = service_tokens.issue(robot, by=person)[4:12]
    provisioning = ScimToken.objects.create(
        issuer="https://id.example.org",
        public_id="scimtokn",
        digest=b"d" * 32,
        is_confirmed=True,
        expires_at=timezone.now() + timedelta(days=30),
        created_by=person,
    )
    elsewhere = BrowserSession.objects.create(
        person=person, key="of-another-browser", user_agent="", address="192.0.2.1"
    )
    role = custom_roles.create(
        "Payments operator",
        description="Operates the payment servers",
        terms=RoleTerms(
            frozenset({"registry.operate_server", "registry.view_server"}),
            server_tags=("payments",),
        ),
        by=person,
    )
    auditor = scenery.person("ines", Role.AUDITOR)
    access_review.sign_off(access_review.report().digest, reason="Quarterly review.", by=auditor)
    linked = urlsplit(links.page_of(sign_in_at_tickets(person), of(person))).path.strip("/")
    return {
        "connections/<slug:slug>/<int:person>/<slug:mark>": linked,
        "connections/<slug:slug>": "connections/tickets",
        "connections/callback/<int:server>": "connections/callback/1",
        "connections/client/<int:server>.json": "connections/client/1.json",
        "tools/<tool:name>/cases/<int:pk>": f"tools/weather.forecast/cases/{case.pk}",
        "policies/plans/<slug:digest>": f"policies/plans/{policy_plan(person)}",
        "queue/views/<int:pk>": "queue/views/1",
        "queue/<uuid:call_id>/grant/": f"queue/{approved(office, person)}/grant/",
        "queue/<uuid:call_id>": f"queue/{office.held}",
        "break-glass/<int:pk>": "break-glass/1",
        "calls/<uuid:call_id>/content/<int:number>": f"calls/{office.pictured}/content/1",
        "calls/<uuid:call_id>": f"calls/{office.pictured}",
        "profile/agents/<str:public_id>": f"profile/agents/{signed_in(person)}",
        "service-accounts/<slug:name>/tokens/<str:public_id>": (
            f"service-accounts/robot/tokens/{robots}"
        ),
        "provisioning/tokens/<str:public_id>": f"provisioning/tokens/{provisioning.public_id}",
        "tokens/<str:public_id>": f"tokens/{token.public_id}",
        "people/roles/<int:pk>": "people/roles/1",
        "roles/<int:pk>": f"roles/{role.pk}",
        "service-accounts/<slug:name>": "service-accounts/robot",
        "agents/<slug:name>": "agents/scout",
        "limits/<int:pk>": f"limits/{limit.pk}",
        "toolsets/<slug:slug>": "toolsets/office",
        "servers/<slug:slug>/operations": "servers/stable/operations",
        "servers/<slug:slug>/document": "servers/stable/document",
        "servers/<slug:slug>/signature": "servers/tides/signature",
        "servers/<slug:slug>": "servers/words",
        "icons/<int:pk>": f"icons/{drawn_icon(office.search.server)}",
        "tools/<tool:name>": f"tools/{searched}",
        "roll-back/<int:version>": "roll-back/1",
        "would/<tool:tool>": f"would/{searched}",
        "sign-in/with/<slug:slug>": "sign-in/with/nobody",
        "identities/<int:pk>": "identities/1",
        "identities/<slug:slug>": "identities/nobody",
        "sign-in/<str:text>": f"sign-in/{link}",
        "policies/<int:pk>": f"policies/{rule.pk}",
        "provisioning/<slug:slug>": "provisioning/nobody",
        "people/<int:pk>/decisions": f"people/{person.pk}/decisions",
        "people/<int:pk>": f"people/{office.bob.pk}",
        "passkeys/<int:pk>": "passkeys/1",
        "profile/identities/<int:pk>": "profile/identities/1",
        "profile/identities/<slug:slug>": "profile/identities/company",
        "sessions/<int:pk>": f"sessions/{elsewhere.pk}",
        "grants/<int:pk>": f"grants/{Grant.objects.earliest('id').pk}",
        "retention/<int:pk>": f"retention/{retention_period(person)}",
        "emergency-stops/<int:pk>": "emergency-stops/1",
        "filters/<int:pk>": "filters/1",
        "exports/<int:pk>": f"exports/{export.pk}",
        "audit/suggestions/<str:field>": "audit/suggestions/agent",
        "audit/<int:pk>": f"audit/{entry.pk}",
        "webhooks/<uuid:pk>": f"webhooks/{Webhook.objects.earliest('id').pk}",
        "notifications/slack/<uuid:pk>": f"notifications/slack/{SlackApp.objects.get().pk}",
        "slack/<uuid:pk>": f"slack/{ChatAccount.objects.get().pk}",
        "slack/<str:nonce>": f"slack/{named_account(person)}",
        # Nobody looks what these are about: they take no GET.
        "overrides/<uuid:pk>": f"overrides/{UUID(int=0)}",
        "delegations/<int:pk>": "delegations/0",
        "on-call/<uuid:pk>": f"on-call/{schedule(person)}",
        "escalation/<uuid:pk>": f"escalation/{escalation_policy(person)}",
        "notifications/devices/<uuid:pk>": f"notifications/devices/{person.push_devices.get().pk}",
        "open/<uuid:pk>": f"open/{Delivery.objects.earliest('id').pk}",
        "message/<uuid:pk>/<path:there>": f"message/{Delivery.objects.earliest('id').pk}/queue/",
        "mail/<uuid:pk>": f"mail/{Delivery.objects.earliest('id').pk}",
        "deliveries/<uuid:pk>": f"deliveries/{Delivery.objects.earliest('id').pk}",
        "password-reset/<str:text>": f"password-reset/{password_reset.link_text(dave)}",
        "confirm/<str:token>": "confirm/a-token-of-a-mail",
    }
