"""Statements that people countersign for programs without tools, by REST."""

import asyncio
import hashlib
import hmac
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from threading import Thread
from typing import Any
from uuid import UUID

import aiohttp
import jwt
import pytest
from asgiref.sync import sync_to_async
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import CommandError, call_command
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import services as accounts
from accounts.models import User
from accounts.roles import Role
from approvals import decision_keys, payload_erasure
from approvals.editing import Edit, edit
from approvals.models import Approval, DecisionKey
from approvals.services import vote
from audit.models import Entry
from audit.services import SYSTEM
from calls.models import Call
from calls.record.states import State
from calls.record.transitions import Move, move_now
from core import seal
from core.request_rate import RequestRate
from examples import statement as example
from gateway.rest import approvals
from gateway.statements import decisions
from gateway.statements.server import TOOL, reply
from notifications import webhook_requests
from notifications.cursor import read_entries
from notifications.models import Delivery, Webhook
from notifications.payloads import payload
from notifications.sending import send_due
from notifications.services import add_webhook
from policies.models import Effect
from registry import services
from registry.discovery import discovery
from registry.models import Server, Toolset
from tests.conftest import person
from tests.gateway.agent import Reply
from tests.gateway.conftest import add_rule, decide, decide_soon
from tests.gateway.test_rest import Rest
from tests.notifications.receivers import webhook_receiver
from tests.processes import Stack

pytestmark = pytest.mark.django_db(transaction=True)

STATEMENT = {
    "what": "Pay invoice 4711 of Example Ltd.",
    "who": "accounting",
    "why": "Ticket FIN-12",
    "details": [{"type": "payment", "amount": "1200.50", "currency": "EUR", "invoice": 4711}],
}


@pytest.fixture
def statements(toolset: Toolset, bob: User) -> Server:
    """The built-in server in scout's toolset, where a rule allows everything."""
    server = services.register(
        "statements", transport="stdio", command="statements", owner=bob, by=bob, publish=True
    )
    (found,) = asyncio.run(discovery.look_at([server.pk]))
    assert found.succeeded, found.summary
    services.add_server(toolset, server, by=bob)
    return server


@pytest.fixture
def people_are_asked(statements: Server) -> None:
    add_rule(Effect.ASK, "countersign", server="statements", reason="It is countersigned.")


@pytest.fixture
def rest(stack: Stack, http: aiohttp.ClientSession, statements: Server, scout_token: str) -> Rest:
    assert stack.web
    assert stack.worker
    return Rest(http, stack.web_url, scout_token)


async def asked(rest: Rest, statement: Any = STATEMENT, *, wait: int = 0, key: str = "") -> Reply:
    body = {"statement": statement}
    return await rest.send("POST", f"approvals?wait={wait}", body, **{"Idempotency-Key": key})


async def verified(rest: Rest, signed: str) -> dict[str, Any]:
    """As a program does that knows nothing but the public keys."""
    keys = jwt.PyJWKSet.from_dict((await rest.get("approvals/keys")).last)
    header = jwt.get_unverified_header(signed)
    assert header["typ"] == "countersign-decision+jwt"
    key = keys[header["kid"]]
    return jwt.decode(signed, key.key, algorithms=["EdDSA"], options={"verify_aud": False})


@pytest.mark.long
@pytest.mark.usefixtures("people_are_asked")
async def test_an_approved_statement_ends_in_a_signed_decision(rest: Rest, alice: User) -> None:
    pending = await asked(rest)
    assert pending.status == 202
    assert (pending.last["decision"], pending.last["signed_decision"]) == (None, None)

    waiting = asyncio.create_task(rest.get(f"approvals/{pending.last['id']}?wait=30"))
    await decide(alice, reason="Checked.")
    decided = (await waiting).last

    assert decided["decision"] == "approved"
    claims = await verified(rest, decided["signed_decision"])
    assert claims["statement"] == STATEMENT
    canonical = json.dumps(STATEMENT, sort_keys=True, separators=(",", ":")).encode()
    assert claims["statement_sha256"] == hashlib.sha256(canonical).hexdigest()
    assert (claims["jti"], claims["sub"]) == (pending.last["id"], "scout")
    assert (claims["edited"], claims["decision"]) == (False, "approved")
    assert claims["exp"] == claims["iat"] + 3600
    assert [(vote["name"], vote["approve"]) for vote in claims["votes"]] == [("alice", True)]


async def run_example(rest: Rest, *more: str) -> asyncio.subprocess.Process:
    """The example as its page runs it."""
    pipe = asyncio.subprocess.PIPE
    what, who, why = (str(STATEMENT[name]) for name in ("what", "who", "why"))
    given = [what, "--who", who, "--why", why, *more]
    env = {**os.environ, "COUNTERSIGN_TOKEN": rest.token, "COUNTERSIGN_URL": f"{rest.url}/"}
    argv = [sys.executable, example.__file__, *given]
    return await asyncio.create_subprocess_exec(*argv, env=env, stdout=pipe, stderr=pipe)


@pytest.mark.long
@pytest.mark.usefixtures("people_are_asked")
async def test_the_example_waits_for_people_and_goes_by_their_decision(
    rest: Rest, alice: User
) -> None:
    program = await run_example(rest, "--details", json.dumps(STATEMENT["details"]))
    await decide(alice, reason="Checked.")
    said, waited = (one.decode() for one in await program.communicate())

    asked = await Approval.objects.aget()
    assert program.returncode == 0, waited
    assert said == f"approved by alice: {asked.pk}\n"
    assert waited.startswith("Waiting for people: http")
    assert waited.rstrip().endswith(f"/calls/{asked.pk}/")
    call = await Call.objects.aget(pk=asked.pk)
    assert json.loads(bytes(call.arguments)) == STATEMENT

    refused = await run_example(rest)
    await decide(alice, approve=False)
    said, why = (one.decode() for one in await refused.communicate())
    assert (refused.returncode, said) == (1, "")
    assert why.splitlines()[-1] == "The statement was not approved: denied."


@pytest.mark.long
async def test_the_example_acts_at_once_on_what_a_rule_allows_and_not_without_a_token(
    rest: Rest,
) -> None:
    allowed = await run_example(rest)
    said, _waited = (one.decode() for one in await allowed.communicate())
    assert allowed.returncode == 0
    assert said.startswith("allowed by a rule: ")

    unknown = await run_example(Rest(rest.http, rest.url, "csa_unknown"))
    said, why = (one.decode() for one in await unknown.communicate())
    assert (unknown.returncode, said) == (1, "")
    assert "Traceback" not in why


@pytest.mark.long
@pytest.mark.usefixtures("people_are_asked")
async def test_a_webhook_tells_that_it_was_decided(rest: Rest, alice: User, bob: User) -> None:
    with webhook_receiver() as hook:
        made = Webhook(name="ledger", url=hook.url, events=["approval.decided"])
        hook.secrets = [await sync_to_async(add_webhook)(made, by=bob)]
        pending = await asked(rest)

        await decide(alice, reason="Checked.")
        while not hook.requests:
            await asyncio.sleep(0.02)

    ((_id, told),) = hook.requests
    assert told["type"] == "approval.decided"
    assert told["data"]["call"] == pending.last["id"]
    assert told["data"]["fingerprint"] == pending.last["fingerprint"]
    assert told["data"]["tool"] == "statements.countersign"
    assert told["data"]["reason"] == "Approved by alice. Checked."
    assert told["data"]["decision"] == "approved"
    # The statement itself is read where the program is known.
    assert "4711" not in str(hook.requests)
    decided = (await rest.get(f"approvals/{told['data']['call']}")).last
    claims = await verified(rest, decided["signed_decision"])
    # RFC 9396, as the program wrote them.
    assert claims["statement"]["details"] == STATEMENT["details"]


async def told_without_a_worker(stack: Stack, rest: Rest, alice: User, bob: User) -> None:
    """A program's webhook, after people approved a statement that no worker takes."""
    stack.end_worker()
    url, events = "https://ledger.example.org/hook", ["approval.needed", "approval.decided"]
    made = Webhook(name="ledger", url=url, events=events)
    await sync_to_async(add_webhook)(made, by=bob)
    await sync_to_async(read_entries)()
    await asked(rest)
    await decide(alice, reason="Checked.")
    await sync_to_async(read_entries)()


@pytest.mark.long
@pytest.mark.usefixtures("people_are_asked")
async def test_a_program_is_told_only_once_there_is_a_decision_to_read(
    stack: Stack,
    http: aiohttp.ClientSession,
    statements: Server,
    scout_token: str,
    alice: User,
    bob: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert stack.web
    rest = Rest(http, stack.web_url, scout_token)
    sent: list[tuple[str, str]] = []

    def note(delivery: Delivery) -> str:
        told = json.loads(payload(delivery))
        sent.append((told["type"], told["data"].get("decision", "")))
        return ""

    monkeypatch.setattr(webhook_requests, "send", note)
    await told_without_a_worker(stack, rest, alice, bob)
    await sync_to_async(send_due)()
    assert sent == [("approval.needed", "")]
    call = await Call.objects.aget()
    shown = (await rest.get(f"approvals/{call.pk}")).last
    assert (call.state, shown["decision"]) == (State.QUEUED, None)

    # No worker came in time: it is not approved any more, and the program hears that.
    await sync_to_async(move_now)(
        Move(call.pk, State.QUEUED, State.EXPIRED, SYSTEM, reason="No worker took it in time.")
    )
    await Delivery.objects.aupdate(next_at=timezone.now())
    await sync_to_async(send_due)()

    shown = (await rest.get(f"approvals/{call.pk}")).last
    assert shown["decision"] == "expired"
    assert sent[1:] == [("approval.decided", "expired")]


@pytest.mark.long
@pytest.mark.usefixtures("people_are_asked")
async def test_a_demos_decision_says_so(
    rest: Rest, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "is_demo", lambda: True)
    pending = await asked(rest)
    await decide(alice)
    await rest.get(f"approvals/{pending.last['id']}?wait=30")
    calls = Call.objects.select_related("agent", "amendment", "definition", "tool")

    shown = await sync_to_async(decisions.described)(await calls.aget())

    assert (await verified(rest, shown["signed_decision"]))["demo"] is True


@pytest.mark.long
@pytest.mark.usefixtures("people_are_asked")
async def test_the_card_and_the_record_are_those_of_every_call(rest: Rest, alice: User) -> None:
    pending = await asked(rest)

    def entries() -> list[str]:
        found = Entry.objects.filter(call_id=pending.last["id"]).order_by("pk")
        return list(found.values_list("action", flat=True))

    await decide(alice)
    await rest.get(f"approvals/{pending.last['id']}?wait=30")
    written = await sync_to_async(entries)()

    assert written[0] == "call.held"
    assert {"approval.voted", "call.approved", "call.succeeded"} <= {*written}


@pytest.mark.long
@pytest.mark.usefixtures("people_are_asked")
async def test_a_denied_one_is_signed_as_well(rest: Rest, alice: User) -> None:
    answer, _ = await asyncio.gather(
        asked(rest, wait=30), decide_soon(alice, approve=False, reason="Not this month.")
    )

    assert answer.status == 201
    claims = await verified(rest, answer.last["signed_decision"])
    assert claims["decision"] == "denied"
    assert "exp" not in claims
    assert "Not this month." in answer.last["outcome"]


async def test_a_rule_that_allows_is_told_apart_from_people(rest: Rest) -> None:

    answer = await asked(rest, wait=30)

    claims = await verified(rest, answer.last["signed_decision"])
    assert (claims["decision"], claims["votes"]) == ("allowed", [])


@pytest.mark.long
@pytest.mark.usefixtures("people_are_asked")
async def test_an_edited_statement_is_the_one_that_is_signed(rest: Rest, alice: User) -> None:
    pending = await asked(rest)
    changed = {**STATEMENT, "what": "Pay half of invoice 4711 of Example Ltd."}

    def edit_it() -> None:
        approval = Approval.objects.for_queue().get(pk=pending.last["id"])
        seen = approval.call.call_digest
        edit(approval, Edit(seen_digest=seen, arguments=json.dumps(changed).encode()), by=alice)

    await sync_to_async(edit_it)()
    carol = await sync_to_async(person)("carol", Role.APPROVER)
    await decide(carol)
    decided = (await rest.get(f"approvals/{pending.last['id']}?wait=30")).last

    claims = await verified(rest, decided["signed_decision"])
    assert (claims["edited"], claims["statement"]) == (True, changed)


@pytest.mark.long
@pytest.mark.usefixtures("people_are_asked")
async def test_no_decision_is_signed_over_an_erased_statement(rest: Rest, alice: User) -> None:
    pending = await asked(rest)
    await decide(alice)
    decided = (await rest.get(f"approvals/{pending.last['id']}?wait=30")).last
    call = await Call.objects.select_related("agent", "server").aget()
    erase = sync_to_async(payload_erasure.erase)

    await erase(call, by=SYSTEM, reason="A customer asked.")
    erased = (await rest.get(f"approvals/{pending.last['id']}")).last

    assert (decided["decision"], decided["unsigned_reason"]) == ("approved", None)
    assert (erased["decision"], erased["statement"]) == ("approved", None)
    assert erased["signed_decision"] is None
    assert erased["unsigned_reason"] == "The payload was erased."
    # The first one holds until it expires.
    assert (await verified(rest, decided["signed_decision"]))["statement"] == STATEMENT


@pytest.mark.long
@pytest.mark.usefixtures("people_are_asked")
@pytest.mark.parametrize("erases", [False, True])
async def test_no_decision_is_signed_over_a_statement_that_was_changed_in_private(
    rest: Rest, alice: User, erases: bool
) -> None:
    pending = await asked(rest)
    changed = {**STATEMENT, "what": "Pay half of invoice 4711 of Example Ltd."}

    def edit_it() -> None:
        approval = Approval.objects.for_queue().get(pk=pending.last["id"])
        seen = approval.call.call_digest
        given = Edit(seen_digest=seen, arguments=json.dumps(changed).encode(), private=True)
        edit(approval, given, by=alice)

    def erase_it() -> None:
        call = Call.objects.select_related("agent", "server").get()
        payload_erasure.erase(call, by=SYSTEM, reason="A customer asked.")

    await sync_to_async(edit_it)()
    waiting = (await rest.get(f"approvals/{pending.last['id']}")).last
    assert (waiting["statement"], waiting["unsigned_reason"]) == (None, None)
    await decide(await sync_to_async(person)("carol", Role.APPROVER))
    await rest.get(f"approvals/{pending.last['id']}?wait=30")
    if erases:
        await sync_to_async(erase_it)()
    decided = (await rest.get(f"approvals/{pending.last['id']}")).last

    assert (decided["decision"], decided["statement"]) == ("approved", None)
    assert decided["signed_decision"] is None
    why = "The payload was erased." if erases else "An approver changed the statement in private."
    assert decided["unsigned_reason"] == why


@pytest.mark.long
@pytest.mark.usefixtures("people_are_asked")
async def test_an_idempotency_key_leads_to_the_same_approval(rest: Rest, alice: User) -> None:
    one = await asked(rest, key="payment-4711")
    two = await asked(rest, key="payment-4711")

    assert one.last["id"] == two.last["id"]
    assert await Call.objects.acount() == 1


@pytest.mark.long
@pytest.mark.usefixtures("people_are_asked")
@pytest.mark.parametrize("keys", [("run-1", "run-2"), ("run-1", ""), ("", "run-2"), ("", "")])
async def test_two_programs_never_share_one_approval(
    rest: Rest, alice: User, keys: tuple[str, str]
) -> None:
    one, two = [(await asked(rest, key=key)).last for key in keys]
    assert one["id"] != two["id"]

    await sync_to_async(approve)(UUID(one["id"]), alice)
    first = (await rest.get(f"approvals/{one['id']}?wait=30")).last
    second = (await rest.get(f"approvals/{two['id']}")).last
    assert (first["decision"], second["decision"]) == ("approved", None)
    # Nor is the decision on an earlier one another's that comes after it.
    third = (await asked(rest, key=keys[1] and "run-3")).last
    assert third["id"] not in (one["id"], two["id"])
    assert third["decision"] is None


def approve(call_id: UUID, by: User) -> None:
    approval = Approval.objects.for_queue().get(pk=call_id)
    vote(approval, by=by, approve=True, seen_digest=approval.call.call_digest)


@pytest.mark.long
async def test_two_that_a_rule_allows_are_two_as_well(rest: Rest) -> None:
    ids = {(await asked(rest, key=key, wait=30)).last["id"] for key in ("run-1", "run-2", "", "")}

    assert len(ids) == 4


@pytest.mark.long
@pytest.mark.parametrize("more", [{"bogus": 1}, {"arguments": {**STATEMENT}}, {"again": True}])
async def test_a_member_that_there_is_not_is_said(rest: Rest, more: dict[str, Any]) -> None:
    answer = await rest.send("POST", "approvals", {"statement": STATEMENT, **more})

    assert answer.status == 400
    assert answer.last["detail"] == f"There is no member {next(iter(more))}."
    assert not await Call.objects.aexists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("statement", "path"),
    [
        (None, "$.why"),
        ({**STATEMENT, "what": ""}, "$.what"),
        ({**STATEMENT, "who": " \u3000"}, "$.who"),
        ({**STATEMENT, "details": [{"amount": 1}]}, "$.details[0].type"),
        ({**STATEMENT, "approve": True}, "$.approve"),
        ("pay", "$"),
    ],
)
async def test_a_statement_that_is_none_is_refused_with_the_place(
    rest: Rest, statement: Any, path: str
) -> None:
    refused = await asked(rest, statement)

    assert refused.status == 422
    assert path in [one["path"] for one in refused.last["violations"]]


@pytest.mark.long
@pytest.mark.parametrize("wanted", ["other", "\0", 7, {}])
async def test_a_toolset_that_it_has_not_is_said(rest: Rest, wanted: object) -> None:
    body = {"statement": STATEMENT, "toolset": wanted}

    assert (await rest.send("POST", "approvals", body)).status == 404
    assert (await rest.send("POST", "approvals", {**body, "toolset": "desk"})).status == 201


@pytest.mark.long
async def test_only_its_own_agent_sees_it(rest: Rest, bob: User) -> None:
    pending = await asked(rest)
    other = await sync_to_async(accounts.create_agent)("other", owner=bob, by=bob)
    rest.token = await sync_to_async(accounts.issue_token)(other, by=bob)

    assert (await rest.get(f"approvals/{pending.last['id']}")).status == 404
    assert (await asked(rest)).status == 404


async def test_other_calls_are_no_approvals(rest: Rest) -> None:
    call = await rest.call("rec.echo", {"text": "hi"})

    assert (await rest.get(f"approvals/{call.last['id']}")).status == 404


async def test_no_other_tool_is_signed_where_its_server_became_that_of_statements(
    rest: Rest, statements: Server
) -> None:
    call = await rest.call("rec.echo", {"text": "hi"})
    await Server.objects.filter(slug="rec").aupdate(argv=statements.argv)

    assert (await rest.get(f"approvals/{call.last['id']}")).status == 404


async def test_without_a_token_nothing_is_shown(rest: Rest) -> None:
    rest.token = "csa_none"

    assert (await asked(rest)).status == 401


async def test_the_public_keys_need_no_token_and_are_kept_for_minutes(rest: Rest) -> None:
    rest.token = ""

    answer = await rest.get("approvals/keys")

    assert answer.status == 200
    assert [one["kty"] for one in answer.last["keys"]] == ["OKP"]
    assert answer.last["revoked_keys"] == []
    assert not {"d", "sealed_private"} & set(answer.last["keys"][0])


def test_the_public_keys_are_cached_and_an_address_may_ask_only_so_often(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approvals, "KEYS_RATE", RequestRate(3, 60))
    there = reverse("api:approval_keys")

    first = client.get(there)
    assert first["Cache-Control"] == "public, max-age=300"
    same = client.get(there, headers={"If-None-Match": first["ETag"]})
    assert (same.status_code, same.content) == (304, b"")
    decision_keys.new_key()
    changed = client.get(there, headers={"If-None-Match": first["ETag"]})
    assert len(changed.json()["keys"]) == 2
    refused = client.get(there)

    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 60


def test_a_withdrawn_key_is_published_as_such_and_signs_no_more(db: None) -> None:
    first = decision_keys.new_key()
    out = StringIO()

    with pytest.raises(CommandError, match="Say why"):
        call_command("decision_key", withdraw=str(first.pk))
    call_command("decision_key", withdraw=str(first.pk), reason="A disk was lost.", stdout=out)

    keys = decision_keys.key_set()
    assert [one["kid"] for one in keys["keys"]] != [str(first.pk)]
    revoked = keys["revoked_keys"][0]
    assert (revoked["kid"], revoked["revoked"]["reason"]) == (str(first.pk), "A disk was lost.")
    kid = jwt.get_unverified_header(decision_keys.sign({"a": 1}))["kid"]
    assert [one["kid"] for one in keys["keys"]] == [kid]
    assert kid in out.getvalue()
    entry = Entry.objects.get(action="decision_key.withdrawn")
    assert (entry.actor, entry.details["key"]) == ("command line", str(first.pk))
    with pytest.raises(CommandError, match="withdrawn already"):
        call_command("decision_key", withdraw=str(first.pk), reason="Again.")
    for unknown in (str(UUID(int=1)), "none"):
        with pytest.raises(CommandError, match="There is no key"):
            call_command("decision_key", withdraw=unknown, reason="Again.")
    with pytest.raises(DatabaseError, match="stays withdrawn"), transaction.atomic():
        DecisionKey.objects.filter(pk=first.pk).update(withdrawn_at=None, reason="")
    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
        DecisionKey.objects.filter(pk=kid).update(public=b"another")
    call_command("decision_key", list=True, stdout=out)
    assert f"{first.pk}  made" in out.getvalue()


def test_a_key_other_than_the_newest_is_withdrawn_alone(db: None) -> None:
    first, second = decision_keys.new_key(), decision_keys.new_key()

    signing = decision_keys.withdraw(first, reason="An old one.", by=SYSTEM)

    assert signing == second
    assert DecisionKey.objects.count() == 2


def test_no_earlier_key_signs_again_once_the_newest_is_withdrawn(db: None) -> None:
    first, second = decision_keys.new_key(), decision_keys.new_key()

    signing = decision_keys.withdraw(second, reason="A disk was lost.", by=SYSTEM)

    assert signing not in (first, second)
    assert jwt.get_unverified_header(decision_keys.sign({"a": 1}))["kid"] == str(signing.pk)
    assert str(first.pk) in {one["kid"] for one in decision_keys.key_set()["keys"]}


@pytest.mark.long
async def test_a_new_key_signs_and_the_old_one_still_verifies(rest: Rest) -> None:
    before = (await asked(rest, wait=30)).last["signed_decision"]
    made = await sync_to_async(decision_keys.new_key)()
    after = (await asked(rest, {**STATEMENT, "why": "Ticket FIN-13"}, wait=30)).last

    assert jwt.get_unverified_header(after["signed_decision"])["kid"] == str(made.pk)
    await verified(rest, after["signed_decision"])
    await verified(rest, before)


async def test_the_example_acts_on_nothing_but_its_own_statement(rest: Rest) -> None:
    signed = (await asked(rest, wait=30)).last["signed_decision"]
    keys = (await rest.get("approvals/keys")).last

    assert example.verified(signed, keys, STATEMENT)["decision"] == "allowed"
    with pytest.raises(example.Refused, match="changed the statement"):
        example.verified(signed, keys, {**STATEMENT, "what": "Pay invoice 4712."})


@pytest.mark.long
@pytest.mark.parametrize("other", [True, 1.0, "1"])
async def test_the_example_tells_values_apart_that_python_takes_for_equal(
    rest: Rest, other: object
) -> None:
    statement = {**STATEMENT, "details": [{"type": "payment", "lines": 1}]}
    answer = await asked(rest, statement, wait=30)
    keys = (await rest.get("approvals/keys")).last
    changed = {**STATEMENT, "details": [{"type": "payment", "lines": other}]}

    example.verified(answer.last["signed_decision"], keys, statement)
    with pytest.raises(example.Refused, match="changed the statement"):
        example.verified(answer.last["signed_decision"], keys, changed)


async def signed_anew(rest: Rest, **changes: Any) -> tuple[str, dict[str, Any]]:
    """A decision of this installation with other claims, and the keys."""
    claims = await verified(rest, (await asked(rest, wait=30)).last["signed_decision"])
    left = {name: value for name, value in (claims | changes).items() if value is not None}
    return await sync_to_async(decision_keys.sign)(left), (await rest.get("approvals/keys")).last


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "why"), [({"demo": True}, "of a demo"), ({"exp": None}, "has no end")]
)
async def test_the_example_acts_on_no_decision_of_a_demo_or_without_an_end(
    rest: Rest, changes: dict[str, Any], why: str
) -> None:
    example.verified(*await signed_anew(rest), STATEMENT)

    with pytest.raises(example.Refused, match=why):
        example.verified(*await signed_anew(rest, **changes), STATEMENT)


@contextmanager
def broken_proxy(keys: list[str]) -> Iterator[str]:
    """Hangs up on the first request and answers others with a page; keeps their keys."""

    class BrokenProxy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            keys.append(self.headers["Idempotency-Key"])
            if len(keys) > 1:
                self.send_error(502)

    server = ThreadingHTTPServer(("127.0.0.1", 0), BrokenProxy)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_example_asks_once_more_with_the_same_key_and_says_what_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys: list[str] = []
    monkeypatch.setattr(example, "RETRY_AFTER_S", 0)
    monkeypatch.setenv("COUNTERSIGN_TOKEN", "csa_x")
    argv = ["statement.py", "Pay", "--who", "accounting", "--why", "FIN-12", "--url"]

    with broken_proxy(keys) as there:
        monkeypatch.setattr(sys, "argv", [*argv, there])
        assert example.main() == 1
    answered = capsys.readouterr().err
    assert example.main() == 1
    away = capsys.readouterr().err

    assert len(keys) == 2
    assert len({*keys}) == 1
    assert answered.endswith("\nCountersign or a proxy before it answered 502 Bad Gateway.\n")
    assert away.startswith("No usable answer from Countersign: ")
    assert "refused" in away


def as_none(claims: bytes, _keys: dict[str, Any], kid: str) -> str:
    return f"{part({'alg': 'none', 'kid': kid})}.{seal.to_text(claims)}."


def as_hmac(claims: bytes, keys: dict[str, Any], kid: str) -> str:
    """By the public key as a password."""
    signed = f"{part({'alg': 'HS256', 'kid': kid})}.{seal.to_text(claims)}"
    public = seal.from_text(keys["keys"][0]["x"])
    return f"{signed}.{seal.to_text(hmac.digest(public, signed.encode(), 'sha256'))}"


def as_own_key(claims: bytes, _keys: dict[str, Any], kid: str) -> str:
    """By a key that its own header brings along."""
    key = Ed25519PrivateKey.generate()
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": seal.to_text(key.public_key().public_bytes_raw())}
    signed = f"{part({'alg': 'EdDSA', 'kid': kid, 'jwk': jwk})}.{seal.to_text(claims)}"
    return f"{signed}.{seal.to_text(key.sign(signed.encode()))}"


def part(header: dict[str, Any]) -> str:
    return seal.to_text(json.dumps(header).encode())


@pytest.mark.long
@pytest.mark.parametrize("forge", [as_none, as_hmac, as_own_key])
@pytest.mark.parametrize("kid", ["its own", "unknown"])
async def test_the_example_believes_no_other_algorithm_or_key(
    rest: Rest, forge: Callable[[bytes, dict[str, Any], str], str], kid: str
) -> None:
    signed = (await asked(rest, wait=30)).last["signed_decision"]
    keys = (await rest.get("approvals/keys")).last
    claims = seal.from_text(signed.split(".")[1])
    known = jwt.get_unverified_header(signed)["kid"] if kid == "its own" else "x"

    example.verified(signed, keys, STATEMENT)
    with pytest.raises((jwt.InvalidTokenError, example.Refused)):
        example.verified(forge(claims, keys, known), keys, STATEMENT)


async def test_a_changed_decision_does_not_verify(rest: Rest) -> None:
    head, body, signature = (await asked(rest, wait=30)).last["signed_decision"].split(".")
    claims = json.loads(seal.from_text(body)) | {"decision": "approved"}
    forged = ".".join([head, seal.to_text(json.dumps(claims).encode()), signature])

    with pytest.raises(jwt.InvalidSignatureError):
        await verified(rest, forged)


@pytest.mark.long
async def test_a_key_that_cannot_be_opened_is_said_and_signs_nothing(rest: Rest) -> None:
    await sync_to_async(decision_keys.new_key)()
    await DecisionKey.objects.aupdate(sealed_private=b"of another installation")

    answer = await asked(rest, wait=30)

    assert answer.status == 503
    assert "cannot be opened here" in answer.last["detail"]


def test_its_server_answers_as_the_protocol_says() -> None:
    ask: Any = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}

    confirmed = reply({**ask, "params": {"name": "countersign", "arguments": STATEMENT}})
    assert confirmed is not None
    assert confirmed["result"]["structuredContent"] == {"countersigned": True}
    assert reply({**ask, "params": {"name": "other"}})["error"]["code"] == -32602  # type: ignore[index]
    assert reply({**ask, "method": "resources/list"})["error"]["code"] == -32601  # type: ignore[index]
    assert reply({"jsonrpc": "2.0", "method": "notifications/initialized"}) is None
    assert TOOL["annotations"]["destructiveHint"]  # type: ignore[index]
