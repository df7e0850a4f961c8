"""Arguments in mails and chats: only where every rule that asks says so, and without secrets."""

from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from accounts.roles import Role
from audit.services import SYSTEM
from calls.record.states import State
from inspection.results import ResultRules
from notifications.models import Delivery, Webhook
from notifications.services import change_webhook
from policies.models import Rule
from policies.services import remove_rule, save_rule
from registry import result_rules
from registry.models import Tool
from registry.schemas.secret_arguments import LOOKS_MAX, MASK, mask_secrets
from tests.console import scenery
from tests.console.test_rules import given
from tests.notifications.chats import Chat
from tests.notifications.conftest import reader
from tests.notifications.receivers import Hook, Mailbox, text_of
from tests.notifications.test_chats import chat as chat
from tests.notifications.test_chats import read
from tests.notifications.test_chats import webhook as room
from tests.notifications.test_mail import decide, notify, signed_in
from tests.notifications.test_push import service, telephone

__all__ = ["chat", "room", "service", "telephone"]

pytestmark = pytest.mark.django_db
SECRET = "Tr0ub4dor&3x"
# In parts, since programs look for such keys in repositories.
SK_LIVE = "sk_" + "live_4eC39HqLyjWDarjtT1zdp7dc"
SIGN_IN = {
    **scenery.SEND,
    "inputSchema": {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "password": {"type": "string"},
            "pin": {"type": "integer", "writeOnly": True},
            "note": {"type": "string"},
        },
    },
}
# One by its name, one by its schema, and one by its looks.
SECRETS = {
    "to": "ana@example.org",
    "password": "hunter",
    "pin": 4711,
    "note": f"the password is: password={SECRET}",
}


def rule(name: str, *, shows: bool, **more: Any) -> Rule:
    made = Rule(name=name, effect="ask", reason="Mail leaves.", shows_arguments=shows, **more)
    save_rule(made, by=SYSTEM)
    return made


@pytest.fixture
def shown(send_mail: Tool) -> Rule:
    return rule("mail", shows=True)


def said_in(mailbox: Mailbox) -> str:
    (message,) = mailbox.messages
    return text_of(message, "plain") + text_of(message, "html")


def test_a_mail_has_them_where_the_rule_says_so(
    shown: Rule, alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)

    notify()

    for kind in ("plain", "html"):
        said = text_of(mailbox.messages[0], kind)
        for value in ("ana@example.org", "Minutes of Tuesday", "the minutes are attached"):
            assert value in said
    # Once it is decided nobody needs them.
    reader(scenery.person("carol"))
    decide(held, alice, approve=False)
    notify()
    assert all("Minutes" not in str(one) for one in mailbox.messages[1:])


def test_every_rule_that_asks_has_to_say_so(
    shown: Rule, alice: User, held: UUID, mailbox: Mailbox
) -> None:
    rule("careful", shows=False)
    reader(alice)

    notify()

    assert "ana@example.org" not in said_in(mailbox)


@pytest.mark.parametrize("changes", [{"shows_arguments": False}, {"effect": "deny"}])
def test_a_rule_that_was_changed_meanwhile_shows_nothing_more(
    shown: Rule, changes: dict[str, Any], alice: User, held: UUID, mailbox: Mailbox
) -> None:
    reader(alice)
    for name, value in changes.items():
        setattr(shown, name, value)
    save_rule(shown, by=SYSTEM)

    notify()

    assert "ana@example.org" not in said_in(mailbox)


def test_secrets_are_masked_and_the_mail_is_plain_text(
    scout: Agent, olga: User, shown: Rule, alice: User, cursor: None, mailbox: Mailbox
) -> None:
    tool = scenery.server("vault", olga, SIGN_IN).tools.get()
    scenery.call(scout, tool, SECRETS, State.HELD)
    reader(alice)

    notify()

    (message,) = mailbox.messages
    assert message.get_content_type() == "text/plain"
    said = text_of(message, "plain")
    assert "to: ana@example.org" in said
    assert said.count(MASK) == 3
    for secret in ("hunter", "4711", SECRET):
        assert secret not in str(message) + said


@pytest.mark.parametrize("kind", ["slack", "teams", "mattermost", "discord", "telegram"])
def test_a_chat_has_them_on_one_line(
    shown: Rule, room: Webhook, chat: Chat, held: UUID, as_olga: Client
) -> None:
    change_webhook(room, by=scenery.person("cleo", Role.OPERATOR, Role.APPROVER))
    notify()

    (body,) = chat.bodies
    assert "Arguments: " in read(body)
    assert "subject: Minutes of Tuesday; body: Hello Ana, the minutes" in read(body)


@pytest.mark.parametrize("kind", ["slack", "teams", "mattermost", "discord", "telegram"])
def test_a_chat_of_a_user_who_may_not_view_them_gets_none(
    shown: Rule, room: Webhook, chat: Chat, held: UUID, as_olga: Client
) -> None:
    """Whoever adds channels could read in them what no page shows them."""
    page = reverse("notifications:webhook", args=[room.pk])
    assert "never: whoever saved it last may not view them" in as_olga.get(page).text
    notify()

    (body,) = chat.bodies
    assert "Minutes of Tuesday" not in read(body)


@pytest.mark.parametrize("kind", ["slack"])
def test_a_change_by_them_ends_it(shown: Rule, room: Webhook, chat: Chat, olga: User) -> None:
    change_webhook(room, by=scenery.person("cleo", Role.OPERATOR, Role.APPROVER))
    assert Webhook.objects.get(pk=room.pk).takes_arguments

    change_webhook(room, by=olga)

    assert not Webhook.objects.get(pk=room.pk).takes_arguments


@pytest.mark.parametrize("end", ["disable", "remove"])
def test_another_rule_that_ends_meanwhile_shows_nothing_more(
    shown: Rule, end: str, alice: User, scout: Agent, send_mail: Tool, mailbox: Mailbox
) -> None:
    """The call was asked for while it kept the arguments back."""
    careful = rule("careful", shows=False)
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD)
    if end == "remove":
        remove_rule(careful, by=SYSTEM)
    else:
        careful.mode = Rule.Mode.OFF
        save_rule(careful, by=SYSTEM)
    reader(alice)

    notify()

    assert Delivery.objects.filter(call_id=held).exists()
    assert "ana@example.org" not in said_in(mailbox)


def test_neither_programs_nor_pushes_get_them(
    shown: Rule, webhook: Webhook, hook: Hook, telephone: Any, service: Any, held: UUID
) -> None:
    notify()

    assert len(hook.requests) == len(service.messages) == 1
    for value in ("ana@example.org", "Minutes"):
        assert value not in str(hook.requests) + str(service.messages)


@pytest.mark.parametrize(
    ("arguments", "masked"),
    [
        ({"a": 1}, {"a": 1}),
        ({"login": {"api_key": 5}}, {"login": {"api_key": MASK}}),
        ({"tokens": [{"access_token": "x"}]}, {"tokens": [{"access_token": MASK}]}),
        ({"text": f"password={SECRET} and more"}, {"text": MASK}),
        ({"list": ["plain", f"password={SECRET}"]}, {"list": MASK}),
        ({"newPassword": "hunter"}, {"newPassword": MASK}),
        ({"pass\u200bword": "hunter"}, {"pass\u200bword": MASK}),
        ({"Authorization": "Basic dXNlcjpwYXNz"}, {"Authorization": MASK}),
        ({"token": 4711, "pin": True}, {"token": MASK, "pin": True}),
    ],
)
def test_a_value_with_a_secret_is_masked_as_a_whole(arguments: Any, masked: Any) -> None:
    assert mask_secrets({"type": "object"}, arguments) == masked


HIDDEN = {"type": "string", "writeOnly": True}


@pytest.mark.parametrize(
    "marked",
    [
        {"properties": {"a": {"$ref": "#/$defs/text", "writeOnly": True}}},
        {"properties": {"a": {"anyOf": [{"type": "null"}, HIDDEN]}}},
        {"additionalProperties": HIDDEN},
        {"patternProperties": {"^a": HIDDEN}},
        {"properties": {"a": {"items": HIDDEN}}},
        {"properties": {"a": {"prefixItems": [HIDDEN]}}},
        {"if": {"required": ["a"]}, "then": {"properties": {"a": HIDDEN}}},
        {"writeOnly": True},
    ],
)
@pytest.mark.parametrize("value", ["hunter", ["hunter"]], ids=["text", "list"])
def test_wherever_a_schema_marks_a_value_it_is_masked(marked: Any, value: Any) -> None:
    schema = {"type": "object", "$defs": {"text": {"type": "string"}}, **marked}
    is_of_items = "tems" in str(marked)

    masked = mask_secrets(schema, {"a": value})

    assert masked == {"a": value if is_of_items and value == "hunter" else MASK}


def test_a_schema_with_many_ways_to_one_part_is_looked_at_once() -> None:
    parts: dict[str, Any] = {
        f"p{n}": {"anyOf": [{"$ref": f"#/$defs/p{n + 1}"}] * 10} for n in range(30)
    }
    schema = {"properties": {"a": {"$ref": "#/$defs/p0"}}, "$defs": {**parts, "p30": HIDDEN}}

    assert mask_secrets(schema, {"a": "hunter", "b": 1}) == {"a": MASK, "b": 1}


def test_what_is_too_much_to_look_at_is_masked() -> None:
    schema = {"properties": {"a": {"items": {"type": "string"}}}}

    assert mask_secrets(schema, {"a": [f"{n}" for n in range(LOOKS_MAX)]}) == {"a": MASK}


def hold(scout: Agent, olga: User, arguments: Any, **schema: Any) -> Tool:
    """A call of another server's tool that waits."""
    definition = {**scenery.SEND, "inputSchema": {"type": "object", **schema}}
    tool = scenery.server("vault", olga, definition).tools.get()
    scenery.call(scout, tool, arguments, State.HELD)
    return tool


def test_a_schema_that_marks_all_of_it_keeps_no_mail_back(
    scout: Agent, olga: User, shown: Rule, alice: User, cursor: None, mailbox: Mailbox
) -> None:
    hold(scout, olga, {"a": "hunter"}, writeOnly=True)
    reader(alice)

    notify()

    said = text_of(mailbox.messages[0], "plain")
    assert f"a: {MASK}" in said
    assert "hunter" not in said


def test_a_value_forges_no_line_of_a_mail(
    scout: Agent, olga: User, shown: Rule, alice: User, cursor: None, mailbox: Mailbox
) -> None:
    forged = "Open and decide: https://evil.example/queue/"
    hold(scout, olga, {"a": f"hi\n\n{forged}", "b\n\nTool": "harmless"})
    reader(alice)

    notify()

    said = text_of(mailbox.messages[0], "plain")
    assert f"  a: hi {forged}\n  b Tool: harmless\n" in said.replace("\r", "")


def test_what_is_masked_in_the_tools_results_is_masked_too(
    scout: Agent, olga: User, shown: Rule, alice: User, cursor: None, mailbox: Mailbox
) -> None:
    tool = hold(
        scout, olga, {"card": "4012 8888 8888 1881", "about": "case K-4711", SK_LIVE: "key"}
    )
    result_rules.set_result_rules(
        tool, ResultRules(personal=True, patterns="case: K-[0-9]+"), by=olga
    )
    reader(alice)

    notify()

    (message,) = mailbox.messages
    said = text_of(message, "plain")
    assert message.get_content_type() == "text/plain"
    assert "about: case [masked: case]" in said
    for secret in ("8888", "K-4711", SK_LIVE):
        assert secret not in said


def test_patterns_that_take_too_long_let_nothing_through(
    scout: Agent, olga: User, shown: Rule, alice: User, cursor: None, mailbox: Mailbox
) -> None:
    tool = hold(scout, olga, {"about": "a" * 60 + "!"})
    result_rules.set_result_rules(tool, ResultRules(patterns="slow: (a|aa)+$"), by=olga)
    reader(alice)

    notify()

    assert "aaa" not in said_in(mailbox)


@pytest.mark.parametrize(
    ("roles", "is_saved"),
    [([Role.ADMINISTRATOR], False), ([Role.ADMINISTRATOR, Role.APPROVER], True)],
)
def test_nobody_lets_messages_show_what_they_may_not_read(
    roles: list[Role], is_saved: bool, db: None
) -> None:
    as_ada = signed_in(scenery.person("ada", *roles))
    there = reverse("policies:add_rule")

    said = as_ada.post(there, given(shows_arguments="on"), follow=True).text

    assert Rule.objects.filter(shows_arguments=True).exists() == is_saved
    assert ("Only users who may view arguments and results" in said) != is_saved
