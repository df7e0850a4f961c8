"""Devices without a browser are signed in by a code that their user types; and attacks on that."""

import itertools
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts import attempts
from accounts import services as accounts
from accounts.agent_sign_in import clients, devices
from accounts.agent_sign_in.clients import DEVICE_GRANT
from accounts.models import Agent as AgentRow
from accounts.models import AgentToken, Attempt, DeviceCode, SignInClient, User
from accounts.roles import Role
from audit.models import Entry
from core.request_rate import RequestRate
from gateway.views.agent_sign_in import devices as views
from policies.models import Effect
from registry import services
from registry.models import Toolset
from tests.conftest import person
from tests.gateway.client_documents import DocumentHost
from tests.gateway.conftest import add_rule

pytestmark = pytest.mark.django_db(transaction=True)

FORM = "application/x-www-form-urlencoded"


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has counted no requests yet."""
    monkeypatch.setattr(views, "STARTS", RequestRate(views.STARTS.amount, 3600))


@pytest.fixture
def open_desk(toolset: Toolset, bob: User) -> Toolset:
    services.set_agent_sign_in(toolset, True, by=bob)
    return toolset


@pytest.fixture
def here(settings: Any) -> str:
    return f"{settings.AGENT_URL}/mcp/desk"


@pytest.fixture
def box(db: None) -> SignInClient:
    """A client without a browser."""
    return clients.register({"client_name": "Build box", "grant_types": [DEVICE_GRANT]})


class Device:
    """A device, and the console of the user who owns it."""

    def __init__(self, who: User, client_id: str, resource: str) -> None:
        self.client_id, self.resource = client_id, resource
        self.console = console_of(who)
        self.http = Client(enforce_csrf_checks=True)

    def post(self, path: str, said: dict[str, Any]) -> Any:
        given = urlencode({name: value for name, value in said.items() if value is not None})
        return self.http.post(path, given, content_type=FORM)

    def ask(self, **changed: Any) -> Any:
        said = {"client_id": self.client_id, "resource": self.resource, **changed}
        return self.post("/oauth/device_authorization", said)

    def start(self) -> dict[str, Any]:
        answer = self.ask()
        assert answer.status_code == 200, answer.content
        said: dict[str, Any] = answer.json()
        return said

    def poll(self, device_code: str, **changed: Any) -> Any:
        said = {
            "grant_type": DEVICE_GRANT,
            "device_code": device_code,
            "client_id": self.client_id,
            **changed,
        }
        return self.post("/oauth/token", said)

    def error(self, device_code: str) -> str:
        return str(self.poll(device_code).json()["error"])

    def typed(self, user_code: str, console: Client | None = None) -> Any:
        return (console or self.console).post("/oauth/device", {"user_code": user_code})

    def press(self, page: Any, decision: str = "allow", console: Client | None = None) -> Any:
        sealed = re.search(r'name="request" value="([^"]+)"', page.content.decode())
        assert sealed, page.content.decode()
        data = {"request": sealed[1], "decision": decision}
        return (console or self.console).post("/oauth/device", data)


def console_of(who: User) -> Client:
    console = Client()
    console.force_login(who)
    return console


@pytest.fixture
def device(bob: User, box: SignInClient, open_desk: Toolset, here: str) -> Device:
    return Device(bob, box.client_id, here)


def reasons() -> list[str]:
    return [entry.reason for entry in Entry.objects.filter(action="agent_sign_in.rejected")]


def actions() -> set[str]:
    return set(Entry.objects.values_list("action", flat=True))


def waited() -> None:
    """The device kept to its interval."""
    DeviceCode.objects.update(polled_at=timezone.now() - timedelta(minutes=1))


def test_a_device_is_signed_in_by_its_code(device: Device, settings: Any, here: str) -> None:
    add_rule(Effect.ASK, "echo")
    said = device.start()
    assert said["verification_uri"] == f"{settings.PUBLIC_URL}/oauth/device"
    assert said["verification_uri_complete"].endswith(f"?user_code={said['user_code']}")
    assert re.fullmatch(r"[A-Z]{4}-[A-Z]{4}", said["user_code"])
    assert device.error(said["device_code"]) == "authorization_pending"

    # As people type it.
    page = device.typed(f" {said['user_code'].lower().replace('-', ' ')}")
    text = page.content.decode()
    for part in ("Build box", "127.0.0.1", "Whoever sent you the code would act as you", here):
        assert part in text
    assert "rec_echo" in text.partition("Requires approval")[2]
    assert "The device is signed in" in device.press(page).content.decode()
    given = device.poll(said["device_code"])

    assert given.status_code == 200, given.content
    assert given.json()["access_token"].startswith("cso_")
    assert given.json()["refresh_token"].startswith("csf_")
    grant = AgentToken.objects.exclude(resource="").get()
    assert (grant.agent.name, grant.resource) == ("bob-registered-build-box", here)
    assert {
        "agent_sign_in.device_asked",
        "agent_sign_in.allowed",
        "agent_sign_in.completed",
    } <= actions()
    kept = [bytes(one) for row in DeviceCode.objects.all() for one in (row.digest, row.user_digest)]
    assert not any(
        said[name].encode() in one for one in kept for name in ("user_code", "device_code")
    )


def test_a_link_asks_nothing_until_the_code_was_sent(device: Device) -> None:
    said = device.start()

    page = device.console.get(
        "/oauth/device", {"user_code": said["user_code"], "decision": "allow"}
    )

    assert f'value="{said["user_code"]}"' in page.content.decode()
    assert "Build box" not in page.content.decode()
    assert device.error(said["device_code"]) == "authorization_pending"


def test_a_code_that_is_shown_twice_ends_what_came_of_it(device: Device) -> None:
    said = device.start()
    device.press(device.typed(said["user_code"]))
    assert device.poll(said["device_code"]).status_code == 200

    again = device.poll(said["device_code"])

    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert not AgentToken.objects.sign_ins().exists()
    assert reasons() == ["The device code was used before."]


@pytest.mark.long
def test_a_code_shown_by_many_at_once_gives_one_sign_in(device: Device) -> None:
    said = device.start()
    device.press(device.typed(said["user_code"]))

    def status() -> int:
        try:
            return int(device.poll(said["device_code"]).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        shown = [pool.submit(status) for _ in range(4)]
        assert sorted(one.result(20) for one in shown) == [200, 400, 400, 400]
    assert AgentToken.objects.exclude(resource="").count() == 1


def test_a_device_that_asks_too_often_has_to_ask_less(device: Device) -> None:
    code = device.start()["device_code"]

    assert [device.error(code) for _ in range(3)] == [
        "authorization_pending",
        "slow_down",
        "slow_down",
    ]
    assert DeviceCode.objects.get().interval_s == devices.INTERVAL_S * 3
    waited()
    assert device.error(code) == "authorization_pending"


def test_no_answer_in_time_is_no(device: Device) -> None:
    said = device.start()
    page = device.typed(said["user_code"])
    DeviceCode.objects.update(expires_at=timezone.now())

    assert device.error(said["device_code"]) == "expired_token"
    assert device.press(page).status_code == 400
    assert device.typed(said["user_code"]).status_code == 400
    assert "The device was answered before, or its code has expired." in reasons()
    assert not AgentToken.objects.exclude(resource="").exists()


def test_a_no_after_a_yes_says_that_the_yes_holds(device: Device) -> None:
    said = device.start()
    page = device.typed(said["user_code"])
    device.press(page)

    late = device.press(page, "deny")

    text = late.content.decode()
    assert late.status_code == 400
    assert "The device is signed in" in text
    assert "You allowed it before, and that holds." in text
    assert device.poll(said["device_code"]).status_code == 200


def test_a_mistyped_code_is_typed_again(device: Device) -> None:
    answer = device.typed("BCDF-BCDF")

    text = answer.content.decode()
    assert answer.status_code == 400
    assert "No device waits with this code." in text
    assert 'value="BCDF-BCDF"' in text


def test_denied_is_denied(device: Device) -> None:
    said = device.start()
    page = device.typed(said["user_code"])

    assert "is not signed in" in device.press(page, "deny").content.decode()
    assert device.error(said["device_code"]) == "access_denied"
    # A second answer, also of the same page, comes too late.
    assert device.press(page).status_code == 400
    assert device.error(said["device_code"]) == "access_denied"
    assert AgentRow.objects.count() == 1
    assert "agent_sign_in.denied" in actions()


def test_codes_are_not_guessed(device: Device, bob: User) -> None:
    said = device.start()

    tried = [device.typed("BCDF-GHJK").status_code for _ in range(attempts.OF_PERSON + 2)]

    assert tried == [400] * attempts.OF_PERSON + [429] * 2
    # Not even the right one, for a quarter of an hour.
    assert device.typed(said["user_code"]).status_code == 429
    assert Entry.objects.filter(action="device.failed").count() == attempts.OF_PERSON
    assert Entry.objects.filter(action="device.limited").exists()
    ana = console_of(person("ana", Role.VIEWER))
    assert device.typed(said["user_code"], ana).status_code == 200


@pytest.mark.long
def test_a_right_code_is_no_wrong_one(device: Device) -> None:
    for _ in range(attempts.OF_PERSON + 2):
        assert device.typed(device.start()["user_code"]).status_code == 200
    assert not Attempt.objects.filter(kind=Attempt.Kind.DEVICE).exists()


def test_a_consent_page_of_another_user_is_worth_nothing(device: Device) -> None:
    said = device.start()
    page = device.typed(said["user_code"])
    mallory = console_of(person("mallory", Role.VIEWER))

    assert device.press(page, console=mallory).status_code == 400
    assert reasons() == ["The consent page is of another user, or was changed."]
    assert device.error(said["device_code"]) == "authorization_pending"


def test_a_form_of_another_site_is_no_consent(device: Device, bob: User) -> None:
    page = device.typed(device.start()["user_code"])
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(bob)

    assert device.press(page, console=strict).status_code == 403
    assert not DeviceCode.objects.exclude(decided_at=None).exists()
    assert "sign_in.form_rejected" in actions()


@pytest.mark.parametrize("path", ["/oauth/device"])
def test_strangers_and_users_without_a_role_sign_nothing_in(device: Device, path: str) -> None:
    code = device.start()["user_code"]

    assert Client().get(path).status_code == 302
    assert device.typed(code, console_of(person("mallory"))).status_code == 403


ENDS = ["user disabled", "agent disabled", "switched off", "out of the toolset", "another owner"]


@pytest.mark.parametrize("end", ENDS)
def test_what_ended_between_consent_and_token_gets_none(
    device: Device, open_desk: Toolset, bob: User, alice: User, end: str
) -> None:
    said = device.start()
    device.press(device.typed(said["user_code"]))
    agent = AgentRow.objects.get(name="bob-registered-build-box")
    match end:
        case "user disabled":
            User.objects.filter(pk=bob.pk).update(is_active=False)
        case "agent disabled":
            accounts.set_agent_enabled(agent, False, by=alice)
        case "switched off":
            services.set_agent_sign_in(open_desk, False, by=alice)
        case "out of the toolset":
            services.unassign(open_desk, agent, by=alice)
        case _:
            AgentRow.objects.filter(pk=agent.pk).update(owner=alice)

    assert device.error(said["device_code"]) == "invalid_grant"
    assert reasons() == ["Agents are no longer signed in there."]
    assert not AgentToken.objects.exclude(resource="").exists()


WRONG: dict[str, dict[str, Any]] = {
    "no client": {"client_id": None},
    "unknown client": {"client_id": "csr_unknown"},
    "a client with an address that is none": {"client_id": "ftp://a.example/app.json"},
    "no resource": {"resource": None},
    "another toolset": {"resource": "http://127.0.0.1:8001/mcp/other"},
    "two slashes more": {"resource": "http://127.0.0.1:8001/mcp/desk//"},
    "the host": {"resource": "http://127.0.0.1:8001"},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_question_waits_for_nobody(device: Device, wrong: str) -> None:
    assert device.ask(**WRONG[wrong]).status_code in (400, 401)
    assert not DeviceCode.objects.exists()


def test_clients_for_browsers_are_none_for_devices(
    bob: User, open_desk: Toolset, here: str
) -> None:
    app = clients.register({"client_name": "App", "redirect_uris": ["https://a.example/back"]})

    answer = Device(bob, app.client_id, here).ask()

    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert reasons() == ["The client is none for devices."]


def test_a_code_is_its_clients(device: Device) -> None:
    said = device.start()
    device.press(device.typed(said["user_code"]))
    other = clients.register({"client_name": "Other", "grant_types": [DEVICE_GRANT]})

    assert device.poll(said["device_code"], client_id=other.client_id).status_code == 400
    assert device.poll("guessed").status_code == 400
    assert device.poll(said["user_code"]).status_code == 400
    assert device.poll(said["device_code"]).status_code == 200


def test_a_document_is_read_for_users_alone(
    bob: User, open_desk: Toolset, here: str, settings: Any
) -> None:
    settings.CLIENT_NETWORKS = ["127.0.0.0/8"]
    with DocumentHost() as documents:
        client_id = documents.describe(grant_types=[DEVICE_GRANT], redirect_uris=[])
        device = Device(bob, client_id, here)
        said = device.start()
        device.poll(said["device_code"])
        assert documents.asked == []

        device.press(device.typed(said["user_code"]))
        assert device.poll(said["device_code"]).status_code == 200
        # One that does not say that it is for devices is none.
        device.client_id = documents.describe("/other.json")
        assert device.typed(device.start()["user_code"]).status_code == 400
    assert reasons() == ["The client is none for devices."]


@pytest.mark.long
def test_a_flood_of_devices_is_bounded(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "STARTS", RequestRate(3, 60))
    assert [device.ask().status_code for _ in range(5)] == [200] * 3 + [429] * 2
    assert len(reasons()) == 1

    monkeypatch.setattr(views, "STARTS", RequestRate(1000, 60))
    monkeypatch.setattr(devices, "WAITING_MAX", 5)
    honest = Client().post(
        "/oauth/device_authorization",
        urlencode({"client_id": device.client_id, "resource": device.resource}),
        content_type=FORM,
        REMOTE_ADDR="192.0.2.1",
    )
    for _ in range(10):
        device.start()
    assert DeviceCode.objects.count() == 5
    assert device.error(honest.json()["device_code"]) == "authorization_pending"


def test_one_address_hides_nothing_behind_the_entries_of_its_flood(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answers say how long to wait, which is another number each second."""
    seconds = itertools.count()
    rate = RequestRate(1, 3600, clock=lambda: float(next(seconds)))
    monkeypatch.setattr(views, "STARTS", rate)

    answers = [device.ask() for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200] + [429] * 3
    waits = {answer["Retry-After"] for answer in answers[1:]}
    assert len(waits) == 3
    assert reasons() == ["Too many devices of this address ask for a code."]


def test_it_is_off_until_it_is_switched_on(
    toolset: Toolset, bob: User, box: SignInClient, here: str
) -> None:
    assert Device(bob, box.client_id, here).ask().status_code == 400
    assert not DeviceCode.objects.exists()
