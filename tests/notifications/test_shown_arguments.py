"""Arguments in mails and chats: only where every rule that asks says so, and without secrets."""

from typing import Any
from uuid import UUID

import pytest

from accounts.models import Agent, User
from audit.services import SYSTEM
from calls.record.states import State
from notifications.models import Webhook
from policies.models import Rule
from policies.services import save_rule
from registry.models import Tool
from registry.schemas.secret_arguments import MASK, mask_secrets
from tests.console import scenery
from tests.notifications.chats import Chat
from tests.notifications.conftest import reader
from tests.notifications.receivers import Hook, Mailbox, text_of
from tests.notifications.test_chats import chat as chat
from tests.notifications.test_chats import read
from tests.notifications.test_chats import webhook as room
from tests.notifications.test_mail import decide, notify
from tests.notifications.test_push import service, telephone

__all__ = ["chat", "room", "service", "telephone"]

pytestmark = pytest.mark.django_db
SECRET = "Tr0ub4dor&3x"
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
def test_a_chat_has_them_on_one_line(shown: Rule, room: Webhook, chat: Chat, held: UUID) -> None:
    notify()

    (body,) = chat.bodies
    assert "Arguments: " in read(body)
    assert "subject: Minutes of Tuesday; body: Hello Ana, the minutes" in read(body)


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
    ],
)
def test_a_value_with_a_secret_is_masked_as_a_whole(arguments: Any, masked: Any) -> None:
    assert mask_secrets({"type": "object"}, arguments) == masked
