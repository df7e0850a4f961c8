"""Every page that there is, by the URL conf itself: nobody has to remember to add a new one."""

from collections.abc import Iterator
from uuid import UUID
from zoneinfo import ZoneInfo

from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from accounts import one_time_codes, password_reset
from accounts.models import AgentToken, User
from accounts.roles import Role
from accounts.services import sign_in_link
from approvals import comments, freezes, services, standing_approvals
from approvals.models import Approval
from approvals.standing_approvals import Terms
from audit.exporting import begin
from audit.filters import Filters
from audit.models import Entry, Export
from audit.services import save_filter
from calls.models import Call
from calls.record.states import State
from notifications import devices, subscriptions
from notifications.models import Delivery, Webhook
from notifications.services import add_webhook, set_mail
from policies.limits.services import save_limit
from policies.models import Limit, Rule
from policies.thresholds import Distinct, StepUp, Threshold
from registry.models import Item, Server, Toolset
from registry.services import set_tags
from tests.browser import moments
from tests.browser.scene import SEARCH, Office
from tests.console import scenery
from tests.notifications.push_service import PushService

# Django's own pages, and what programs ask.
NOT_OURS = ("admin/", "api/")


def everybody(name: str) -> User:
    """Somebody who may do everything: no control of any page is hidden from them."""
    return scenery.person(name, *Role, password=scenery.PASSWORD)


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
    one_time_codes.begin(person)
    set_tags(office.search, ["code", "daily"], by=person)
    save_filter("What scout did", {"agent": "scout"}, shared=True, by=person)
    freezes.begin(by=carol, reason="The reports are being moved.", server=office.write.server)
    standing_approvals.make(Call.objects.get(pk=approved(office, person)), Terms(), by=person)
    person.identities.create(issuer=ISSUER, subject="248289", label="ada@example.org")
    notify(person)
    moments.happen(office, person)


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
    set_mail(person, "everybody@example.org", ["approval.needed"])
    browser = PushService()
    browser.url = "https://fcm.googleapis.com/fcm/send/everybody"
    devices.add(person, subscriptions.read(browser.subscription()), user_agent="Firefox/145 Linux")


def see_again(office: Office) -> None:
    """A second version, to compare with the first."""
    scenery.see(office.search.server, {**SEARCH, "description": "Finds lines, and says where."})


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


def approved(office: Office, person: User) -> UUID:
    """By a toolset that fixes none of its arguments."""
    plain, _made = Toolset.objects.get_or_create(slug="plain")
    plain.agents.add(office.scout)
    plain.tools.add(office.send)
    mail = {**scenery.MAIL, "subject": "Done"}
    held = scenery.call(office.scout, office.send, mail, State.HELD, toolset="plain")
    approval = Approval.objects.get(pk=held)
    services.vote(approval, by=person, approve=True, seen_digest=approval.call.call_digest)
    return held


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
        "/servers/words/items/",
        "/servers/words/review/",
        "/catalogue/?q=mail&server=mailer",
        "/servers/mailer/edit/",
        f"/tools/{office.sly.exposed_name}/",
        f"/tools/{office.send.exposed_name}/try/",
        "/new/server/?by=paste",
        "/toolsets/office/?q=write",
        f"/calls/{office.held}/",
        f"/calls/{office.running}/",
        f"/calls/{office.lost}/",
        "/calls/?state=live",
        "/audit/?state=held&range=24h",
        "/audit/?live=1",
        "/audit/?group=call",
        "/audit/who-ran-what/?agent=scout&range=24h",
        "/new/rule/?template=new-tool",
        "/policies/explain/?agent=scout&tool=mailer.send_mail",
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
    everything = Filters.read({}, ZoneInfo("UTC"))
    export = begin(everything, Export.Format.CSV, by=person.actor, person_id=person.pk)
    dave = scenery.person("dave", Role.VIEWER)
    link = sign_in_link(dave).rstrip("/").rpartition("/")[2]
    password_reset.set_allowed(dave, True)
    searched = office.search.exposed_name
    return {
        "queue/views/<int:pk>": "queue/views/1",
        "queue/<uuid:call_id>/grant/": f"queue/{approved(office, person)}/grant/",
        "queue/<uuid:call_id>": f"queue/{office.held}",
        "calls/<uuid:call_id>/content/<int:number>": f"calls/{office.pictured}/content/1",
        "calls/<uuid:call_id>": f"calls/{office.pictured}",
        "tokens/<str:public_id>": f"tokens/{token.public_id}",
        "agents/<slug:name>": "agents/scout",
        "limits/<int:pk>": f"limits/{limit.pk}",
        "toolsets/<slug:slug>": "toolsets/office",
        "servers/<slug:slug>": "servers/words",
        "tools/<tool:name>": f"tools/{searched}",
        "roll-back/<int:version>": "roll-back/1",
        "would/<tool:tool>": f"would/{searched}",
        "sign-in/with/<slug:slug>": "sign-in/with/nobody",
        "identities/<int:pk>": "identities/1",
        "identities/<slug:slug>": "identities/nobody",
        "sign-in/<str:text>": f"sign-in/{link}",
        "policies/<int:pk>": f"policies/{rule.pk}",
        "people/roles/<int:pk>": "people/roles/1",
        "people/<int:pk>/decisions": f"people/{person.pk}/decisions",
        "people/<int:pk>": f"people/{office.bob.pk}",
        "passkeys/<int:pk>": "passkeys/1",
        "profile/identities/<int:pk>": "profile/identities/1",
        "profile/identities/<slug:slug>": "profile/identities/company",
        "sessions/<int:pk>": "sessions/1",
        "grants/<int:pk>": "grants/1",
        "emergency-stops/<int:pk>": "emergency-stops/1",
        "filters/<int:pk>": "filters/1",
        "exports/<int:pk>": f"exports/{export.pk}",
        "audit/suggestions/<str:field>": "audit/suggestions/agent",
        "audit/<int:pk>": f"audit/{entry.pk}",
        "webhooks/<uuid:pk>": f"webhooks/{Webhook.objects.earliest('id').pk}",
        "notifications/devices/<uuid:pk>": f"notifications/devices/{person.push_devices.get().pk}",
        "open/<uuid:pk>": f"open/{Delivery.objects.earliest('id').pk}",
        "deliveries/<uuid:pk>": f"deliveries/{Delivery.objects.earliest('id').pk}",
        "password-reset/<str:text>": f"password-reset/{password_reset.link_text(dave)}",
        "confirm/<str:token>": "confirm/a-token-of-a-mail",
    }
