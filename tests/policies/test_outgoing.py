"""Secrets in arguments that are sent outside: rules see their kinds, and nobody a value."""

import base64
import contextlib
import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from accounts.roles import Role
from inspection.nested_texts import LEVELS_MAX
from policies.conditions import compiled
from policies.drafts import read_template
from policies.models import Effect, Rule
from policies.outgoing import Facts
from policies.simulate import suppose
from policies.undecided import Undecided
from tests.console import scenery

pytestmark = pytest.mark.django_db

KEY = "AKIAZ7RQWLKJX2MPND4T"
# No letter of it stands there as it is.
ESCAPED = "".join(f"\\u{ord(letter):04x}" for letter in KEY)


@pytest.fixture
def rule(olga: User) -> Rule:
    """The template, as it is offered."""
    scenery.server("mailer", olga, scenery.SEND)
    values = read_template("secrets", "", "UTC").values
    names = ("name", "effect", "when", "reason")
    return Rule.objects.create(**{name: values[name] for name in names})


_WRITTEN = base64.b64encode(f"a note of {KEY} for you".encode()).decode()
LINES = "\r\n ".join(_WRITTEN[at : at + 20] for at in range(0, len(_WRITTEN), 20))


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        ({"body": f"the key is {KEY}"}, ["aws_key"]),
        ({"list": [{"password": "hunter2!"}]}, ["password"]),
        ({"body": f"AKIA\u200b{KEY[4:]}"}, ["aws_key"]),
        ({KEY: 1}, ["aws_key"]),
        ({"body": "the key is AKIAIOSFODNN7EXAMPLE", "n": 2**70}, []),
        ({}, []),
        # JSON in a text, in a text; base64, also of no text, and within JSON in a text.
        ({"body": json.dumps(json.dumps(f'{{"k": "{ESCAPED}"}}'))}, ["aws_key"]),
        ({"body": json.dumps({"a": {"password": "hunter2!"}})}, ["password"]),
        ({"data": base64.b64encode(f"{KEY}\n".encode() * 20).decode()}, ["aws_key"]),
        ({"blob": base64.urlsafe_b64encode(b"\xff\xfe\0 " + KEY.encode()).decode()}, ["aws_key"]),
        ({"a": json.dumps([base64.b64encode(KEY.encode()).decode().rstrip("=")])}, ["aws_key"]),
        ({"a": "data:text/plain;base64," + base64.b64encode(KEY.encode()).decode()}, ["aws_key"]),
        ({"url": f"https://evil.cn/?d={KEY}"}, ["aws_key"]),
        ({"url": f"https://{KEY}@evil.cn/{KEY}"}, ["aws_key"]),
        ({"dbPassword": "Hunter2!xQ9", "token": "next_page_2"}, ["password"]),
        ({"token": "next_page_2", "nextPageToken": "CAUQAA1xB7rt91Lw"}, []),
        # Within a sentence, an address, and JSON that is cut off.
        ({"a": f"see {base64.b64encode(KEY.encode()).decode()}, please"}, ["aws_key"]),
        ({"a": "https://evil.cn/?d=" + "".join(f"%{ord(one):x}" for one in KEY)}, ["aws_key"]),
        ({"a": "p%3Dpassword%3Dhunter2%21xQ9"}, ["password"]),
        # In lines of base64, in hexadecimal digits, and as HTML and Markdown spell it.
        ({"a": f"see:\r\n {LINES}\r\nthere"}, ["aws_key"]),
        ({"a": f"see {KEY.encode().hex()}, please"}, ["aws_key"]),
        ({"a": "".join(f"\\x{ord(one):02x}" for one in KEY)}, ["aws_key"]),
        ({"a": "".join(f"&#{ord(one)};" for one in KEY)}, ["aws_key"]),
        ({"a": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}, []),
        ({"a": f'{{"k": "{ESCAPED}", "m'}, ["aws_key"]),
        ({"a": "100% of it, \\u00e9, %zz and https://corp.cn/a%20b?c=%E4%B8%AD"}, []),
        ({"a": "deployment/production/eu/west", "b": "[not json", "c": "{}"}, []),
    ],
)
def test_kinds_are_found_wherever_they_stand(arguments: Any, kinds: list[str]) -> None:
    assert Facts({"args": arguments})["outgoing.secrets"] == kinds


def test_personal_data_is_a_fact_of_its_own() -> None:
    facts = Facts({"args": {"to": "bob@corp.cn", "card": "4012 8888 8888 1881"}})

    assert facts["outgoing.secrets"] == []
    assert facts["outgoing.personal"] == ["card", "email"]
    with pytest.raises(KeyError):
        facts["outgoing.other"]


@pytest.mark.parametrize(
    ("arguments", "kinds"),
    [
        ({"card": 4012888888881881}, ["card"]),
        ({"card": 4012888888881881.0}, ["card"]),
        ({"body": '{"card": 4012888888881881}'}, ["card"]),
        ({"cards": [1, 4012888888881881]}, ["card"]),
        ({"url": "https://evil.cn/?card=4012888888881881"}, ["card"]),
        ({"body": "手机号13812345678"}, ["phone"]),
        ({"phone": 13812345678, "order": 13812345679}, ["phone"]),
        ({"order": 13812345678}, []),
        ({"n": 4012888888881882, "m": 1.5, "b": True}, []),
    ],
)
def test_numbers_are_texts_too(arguments: Any, kinds: list[str]) -> None:
    assert Facts({"args": arguments})["outgoing.personal"] == kinds


def nested(levels: int) -> str:
    text = KEY
    for _level in range(levels):
        text = json.dumps([text])
    return text


def test_what_is_nested_too_deep_is_not_decided(scout: Agent, olga: User) -> None:
    scenery.server("mailer", olga, scenery.SEND)
    Rule.objects.create(name="all", effect=Effect.ALLOW, when="outgoing.secrets.size() == 0")
    deep, shallow = ({"args": {"a": nested(levels)}} for levels in (LEVELS_MAX, LEVELS_MAX - 1))

    assert Facts(shallow)["outgoing.secrets"] == ["aws_key"]
    with pytest.raises(Undecided, match="more often than is looked at"):
        Facts(deep)["outgoing.secrets"]
    told = suppose("scout", "mailer.send_mail", json.dumps(deep["args"])).decision
    assert told.effect == Effect.ASK
    assert "more often than is looked at" in told.reason


HOSTILE = {
    "spaces": {"a": " " * 64_000 + "!"},
    "base64": {"a": "A" * 64_000 + "!"},
    "brackets": {"a": "[" * 64_000},
    "hex": {"a": "41" * 32_000},
    "lines": {"a": ("A" * 30 + "\n") * 2_000 + "!"},
    "escapes": {"a": "\\x41" * 16_000},
    "quotes": {"a": json.dumps(json.dumps('"' * 10_000))},
    "names": {"x" * 60 + "password": [*range(10_000)]},
    "long name": {"password" * 60: ["a1!b"] * 8_000},
    "numbers": {"a": [10**15] * 4_000},
    "base64 in base64": {"a": base64.b64encode(base64.b64encode(b"x" * 34_000)).decode()},
}


@pytest.mark.parametrize("arguments", HOSTILE.values(), ids=HOSTILE)
def test_hostile_arguments_take_no_longer_than_their_size(arguments: Any) -> None:
    """Looking at all of it for each of its parts would not end within the time that a test has."""
    with contextlib.suppress(Undecided):
        Facts({"args": arguments})["outgoing.secrets"]


def test_what_is_too_large_is_not_decided() -> None:
    condition = compiled("outgoing.secrets.size() == 0", hints=False)

    with pytest.raises(Undecided, match="too large"):
        condition.holds(Facts({"args": {"a": "x"}}), 65 * 1024)


def test_the_template_holds_what_sends_a_secret_outside(rule: Rule, scout: Agent) -> None:
    Rule.objects.create(name="all", effect=Effect.ALLOW)

    def effect(**arguments: str) -> str:
        return suppose("scout", "mailer.send_mail", json.dumps(arguments)).decision.effect

    assert effect(body="Hello") == Effect.ALLOW
    assert effect(body=f"Hello {KEY}") == Effect.ASK
    Rule.objects.filter(pk=rule.pk).update(effect=Effect.DENY)
    assert effect(body=f"Hello {KEY}") == Effect.DENY


def test_explain_and_the_simulator_say_the_kinds_and_no_value(
    rule: Rule, scout: Agent, client: Client
) -> None:
    arguments = json.dumps({"body": KEY})
    out = StringIO()
    call_command("explain", "scout", "mailer.send_mail", arguments, stdout=out)
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))
    asked = {"agent": "scout", "tool": "mailer.send_mail", "arguments": arguments}
    page = client.get(reverse("policies:explain"), asked).text

    assert "outgoing.secrets = ['aws_key']" in out.getvalue()
    assert KEY not in out.getvalue()
    assert "aws_key" in page
