"""Arguments in mails and chats: only where every rule that asks says so, and without secrets."""

from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from accounts import tokens
from accounts.agent_sign_in import access_tokens
from accounts.models import Agent, User
from accounts.roles import Role
from audit.services import SYSTEM, record
from calls.record.states import State
from inspection.results import ResultRules
from notifications import services
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
from tests.notifications.test_chats import decide as deny
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


@pytest.mark.long
@pytest.mark.parametrize("kind", ["slack", "teams", "mattermost", "discord", "telegram"])
def test_a_chat_has_each_on_a_line(
    shown: Rule, room: Webhook, chat: Chat, held: UUID, as_olga: Client
) -> None:
    change_webhook(room, by=scenery.person("cleo", Role.OPERATOR, Role.APPROVER))
    notify()

    (body,) = chat.bodies
    lines = read(body).replace("`", "").replace("&amp;", "&").splitlines()
    assert "Arguments:" in lines
    assert 'subject: "Minutes of Tuesday"' in lines
    assert any(one.startswith('body: "Hello Ana, the minutes') for one in lines)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["slack", "teams", "mattermost", "discord", "telegram"])
def test_no_value_passes_for_another_argument_in_a_chat(
    shown: Rule, room: Webhook, chat: Chat, scout: Agent, olga: User, cursor: None
) -> None:
    change_webhook(room, by=scenery.person("cleo", Role.OPERATOR, Role.APPROVER))
    forged = 'hi"; to: ana@example.org; subject: "lunch'
    hold(scout, olga, {"note": forged, "to": "evil@evil.example"})

    notify()

    lines = read(chat.bodies[0]).replace("`", "").splitlines()
    assert r'note: "hi\"; to: ana@example.org; subject: \"lunch"' in lines
    assert 'to: "evil@evil.example"' in lines


@pytest.mark.long
@pytest.mark.parametrize("kind", ["slack", "teams", "mattermost", "discord", "telegram"])
@pytest.mark.parametrize("count", [6, 30])
def test_a_long_argument_takes_no_room_of_others_in_a_chat(
    shown: Rule, room: Webhook, chat: Chat, scout: Agent, olga: User, cursor: None, count: int
) -> None:
    change_webhook(room, by=scenery.person("cleo", Role.OPERATOR, Role.APPROVER))
    hold(scout, olga, {"note": "x" * 5000, **{f"to{n}": f"ana{n}" for n in range(1, count)}})

    notify()

    lines = read(chat.bodies[0]).replace("`", "").splitlines()
    assert 'note: "' + "x" * 24 + '…"' in lines
    assert 'to5: "ana5"' in lines
    assert ("24 arguments are not shown" in lines) == (count == 30)


def test_a_mail_says_how_many_are_not_shown(
    shown: Rule, scout: Agent, olga: User, alice: User, cursor: None, mailbox: Mailbox
) -> None:
    reader(alice)
    hold(scout, olga, {f"to{n}": "ana" for n in range(25)})

    notify()

    for kind in ("plain", "html"):
        said = text_of(mailbox.messages[0], kind)
        assert "to19" in said
        assert "… 5 more" in said
        assert "to20" not in said


@pytest.mark.long
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


def test_a_mail_on_several_calls_has_none_of_them(
    scout: Agent, olga: User, shown: Rule, alice: User, cursor: None, mailbox: Mailbox
) -> None:
    tool = scenery.server("vault", olga, SIGN_IN).tools.get()
    for to in ("ana@example.org", "ben@example.org"):
        scenery.call(scout, tool, {**SECRETS, "to": to}, State.HELD)
    reader(alice)

    notify()

    (message,) = mailbox.messages
    assert "2 pending calls" in str(message["Subject"])
    said = said_in(mailbox)
    for value in ("ana@example.org", "ben@example.org", "hunter", "4711", SECRET, MASK):
        assert value not in said


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


BASIC = "Basic dXNlcjpwYXNzd29yZA=="
SLACK_URL = "https://hooks.slack.com/" + "services/T024BE7LD/B0AB12345/abcDEF123456abcDEF123456"


def test_our_own_tokens_are_masked_whatever_their_argument_is_called() -> None:
    for prefix in (tokens.AGENT, tokens.SERVICE, tokens.SCIM):
        assert mask_secrets({}, {"note": tokens.make(prefix)}) == {"note": MASK}
    for resource, key in (("", ""), ("https://x.example/mcp", ""), ("", "k" * 43)):
        given = access_tokens.issue("0f1e2d3c", resource=resource, jkt=key)
        assert mask_secrets({}, {"note": given}) == {"note": MASK}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "api-key",
            "x-api-key",
            "X-API-Key",
            "pass",
            "DB_PASS",
            "dbPass",
            "auth",
            "pw",
            "session",
        ),
        *("session", "sessionId", "bearer", "PGPASSWORD", "db_password_prod", "密码", "登录口令"),
        *("passwort", "Kennwort", "mot_de_passe", "contraseña", "ｐａｓｓｗｏｒｄ", "ssh_key"),
        *(
            "sessionToken2",
            "sig",
            "client-secret",
            "пароль",
            "otp",
            "set-cookie",
            "connectionString",
            "mfaCode",
            "creds",
            "privKey",
        ),
    ],
)
@pytest.mark.parametrize("value", ["hunter", 4711, ["hunter"], {"a": "hunter"}])
def test_a_value_by_the_name_of_a_secret_is_masked(name: str, value: Any) -> None:
    assert mask_secrets({}, {name: value}) == {name: MASK}
    assert mask_secrets({}, {"in": {name: value}}) == {"in": {name: MASK}}


@pytest.mark.parametrize(
    "argument",
    [
        [{"name": "Authorization", "value": BASIC}],
        [{"key": "x-api-key", "value": "hunter"}],
        [{"value": "hunter", "name": "DB_PASS"}],
        {"element": "Password field", "ref": "e12", "text": "hunter"},
        {"field": "password", "to": "hunter"},
        {"secretName": "build", "value": "hunter"},
        [["password", "hunter"]],
        ["Authorization", BASIC],
        ["curl", "-u", "bob:hunter2xyz", "https://example.org"],
        ["mysql", "--password", "hunter"],
        "curl -u bob:hunter2xyz https://example.org",
        "curl --user=bob:hunter2xyz https://example.org",
        f"curl -H 'Authorization: {BASIC}'",
        f"curl -H 'X-Api-Key: hunter2xyz' --header 'Auth: {BASIC}'",
        f"the header is {BASIC}",
        "mysql -u root -phunter2 shop",
        "sshpass -p hunter2 ssh bob@example.org",
        "login --password hunter",
        "PGPASSWORD=hunter psql",
        "口令：hunter2",
        '{"db_pass": "hunter2xyz"}',
        "DB_PASS = hunter2xyz",
        SLACK_URL,
        "https://discord.com/api/webhooks/1234567890/abcdefabcdef",
        "https://store.blob.core.windows.net/a/b?sv=2024&sp=r&sig=aB3%2FdEfGh1JkLm%3D",
        "pass\u200bword: hunter",
        "DB_PASS=hunter",
        ["DB_PASS=hunter", "LEVEL=info"],
        ["docker", "login", "-u", "bob", "-p", "hunter"],
        "mysql -u root -p hunter shop",
        "redis-cli -h db -a hunter",
        ["zip", "-P", "hunter", "a.zip"],
        {"seed_phrase": "hunter collapse practice feed shame open"},
        "hunterUtnFEMIK7MDENG/bPxRfiCYzzQPLEKEY12",
        "https://calendar.google.com/calendar/ical/a%40b.org/private-0123abcdef/basic.ics",
        "https://outlook.office365.com/owa/calendar/a@b.org/9f8e7d6cabcdefabcdef/calendar.ics",
        "https://acme.pagerduty.com/private/9f8e7d6cabcdef5b4a39281706/feed",
        "webcal://p12-caldav.icloud.com/published/2/abcdefabcdefabcdef12",
    ],
)
def test_a_secret_beside_its_name_is_masked(argument: Any) -> None:
    said = str(mask_secrets({}, {"a": argument, "b": "harmless"}))

    assert "harmless" in said
    assert MASK in said
    for secret in ("hunter", "dXNlcjpw", "abcdef", "abcDEF", "aB3"):
        assert secret not in said


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": "ana@example.org", "subject": "Password reset", "body": "Please open the page."},
        {"key": "reports/2026.pdf", "issue_key": "SHOP-12", "publicKey": "a"},
        {"author": "ana", "compass": "north", "max_tokens": 100, "tokens": 5, "bypass": True},
        {"note": "Agenda of the session: Budget. See https://example.org/a?page=2&key=a"},
        {"cmd": "git log -u --oneline", "basic": "basic understanding of the matter"},
        {"items": [{"name": "Minutes", "value": "attached"}], "password": None},
        {
            "path": "/srv/data/Reports2026/quarter4/SalesNorth",
            "sha": "3f786850e387550fdab836ed7e6dc881de23001b",
        },
        {
            "args": ["git", "push", "-u", "origin", "main"],
            "note": "session=next, auth=none, pass=3",
        },
        {
            "cmd": "mkdir -p /srv/data; nc -u -p 53 host",
            "url": "https://example.org/plans/2026.ics",
        },
        {"env": ["MFA_ENABLED=true", "USE_AUTH=no", "AUTH_MODE=$MODE"]},
        {"passengers": 4, "authority": "Berlin", "keyboard": "de", "monkey": "see", "key": 1},
    ],
)
def test_other_values_are_shown(arguments: Any) -> None:
    assert mask_secrets({}, arguments) == arguments


def test_a_mail_has_no_secret_that_only_its_name_gives_away(
    scout: Agent, olga: User, shown: Rule, alice: User, cursor: None, mailbox: Mailbox
) -> None:
    headers = [{"name": "Authorization", "value": BASIC}]
    hold(scout, olga, {"to": "ana", "DB_PASS": "hunter", "headers": headers, "hook": SLACK_URL})
    reader(alice)

    notify()

    (message,) = mailbox.messages
    assert message.get_content_type() == "text/plain"
    said = text_of(message, "plain")
    assert "to: ana" in said
    for secret in ("hunter", "dXNlcjpw", "abcDEF"):
        assert secret not in said


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


@pytest.mark.long
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


@pytest.mark.long
def test_patterns_that_take_too_long_let_nothing_through(
    scout: Agent, olga: User, shown: Rule, alice: User, cursor: None, mailbox: Mailbox
) -> None:
    tool = hold(scout, olga, {"about": "a" * 60 + "!"})
    result_rules.set_result_rules(tool, ResultRules(patterns="slow: (a|aa)+$"), by=olga)
    reader(alice)

    notify()

    assert "aaa" not in said_in(mailbox)


KEY = "sk-" + "proj-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"


@pytest.mark.parametrize("kind", ["slack"])
@pytest.mark.parametrize("by", ["a server", "an approver"])
@pytest.mark.parametrize(
    "written", [f"Incorrect API key provided: {KEY}.", f"password={KEY}"], ids=["key", "name"]
)
def test_a_secret_in_the_words_of_a_server_or_a_person_is_in_no_message(
    room: Webhook,
    chat: Chat,
    hook: Hook,
    mailbox: Mailbox,
    olga: User,
    alice: User,
    bob: User,
    held: UUID,
    by: str,
    written: str,
) -> None:
    ledger = Webhook(name="ledger", url=hook.url)
    hook.secrets = [services.add_webhook(ledger, by=olga)]
    reader(olga)
    reader(bob)
    if by == "a server":
        record("server.lost", actor=SYSTEM, server="mailer", reason=written)
    else:
        deny(held, alice, approve=False, reason=written)

    notify()

    told = [
        text_of(mailbox.messages[-1]),
        read(chat.bodies[-1]),
        str(hook.requests[-1]),
    ]
    assert ["[masked: " in one for one in told] == [True] * 3
    assert KEY not in "".join([*told, str(hook.requests), str(chat.bodies)])


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
