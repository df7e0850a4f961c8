"""Web push: a device is added by its owner, for services that the host allows; what it is sent has
a kind and an id, and only its browser opens it."""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from approvals import freezes
from approvals.models import Approval
from approvals.services import vote
from audit.models import Entry
from audit.services import SYSTEM, record
from notifications import devices, push_keys, services, subscriptions
from notifications.cursor import read_entries
from notifications.events import CHOICES
from notifications.models import Delivery, PushDevice, PushKey
from notifications.sending import send_due
from registry.models import Server
from tests.console import scenery
from tests.notifications.conftest import reader
from tests.notifications.push_service import Browser, PushService, push_service
from tests.notifications.receivers import Mailbox

pytestmark = pytest.mark.django_db

HERE = "/profile/notifications/"
ADD = f"{HERE}devices/add/"
FIREFOX = "Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0"


@pytest.fixture
def service(settings: Any) -> Iterator[PushService]:
    settings.UPSTREAM_NETWORKS, settings.PUSH_HOSTS = ["127.0.0.0/8"], ["127.0.0.1"]
    with push_service() as service:
        yield service


@pytest.fixture
def as_alice(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture
def telephone(service: PushService, alice: User) -> PushDevice:
    """alice's, which shows all events."""
    service.key = push_keys.public_key()
    device = devices.add(alice, subscriptions.read(service.subscription()), user_agent=FIREFOX)
    devices.set_events(alice, [event for event, _label in CHOICES])
    return device


def notify() -> None:
    read_entries()
    send_due()


def test_the_browser_of_these_tests_opens_the_example_of_the_specification() -> None:
    """RFC 8291, section 5 and appendix A."""
    browser = Browser(
        base64.urlsafe_b64decode("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94="),
        base64.urlsafe_b64decode("BTBZMqHH6r4Tts7J_aSIgg=="),
    )
    body = (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmY"
        "WAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexS"
        "gSxsj_Qulcy4a-fN"
    )

    assert browser.open(base64.urlsafe_b64decode(body)) == (
        b"When I grow up, I want to be a watermelon"
    )


@pytest.mark.long
def test_a_pending_call_reaches_a_device_that_its_owner_added(
    as_alice: Client, alice: User, service: PushService, held: UUID
) -> None:
    page = as_alice.get(HERE).text
    found = re.search(r'data-subscribe="([\w-]{87})"', page)
    assert found
    service.key = found[1]
    added = as_alice.post(
        ADD, {"subscription": service.subscription()}, follow=True, headers={"User-Agent": FIREFOX}
    )
    assert "This device is notified." in added.text
    assert "Firefox, Android" in added.text
    assert service.url not in added.text

    notify()

    ((headers, message),) = service.requests
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.channel) == ("sent", "push")
    assert message == {
        "kind": "approval.needed",
        "title": "Approval needed",
        "id": str(delivery.pk),
        "about": held.hex,
        "pending": 1,
    }
    # Neither the call's id, which has its time, nor what anybody could compute.
    guesses = (held.hex, str(held), f"approval {Server.objects.get().slug}")
    digests = {hashlib.sha256(one.encode()).hexdigest()[:32] for one in guesses}
    assert headers["Topic"] not in {held.hex, *digests}
    assert re.fullmatch("[0-9a-f]{32}", headers["Topic"])
    assert headers["Urgency"] == "high"
    # After the call has expired it calls nobody.
    assert 3500 < int(headers["TTL"]) <= 3600
    assert "last delivered" in as_alice.get(HERE).text

    led = as_alice.get(f"{HERE}open/{message['id']}/")
    assert led["Location"] == reverse("approvals:detail", args=[held])
    opened = Delivery.objects.get().opened_at
    assert opened
    as_alice.get(f"{HERE}open/{message['id']}/")
    assert Delivery.objects.get().opened_at == opened


@pytest.mark.long
def test_whoever_is_signed_out_signs_in_and_is_led_to_the_card(
    telephone: PushDevice, service: PushService, held: UUID, client: Client, alice: User
) -> None:
    alice.set_password(scenery.PASSWORD)
    alice.save()
    notify()
    address = f"{HERE}open/{service.messages[0]['id']}/"

    asked = client.get(address)
    assert asked["Location"] == f"{reverse('accounts:sign_in')}?next={address}"
    given = {"username": "alice", "password": scenery.PASSWORD, "next": address}
    signed_in = client.post(asked["Location"], given, follow=True)

    assert signed_in.request["PATH_INFO"] == reverse("approvals:detail", args=[held])


def test_services_see_neither_what_happened_nor_how_long_its_name_is(
    telephone: PushDevice, service: PushService, held: UUID, alice: User
) -> None:
    services.test_device(telephone)
    notify()

    assert {one["kind"] for one in service.messages} == {"test", "approval.needed"}
    assert len({len(body) for body in service.bodies}) == 1
    said = b"".join(service.bodies) + json.dumps(service.requests).encode()
    assert not [word for word in (b"ana@", b"Minutes", b"mailer", b"scout") if word in said]


def test_each_kind_is_said_in_its_readers_language(
    telephone: PushDevice, service: PushService, held: UUID, alice: User
) -> None:
    User.objects.filter(pk=alice.pk).update(language="zh-hans")

    notify()

    assert service.messages[0]["title"] == "需要审批"


def test_a_push_during_an_emergency_stop_says_so(
    telephone: PushDevice, service: PushService, held: UUID, olga: User
) -> None:
    freezes.begin(by=olga, reason="Something is wrong.")
    # Its time stands still, so a telephone that is off is to hear of it later.
    Approval.objects.filter(pk=held).update(decide_by=timezone.now())

    notify()

    titles = [one["title"] for one in service.messages]
    place = titles.index("Approval needed (emergency stop in force)")
    assert int(service.requests[place][0]["TTL"]) > 3600


def test_who_may_do_nothing_of_it_is_not_told(
    service: PushService, held: UUID, bob: User, mallory: User
) -> None:
    for person in (bob, mallory):
        given = subscriptions.read(service.subscription(endpoint=f"{service.url}{person.pk}"))
        devices.add(person, given, user_agent="")

    notify()

    # scout is bob's own, and mallory decides nothing.
    assert Delivery.objects.count() == 0


def test_what_was_decided_meanwhile_is_not_sent_and_the_decision_is(
    telephone: PushDevice, service: PushService, held: UUID, alice: User, olga: User
) -> None:
    read_entries()
    approval = Approval.objects.for_queue().get(pk=held)
    zoe = scenery.person("zoe", Role.APPROVER)
    vote(approval, by=zoe, approve=False, seen_digest=approval.call.call_digest)

    notify()

    assert [one["kind"] for one in service.messages] == ["approval.decided"]
    assert set(Delivery.objects.values_list("event", "state")) == {
        ("approval.needed", "dropped"),
        ("approval.decided", "sent"),
    }


def test_mail_and_each_device_are_told_once(
    telephone: PushDevice, service: PushService, held: UUID, alice: User, mailbox: Mailbox
) -> None:
    reader(alice)
    second = subscriptions.read(service.subscription(endpoint=f"{service.url}2"))
    devices.add(alice, second, user_agent="")

    notify()
    notify()

    assert sorted(Delivery.objects.values_list("channel", "state")) == [
        ("email", "sent"),
        ("push", "sent"),
        ("push", "sent"),
    ]
    assert len(mailbox.messages) == 1


def test_many_definitions_of_a_server_are_one_push(
    service: PushService, olga: User, cursor: None
) -> None:
    service.key = push_keys.public_key()
    devices.add(olga, subscriptions.read(service.subscription()), user_agent="")
    scenery.server("calculator", olga, scenery.ADD, scenery.SEND, publish=False)
    read_entries()

    waiting = Delivery.objects.get()
    assert waiting.event == "definition.review_needed"
    assert waiting.next_at > timezone.now() + timedelta(seconds=50)
    Delivery.objects.update(next_at=timezone.now())
    send_due()
    assert [one["kind"] for one in service.messages] == ["definition.review_needed"]
    follow = Client()
    follow.force_login(olga)
    led = follow.get(f"{HERE}open/{service.messages[0]['id']}/")
    assert led["Location"] == reverse("registry:review", args=["calculator"])


def test_news_of_one_server_replace_each_other(
    telephone: PushDevice, service: PushService, olga: User, alice: User, cursor: None
) -> None:
    alice.groups.set([*olga.groups.all(), *alice.groups.all()])
    for action in ("server.lost", "server.reached"):
        record(action, actor=SYSTEM, server=Server.objects.get().slug)
    record("freeze.began", actor=SYSTEM)

    notify()

    topics = {one["kind"]: one["about"] for one in service.messages}
    assert (
        topics["server.unreachable"] == topics["server.reachable"] != topics["emergency_stop.began"]
    )
    # The push service cannot tell which server it is by trying names.
    told = {message["kind"]: headers["Topic"] for headers, message in service.requests}
    assert told["server.unreachable"] == told["server.reachable"] != told["emergency_stop.began"]
    assert not {*told.values()} & {*topics.values()}


def test_the_end_of_one_stop_leaves_the_notification_of_another(
    telephone: PushDevice, service: PushService, olga: User, alice: User, cursor: None
) -> None:
    alice.groups.set([*olga.groups.all(), *alice.groups.all()])
    for action in ("freeze.began", "freeze.began", "freeze.ended"):
        record(action, actor=SYSTEM)

    notify()

    assert len(service.messages) == 3
    assert len({one["about"] for one in service.messages}) == 3
    assert len({headers["Topic"] for headers, _message in service.requests}) == 3


def test_what_happens_to_ones_own_account_is_pushed_to_ones_devices_alone(
    telephone: PushDevice, service: PushService, alice: User, olga: User, cursor: None
) -> None:
    given = subscriptions.read(service.subscription(endpoint=f"{service.url}2"))
    devices.add(olga, given, user_agent="")
    devices.set_events(alice, [])
    record("person.new_device", actor=alice.actor, device="Firefox, Linux", address="192.0.2.7")
    record("password_reset.requested", actor=SYSTEM, person="alice", person_id=alice.pk, address="")

    notify()

    assert [one["kind"] for one in service.messages] == ["person.new_device"]
    as_alice = Client()
    as_alice.force_login(alice)
    led = as_alice.get(f"{HERE}open/{service.messages[0]['id']}/")
    assert led["Location"] == reverse("accounts:sessions")


@pytest.mark.parametrize("status", [404, 410])
def test_a_device_that_the_service_knows_no_more_is_removed(
    telephone: PushDevice, service: PushService, held: UUID, status: int
) -> None:
    service.status = status

    notify()

    assert not PushDevice.objects.exists()
    entry = Entry.objects.get(action="device.removed")
    assert entry.actor_kind == "system"
    assert service.url not in json.dumps(entry.details)
    given_up = Entry.objects.get(action="notification.given_up")
    assert given_up.call_id == held
    assert (given_up.details or {})["person"] == "alice"


def test_who_was_notified_is_known_when_the_device_is_gone(
    telephone: PushDevice, service: PushService, held: UUID, as_alice: Client, alice: User
) -> None:
    notify()
    page = reverse("notifications:notified", args=[held])
    said = "alice Approval needed&nbsp;· Push&nbsp;· Delivered"
    assert said in listed(as_alice.get(page).text)

    devices.remove(telephone, by=alice.actor)

    assert not Delivery.objects.exists()
    assert said in listed(as_alice.get(page).text)


def listed(page: str) -> str:
    """The text of the list of people, without tags."""
    people = page.partition('<ul class="stack tight">')[2].partition("</ul>")[0]
    return " ".join(re.sub("<[^>]*>", " ", people).split())


def test_what_is_too_large_is_given_up_at_once(
    telephone: PushDevice, service: PushService, held: UUID
) -> None:
    service.status = 413

    notify()

    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts) == ("dead", 1)


def test_a_service_that_is_busy_is_left_alone_and_others_are_not(
    telephone: PushDevice, service: PushService, held: UUID, alice: User, mailbox: Mailbox
) -> None:
    reader(alice)
    second = subscriptions.read(service.subscription(endpoint=f"{service.url}2"))
    devices.add(alice, second, user_agent="")
    service.status, service.more = 429, {"Retry-After": "600"}

    notify()

    soon = timezone.now() + timedelta(seconds=500)
    assert len(service.requests) == 1
    assert Delivery.objects.filter(channel="push", state="pending", next_at__gt=soon).count() == 2
    assert Delivery.objects.get(channel="email").state == "sent"
    service.status = 201
    Delivery.objects.pending().update(next_at=timezone.now())
    send_due()
    assert len({one["id"] for one in service.messages}) == 2


def test_a_host_that_is_allowed_no_more_is_not_asked(
    telephone: PushDevice, service: PushService, held: UUID, settings: Any
) -> None:
    settings.PUSH_HOSTS = ["*.push.apple.com"]

    notify()

    assert service.requests == []
    assert "none of the push services" in Delivery.objects.get().error


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"endpoint": "https://push.evil.example/x"}, "push.evil.example is none of the push"),
        ({"endpoint": "https://fcm.googleapis.com.evil.example/x"}, "is none of the push"),
        ({"endpoint": "https://notify.windows.com/x"}, "is none of the push"),
        ({"endpoint": "http://fcm.googleapis.com/x"}, "must begin with https://"),
        ({"endpoint": "https://u:p@fcm.googleapis.com/x"}, "must not contain a user name"),
        ({"endpoint": "https://169.254.169.254/latest"}, "is not public"),
        ({"endpoint": "https://fcm.googleapis.com/" + "x" * 2000}, "is none of the push"),
        ({"endpoint": "https://xn--/"}, "is not a URL"),
        ({"endpoint": 7}, "The browser gave no subscription."),
        ({"keys": {}}, "The browser gave no subscription."),
        ({"keys": {"p256dh": "BBBB", "auth": "AAAA"}}, "keys that cannot be used"),
    ],
)
def test_what_is_no_subscription_is_refused(
    as_alice: Client, given: dict[str, Any], said: str, settings: Any
) -> None:
    service = PushService()
    service.url = "https://fcm.googleapis.com/fcm/send/abc"

    page = as_alice.post(ADD, {"subscription": service.subscription(**given)}, follow=True)

    assert said in page.text
    assert not PushDevice.objects.exists()
    assert "no subscription" in as_alice.post(ADD, {"subscription": "{"}, follow=True).text
    assert "no subscription" in as_alice.post(ADD, follow=True).text


@pytest.mark.parametrize(
    "host",
    [
        "fcm.googleapis.com",
        "updates.push.services.mozilla.com",
        "web.push.apple.com",
        "wns2-by3p.notify.windows.com",
    ],
)
def test_the_browsers_own_services_are_allowed(as_alice: Client, host: str) -> None:
    service = PushService()
    service.url = f"https://{host}/abc"

    as_alice.post(ADD, {"subscription": service.subscription()})

    assert PushDevice.objects.get().host == host


def test_a_host_without_push_services_says_so(as_alice: Client, settings: Any) -> None:
    settings.PUSH_HOSTS = []

    page = as_alice.get(HERE).text

    assert "COUNTERSIGN_PUSH_HOSTS" in page
    assert "data-subscribe=" not in page
    chinese = as_alice.get(HERE, headers={"Accept-Language": "zh-hans"}).text
    assert "主机未允许任何推送服务" in chinese


def test_whoever_signs_in_on_the_same_device_has_it(
    telephone: PushDevice, service: PushService, held: UUID, client: Client, olga: User, alice: User
) -> None:
    client.force_login(olga)

    client.post(ADD, {"subscription": service.subscription()})

    assert PushDevice.objects.get().person == olga
    notify()
    # olga decides nothing: what alice was told of is not for her.
    assert service.requests == []


def test_devices_are_tried_changed_and_removed_by_their_owner_alone(
    telephone: PushDevice, service: PushService, as_alice: Client, mallory: User
) -> None:
    as_mallory = Client()
    as_mallory.force_login(mallory)
    try_it = reverse("notifications:test_device", args=[telephone.pk])
    remove = reverse("notifications:remove_device", args=[telephone.pk])
    for address in (try_it, remove):
        assert as_mallory.post(address).status_code == 404
        assert as_alice.get(address).status_code == 405
        assert Client().post(address).status_code == 302
    events = {"devices-events": ["server.unreachable"]}
    as_mallory.post(reverse("notifications:device_events"), events)
    assert len(PushDevice.objects.get().events) == len(CHOICES)

    page = as_alice.post(try_it, follow=True).text
    assert "A test message is on its way to “Firefox, Android”." in page
    notify()
    (message,) = service.messages
    assert (message["kind"], message["about"]) == ("test", message["about"][:32])
    assert as_mallory.get(f"{HERE}open/{message['id']}/")["Location"] == "/"
    assert Delivery.objects.get().opened_at is None

    as_alice.post(reverse("notifications:device_events"), events)
    assert PushDevice.objects.get().events == ["server.unreachable"]
    refused = as_alice.post(
        reverse("notifications:device_events"), {"devices-events": ["moon"]}, follow=True
    )
    assert "Choose among the events" in refused.text
    assert PushDevice.objects.get().events == ["server.unreachable"]

    assert "not notified any more" in as_alice.post(remove, follow=True).text
    assert not PushDevice.objects.exists()
    assert as_alice.get(f"{HERE}open/{message['id']}/")["Location"] == "/"
    recorded = Entry.objects.filter(action__startswith="device.").values_list("action", flat=True)
    assert sorted(recorded) == ["device.added", "device.removed", "device.tested"]


@pytest.mark.long
def test_a_person_has_so_many_devices_and_no_more(as_alice: Client, alice: User) -> None:
    service = PushService()
    for number in range(21):
        service.url = f"https://fcm.googleapis.com/fcm/send/{number}"
        page = as_alice.post(ADD, {"subscription": service.subscription()}, follow=True).text

    assert "You have 20 devices" in page
    assert PushDevice.objects.count() == 20


def test_who_is_disabled_is_told_nothing(
    telephone: PushDevice, service: PushService, held: UUID, alice: User
) -> None:
    read_entries()
    User.objects.filter(pk=alice.pk).update(is_active=False)

    notify()

    assert service.requests == []
    assert Delivery.objects.get().state == "dropped"


def test_the_key_is_made_once(alice: User) -> None:
    first = push_keys.public_key()

    assert push_keys.public_key() == first
    assert PushKey.objects.count() == 1


def test_a_key_that_cannot_be_opened_here_is_said(
    telephone: PushDevice, service: PushService, held: UUID, as_alice: Client
) -> None:
    PushKey.objects.update(sealed_private=b"altered" * 9)

    assert "The key for push services cannot be opened here." in as_alice.get(HERE).text
    notify()
    assert Delivery.objects.get().state == "dead"
    assert service.requests == []


def test_what_cannot_be_opened_here_is_given_up(
    telephone: PushDevice, service: PushService, held: UUID
) -> None:
    PushDevice.objects.update(sealed_subscription=b"altered" * 9)

    notify()

    delivery = Delivery.objects.get()
    assert (delivery.state, service.requests) == ("dead", [])
    assert "add the device again" in delivery.error
