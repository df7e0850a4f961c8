"""Results that leak or attack, and others that look like them and must stay byte for byte."""

import base64
import json
import random
import re
import string
import zlib
from collections.abc import Iterator
from typing import Any
from unicodedata import category

import pytest

from core.text import of_kinds
from inspection.json_text import strings
from inspection.results import PASS_ALL, HiddenText, ResultRules, ResultTooLong, clean

ALL = ResultRules(hidden="remove", secrets=True, personal=True, tracebacks=True)
SEED = 21
HEX = "0123456789abcdef"
# Around what leaks, in the ways that results carry text.
FRAMES = (
    "{}",
    "The answer is {}.",
    "first line\n{}\nlast line",
    'He said "{}" \\ twice',
    "日本語 {} ü",
)


def luhn(digits: str) -> str:
    total = sum(
        int(d) * 2 - 9 * (int(d) > 4) if place % 2 == 0 else int(d)
        for place, d in enumerate(reversed(digits))
    )
    return digits + str(-total % 10)


class Maker:
    """Values of one kind after another, with their checksums."""

    def __init__(self) -> None:
        self._random = random.Random(SEED)

    def letters(self, count: int, alphabet: str = string.ascii_letters + string.digits) -> str:
        return "".join(self._random.choices(alphabet, k=count))

    def digits(self, count: int) -> str:
        return self.letters(count, string.digits)

    def github(self) -> str:
        body, check = self.letters(30), ""
        value = zlib.crc32(body.encode())
        while value:
            value, rest = divmod(value, 62)
            check = (string.digits + string.ascii_uppercase + string.ascii_lowercase)[rest] + check
        return f"ghp_{body}{check.rjust(6, '0')}"

    def jwt(self) -> str:
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
        body = base64.urlsafe_b64encode(b'{"sub":"%b"}' % self.digits(8).encode()).decode()
        return f"{head}.{body.rstrip('=')}.{self.letters(43)}"

    def basic(self) -> str:
        return base64.b64encode(f"admin:{self.letters(14)}".encode()).decode().rstrip("=")

    def card(self) -> str:
        return luhn(f"4{self.digits(14)}")

    def iban(self) -> str:
        account = self.digits(18)
        check = 98 - int(account + "131400") % 97
        return f"DE{check:02}{account}"

    def china_id(self) -> str:
        first = (
            f"11010519{self._random.randint(49, 99)}0{self._random.randint(1, 9)}15{self.digits(3)}"
        )
        weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
        total = sum(int(d) * w for d, w in zip(first, weights, strict=True))
        return first + "10X98765432"[total % 11]

    def leaks(self) -> dict[str, str]:
        """By what is masked, a text that must not pass."""
        key = "\n".join(self.letters(64) for _ in range(4))
        pem = f"-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----"
        base32 = string.ascii_uppercase + "234567"
        return {
            "aws_key": f"AKIA{self.letters(16, base32)}",
            "alibaba_key": f"LTAI{self.letters(20)}",
            "tencent_key": f"AKID{self.letters(32)}",
            "vault_token": f"hvs.{self.letters(24)}",
            "twilio_key": f"SK{self.letters(32, HEX)}",
            "github_token": self.github(),
            "google_key": f"AIza{self.letters(35)}",
            "anthropic_key": f"sk-ant-{self.letters(40)}",
            "openai_key": f"sk-proj-{self.letters(48)}",
            "stripe_key": f"sk_live_{self.letters(24)}",
            "slack_token": f"xoxb-{self.digits(12)}-{self.letters(24)}",
            "gitlab_token": f"glrt-{self.letters(20)}",
            "docker_token": f"dckr_pat_{self.letters(27)}",
            "databricks_token": f"dapi{self.letters(32, HEX)}",
            "notion_token": f"ntn_{self.letters(46)}",
            "grafana_token": f"glsa_{self.letters(32)}_{self.letters(8, HEX)}",
            "linear_key": f"lin_api_{self.letters(40)}",
            "groq_key": f"gsk_{self.letters(52)}",
            "xai_key": f"xai-{self.letters(80)}",
            "atlassian_token": f"ATATT3xFfGF0{self.letters(180)}",
            "mailgun_key": f"mailgun.key = key-{self.letters(32, HEX)}",
            "volcengine_key": f"AKLT{self.letters(44)}",
            "postman_key": f"PMAK-{self.letters(24, HEX)}-{self.letters(34, HEX)}",
            "webhook": f"https://open.feishu.cn/open-apis/bot/v2/hook/{self.letters(36)}",
            "cookie": f"Set-Cookie: theme=dark; sid={self.letters(32)}7",
            "countersign_token": f"csa_{self.letters(8)}_{self.letters(43)}_{self.letters(6)}",
            "age_key": f"AGE-SECRET-KEY-1{self.letters(58, base32)}",
            "basic_auth": f"Authorization: Basic {self.basic()}",
            "azure_key": f"?sv=2024&sig={self.letters(43)}%3D",
            "jwt": self.jwt(),
            "private_key": pem,
            "connection_string": f"postgres://app:{self.letters(12)}7@db.internal/main",
            "password": f"password={self.letters(10)}9!x",
            "bearer_token": f"Bearer {self.letters(40)}",
            "card": self.card(),
            "iban": self.iban(),
            "china_id": self.china_id(),
            "phone": f"+86 138{self.digits(8)}",
            "email": f"{self.letters(8).lower()}@corp.cn",
        }

    def lookalikes(self) -> list[str]:
        """What looks like them, and leaks nothing."""
        card, iban, person = self.card(), self.iban(), self.china_id()
        return [
            f"AKIA{self.letters(10, string.ascii_uppercase)}",
            "AKIAIOSFODNN7EXAMPLE",
            f"LTAI{self.letters(8)}, AKID, hvs.short and SKU SK-{self.digits(8)}",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "eyJ is how a token begins, e.g. eyJ…",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "postgres://app:password@db/main and https://host:8080/path@2x",
            "password: required, token: string, secret = <your secret>",
            f"nextPageToken: {self.letters(20)}",
            card[:-1] + str((int(card[-1]) + 1) % 10),
            f"{iban[:2]}{(int(iban[2:4]) + 1) % 90 + 10}{iban[4:]}",
            person[:-1] + ("0" if person[-1] != "0" else "1"),
            f"order 138{self.digits(8)} of 2026-11-24T15:00:00.{self.digits(6)}Z",
            "bob@example.com, git@github.com:a/b.git, no-reply@corp.cn",
            f"sha256:{self.letters(64, HEX)} {self.digits(3)}.{self.digits(3)}.1.1",
            "Traceback (most recent call last) is what Python prints first.",
            "Meeting\n  at Berlin: 14:30\n  at Paris: 15:30",
            "Flights\n  at 09:10 (gate 4:12)\n  at 10:10 (gate 4:13)",
            "Started\n  at 2026-11-28 10:15:30\n  at 2026-11-28 10:16:30\nok",
            "#0 fix login\n#1 ship release",
            "Steps:\n#0 open the page (see 3)\n#1 press save\nDone.",
            "see\n from foo:12:in the box",
            "สวัสดี\u200bครับ ភាសា\u200bខ្មែរ မြန်မာ\u200bစာ",
            "Sent by \u2068محمد\u2069 today, مرحبا \u2066abc\u2069, \u2067שלום (a)\u2069.",
            "See you at (the house:12)\n at noon\n at ten",
            "👩‍👩‍👧 ❤️ 🏴󠁧󠁢󠁳󠁣󠁴󠁿 می‌خواهم क्‍ष שלום\u200f! 東\U000e0100 \ufeff"[:-1],
            "a\r\nb\tc\u00a0d\u3000e co\u00adoperate",
            "❤\ufe0f ❤\ufe0e 1\ufe0f\u20e3 ℹ\ufe0f 葛\ufe00 ∩\ufe00 ，\ufe01 مرحبا \u061c123",
            "see /sk-hynix-announces-record-quarterly-profit-again and Basic authentication",
            "Pass: 98.5% of tests, pass=2026-11-28, PASS: 12ms/200ms, boarding pass: AB12345",
            "Cookie: theme=dark; lang=en, Cookies: a recipe of 2024, credentials: include",
            "mailgun sends mail for key-accounts, /api/webhooks/orders/created-by-the-shop/2024",
            "see /hooks/react-hooks-explained-in-full and /api/v2/webhooks/orders/created-by-shop",
            "sk-to-be-named-later-and-longer-than-that, UserCredential: AzureCliCredential2()",
            "password:\n  type: string\n  minLength: 8, <password>string</password>",
            "| password | Required | Min8chars |, The password is required for User1.",
            "密保问题：Abc12345, 密码为 8 位以上",
            "secret: projects/123/secrets/db-pass/versions/latest, --token-file Tok3n.txt",
            "token = request.headers, secret: db-credentials-1, password = var.db_password",
            "password = random_password.db.result, password: github.token, token: next_page_2",
            "let secret = Secret::new; password: at-least-8-characters; token = parser.Next1()",
            json.dumps({"token": "next_page_2", "nextPageToken": self.letters(20), "key": "F12"}),
            json.dumps([{"log": "one\ntwo\tthree", "n": 1.50, "big": 12345678901234567890}]),
            "[draft] {not: json}",
            self.letters(40),
            json.dumps({"token": "abc", "key": "Enter", "password": "********"}),
        ]


def documents(text: str) -> Iterator[bytes]:
    """In the places of a result where words stand, as servers write JSON."""
    item = {"type": "text", "text": text}
    yield json.dumps({"content": [item]}).encode()
    # As PHP writes it.
    yield json.dumps({"content": [item]}, ensure_ascii=False).replace("/", "\\/").encode()
    yield json.dumps(
        {"content": [], "structuredContent": {"a": [text, 1.0]}}, ensure_ascii=False
    ).encode()
    resource = {"uri": "file:///a", "text": text}
    yield json.dumps({"contents": [resource]}, indent=1).encode()
    yield json.dumps({"messages": [{"role": "user", "content": item}]}).encode()


def test_what_leaks_is_masked_and_nothing_else_changes() -> None:
    maker, count = Maker(), 0
    for frame in FRAMES * 2:
        for kind, secret in maker.leaks().items():
            for body in documents(frame.format(secret)):
                count += 1
                found = clean(body, ALL)
                assert f"masked.{kind}" in found.found, (kind, frame, secret)
                texts = [one.text for one in strings(found.body.decode())]
                tail = secret.rpartition("=")[2].rpartition(" ")[2][-24:]
                hidden = secret.partition("://")[2].partition(":")[2].partition("@")[0] or tail
                assert not any(hidden in text for text in texts), (kind, texts)
                before, after = json.loads(body), json.loads(found.body)
                assert before.keys() == after.keys()
    assert count >= 400


TOKEN_68 = "Kc3dYq8ZtR0vXw2LmN7pBs5HfJ9gUa1EoTiVlSxWzQyMrDkPhGnCb4AeFuOj6I8KqLz"
HEX_64 = "18a34007aa21e86bb81d3058a2b72dcea3ce8ef6fec0599ca2e5f3b1d4c6a790"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("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", "openai_key"),
        (f"sk-{HEX_64[:32]}", "openai_key"),
        (f"sk-or-v1-{HEX_64}", "openai_key"),
        ("sk-vjdakparfcynxndglqutqgljmgnlavputtzjkarpozfftvmb", "openai_key"),
        (f"MAILGUN_KEY={HEX_64[:32]}-{HEX_64[32:40]}-{HEX_64[40:48]}", "mailgun_key"),
        ("DB_PASS=Xy7abcd9Q", "password"),
        ('pass: "hunter2Go"', "password"),
        ("credential: aB3dE5fG7hI9jK1lM3", "password"),
        (f"curl -H 'Cookie: sid={HEX_64[:32]}' https://a", "cookie"),
        (f"x.atlasv1.{HEX_64}", "terraform_token"),
        (f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={HEX_64[:36]}", "webhook"),
        ("post to https://chat.example.org/hooks/xyg4o8tfqtbstqhzhjbkw9a3oh, please", "webhook"),
        ("https://example.org:8065/team/hooks/abcdefghijklmnopqrstuvwxyz", "webhook"),
        (f"https://discord.com/api/v10/webhooks/123456789012345678/{TOKEN_68}", "webhook"),
        ("Password:        S3cret99!", "password"),
        ("password    = Hunter2xx", "password"),
        ("password:\n  Hunter2xx", "password"),
        ("password: |\n  Hunter2xx", "password"),
        ("**Password:** Hunter2xx", "password"),
        ("`password`: `Hunter2xx`", "password"),
        ("| password | S3cret99 |", "password"),
        ("<password>S3cret99</password>", "password"),
        ('<add key="password" value="S3cret99"/>', "password"),
        ('password := "Hunter2xx"', "password"),
        ("password -> Hunter2xx", "password"),
        ("Your password is: Hunter2xx", "password"),
        ("密码是 Abc123456", "password"),
        ("密 码：Abc@2024", "password"),
        ("密碼：Secret99x", "password"),
        ("密碼為 Secret99x", "password"),
        ("ⓟⓐⓢⓢⓦⓞⓡⓓ: Secret99x", "password"),
        ("db --password S3cret99 -x", "password"),
        (f"csa_{HEX_64[:8]}_{HEX_64[:43]}_{HEX_64[:6]}", "countersign_token"),
        *((f"4{'1' * 15}", "card"), ("4242 4242 4242 4242", "card"), (f"5{'5' * 11}4444", "card")),
        ("https://corp.cn/?to=alice%40corp.cn&x=1", "email"),
    ],
)
def test_forms_of_keys_and_numbers_that_are_easily_missed(text: str, kind: str) -> None:
    assert clean(json.dumps([text]).encode(), ALL).found == {f"masked.{kind}": 1}


@pytest.mark.parametrize(
    ("member", "is_masked"),
    [
        ({"pass": "Xy7abcd9Q"}, True),
        ({"dbPass": "hunter2!Go"}, True),
        ({"credentials": "aB3dE5fG7hI9jK1lM3"}, True),
        ({"passwords": ["Xy7abcd9Q", "hunter2!"]}, True),
        ({"passwords": ["required", "optional"]}, False),
        ({"pass": "12 of 14"}, False),
        ({"pass": "2026-11-28"}, False),
        ({"credentials": "same-origin"}, False),
        ({"bypass": "Xy7abcd9Q"}, False),
    ],
)
def test_short_names_of_secrets_need_a_value_that_looks_like_one(
    member: dict[str, Any], is_masked: bool
) -> None:
    assert bool(clean(json.dumps(member).encode(), ALL).found) == is_masked


@pytest.mark.long
def test_nothing_harmless_changes_by_a_byte() -> None:
    maker, count = Maker(), 0
    for frame in FRAMES * 2:
        for text in maker.lookalikes():
            for body in documents(frame.replace("{}", text.replace("{", "{"))):
                count += 1
                found = clean(body, ALL)
                assert (found.body, found.found) == (body, {}), (text, found.found)
                assert clean(body, PASS_ALL).body is body
    assert count >= 400


HIDDEN = {
    "ansi": ["\x1b[31mred", "\x1b]0;title\x07", "\x9b2J"],
    "control": ["a\x08b", "a\x00b", "over\rwritten \x01", "pay 10\rpay 99", "10%\rdone"],
    "bidi": [
        "a\u202eb",
        "a\u2066b\u2069",
        "ש \u2067abc\u2069",
        "ש \u2066a\u202eb\u2069",
        "ש\u2069",
        "ab\u061ccd",
    ],
    "tag": ["a\U000e0068\U000e0069"],
    "unseen": ["a\u200bb", "ภาษา\u200b a", "pass\u2060word", "a\ufeffb", "i\xadg\xadnore"],
    "selector": ["a\ufe00\ufe01\ufe02b", "❤\ufe05", "é\ufe0f"],
}


def test_what_hides_is_removed_or_written_out() -> None:
    for kind, texts in HIDDEN.items():
        for text in texts:
            for body in documents(text):
                removed = clean(body, ALL)
                shown = clean(body, ResultRules(hidden=HiddenText.SHOW))
                assert f"hidden.{kind}" in removed.found
                words = [one.text for one in strings(removed.body.decode())]
                assert not any(text in word for word in words)
                assert "⟦U+" in shown.body.decode()


@pytest.mark.parametrize(
    "text", ["10%\r20%\r100%\r\n", "get 1/3\rget 2/3\rget 3/3", "[=>  ] 5 %\r[==> ] 10 %"]
)
def test_progress_that_is_written_over_stays(text: str) -> None:
    for body in documents(text):
        assert clean(body, ALL).body is body


TRACES = {
    "ValueError: bad": (
        'Traceback (most recent call last):\n  File "/srv/a.py", line 1\nValueError: bad'
    ),
    "java.io.IOException: x": "java.io.IOException: x\n\tat a.B.c(B.java:1)\n\tat a.B.d(B.java:2)",
    "TypeError: y": "TypeError: y\n    at f (/app/x.js:3:4)\n    at g (/app/x.js:9:1)",
    "System.Exception: z": (
        "System.Exception: z\n   at A.B() in /src/a.cs:line 3\n   at A.C() in /src/a.cs:line 9"
    ),
    "Error: q": (
        "Error: q\n    at Module._load (node:internal/modules/cjs/loader:1105:14)\n"
        "    at async file:///app/x.mjs:9:1"
    ),
    "java.lang.Error: w": (
        "java.lang.Error: w\n\tat java.base/java.util.List.get(List.java:3)\n"
        "\tat a.B$1.invoke(Unknown Source)\n\t... 3 more"
    ),
    # One frame after a line that says what went wrong.
    'Exception in thread "main" java.lang.Error': (
        'Exception in thread "main" java.lang.Error\n\tat a.B.c(B.java:12)'
    ),
    "RangeError: r": "RangeError: r\n    at f (/srv/app/index.js:3:5)",
    "Error: s": "Error: s\n    at /srv/app/index.js:3:5",
    "System.Exception: t": "System.Exception: t\n   at A.B.C() in C:\\src\\A.cs:line 12",
    "PHP Fatal error:  alone": (
        "PHP Fatal error:  alone\nStack trace:\n#0 {main}\n  thrown in /var/www/x.php on line 3"
    ),
    "panic: oh": "panic: oh\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/a.go:3 +0x1d",
    "PHP Fatal error:  no": (
        "PHP Fatal error:  no\nStack trace:\n#0 /var/www/a.php(3): f()\n#1 {main}"
    ),
    "Segmentation fault": (
        "Segmentation fault\n#0  0x00007ffff7a42 in f () at a.c:3\n#1  0x0000555555 in main ()"
    ),
    "a.rb:1:in `f': no (E)": ("a.rb:1:in `f': no (E)\n\tfrom a.rb:5:in `g'\n\tfrom a.rb:9:in `h'"),
}


def test_tracebacks_become_a_sentence() -> None:
    for said, trace in TRACES.items():
        for body in documents(f"Before.\n{trace}\n\nAfter."):
            found = clean(body, ResultRules(tracebacks=True))
            assert found.found["traceback"] == 1, trace
            text = next(t.text for t in strings(found.body.decode()) if "left out" in t.text)
            assert f"[traceback left out: {said}]" in text
            assert text.startswith("Before.\n")
            assert text.endswith("After.")


def test_frames_of_net_need_no_file_after_a_line_with_the_error() -> None:
    for body in documents("Unhandled exception. System.IO.IOException: u\n   at A.B.C(String s)"):
        found = clean(body, ResultRules(tracebacks=True))
        assert found.found == {"traceback": 1}
        assert b"A.B.C" not in found.body


@pytest.mark.parametrize(
    "text",
    [
        "Errors:\n  at the end of the list (see below)",
        "Error: no seats left\n  at Mario's (downtown)",
        "Version 1.2: fixed an Error\n    at f (/srv/app/index.js:3:5)",
        "venues.TypeError: a band\n  at The Blue Note (New York)",
        "Stack trace:\n#0 {other}\nthrown away",
    ],
)
def test_one_line_that_looks_like_a_frame_stays(text: str) -> None:
    for body in documents(text):
        assert clean(body, ResultRules(tracebacks=True)).body is body


def test_paths_are_left_out_of_errors_alone() -> None:
    (body, *_) = documents("open /var/lib/app/x.db failed, see https://a.b/usr/c")
    rules = ResultRules(tracebacks=True)

    assert clean(body, rules).body == body
    changed = clean(body, rules, is_error=True)
    assert changed.found == {"path": 1}
    assert b"open [internal path] failed, see https://a.b/usr/c" in changed.body


def test_long_texts_are_cut_and_say_so() -> None:
    long: dict[str, Any] = {"content": [{"type": "text", "text": "ü" * 9000}], "n": 1.0}
    body = json.dumps(long).encode()

    found = clean(body, ResultRules(max_bytes=4096))

    assert len(found.body) <= 4096
    assert found.found == {"cut": 1}
    assert json.loads(found.body)["content"][0]["text"].endswith(
        "[… cut here: 9,000 characters in all]"
    )
    assert b'"n": 1.0' in found.body
    image = json.dumps({"content": [{"type": "image", "data": "QUJD" * 4000}]}).encode()
    try:
        clean(image, ResultRules(max_bytes=4096))
    except ResultTooLong:
        return
    raise AssertionError("bytes cannot be cut")


def test_names_of_members_stay_apart_and_bytes_are_not_looked_into() -> None:
    picture = base64.b64encode(b"AKIAZ7RQWLKJX2MPND4T" * 20).decode()
    value = {"a\u200b": 1, "a": 2, "data": picture, "password": "hunter2!", "bob@corp.cn": 3}
    body = json.dumps({"content": [], "structuredContent": value}).encode()

    changed = json.loads(clean(body, ALL).body)["structuredContent"]

    assert changed == {
        "a⟦U+200B⟧": 1,
        "a": 2,
        "data": picture,
        "password": "[masked: password]",
        "[masked: email 1]": 3,
    }


UNSEEN = (
    "\u200b",
    "\u200d",
    "\u2060",
    "\ufe0f",
    "\xad",
    "\u202e",
    "\U000e0041",
    "\x1b[31m",
    "\x00",
)


@pytest.mark.parametrize("hidden", list(HiddenText))
def test_what_is_not_seen_hides_no_secret(hidden: str) -> None:
    rules = ALL._replace(hidden=hidden)
    maker = Maker()
    leaks = {
        "aws_key": "AKIAZ7RQWLKJX2MPND4T",
        "github_token": maker.github(),
        "card": maker.card(),
        "email": "bob.miller@corp.cn",
        "password": "password=h8Fq-22xLmn0",
    }
    for kind, leak in leaks.items():
        for unseen in UNSEEN:
            for at in range(1, len(leak)):
                text = f"it says {leak[:at]}{unseen}{leak[at:]} so"
                body = json.dumps({"said": text}, ensure_ascii=at % 2 == 0).encode()
                done = clean(body, rules)
                said = json.loads(done.body)["said"]
                mask = f"[masked: {kind.replace('_', ' ')}]"
                assert said.startswith("it says ")
                assert said.endswith(f"{mask} so"), (kind, unseen, at, said)
                assert done.found[f"masked.{kind}"] == 1


@pytest.mark.parametrize("hidden", list(HiddenText))
def test_nor_in_the_name_of_its_member(hidden: str) -> None:
    body = json.dumps({"pass\u200bword": "hunter2!"}).encode()

    done = clean(body, ALL._replace(hidden=hidden))

    assert list(json.loads(done.body).values()) == ["[masked: password]"]


def test_what_is_not_seen_beside_a_secret_stays_where_it_was() -> None:
    text = "a\u200bb AKIAZ7RQ\u200bWLKJX2MPND4T c\u200bd"
    body = json.dumps([text]).encode()

    kept = clean(body, ALL._replace(hidden="")).body
    shown = clean(body, ALL._replace(hidden="show")).body

    assert json.loads(kept) == ["a\u200bb [masked: aws key] c\u200bd"]
    assert json.loads(shown) == ["a⟦U+200B⟧b [masked: aws key] c⟦U+200B⟧d"]


# Beside signs that are no part of a word, and beside letters of Chinese.
BESIDE = ("KEY={}", "https://h/?d={}&e=1", "https://{}@host/a", "{}", "值{}了", "/{}/", "x%3D{}")
SECRETS = (
    *("aws_key", "github_token", "google_key", "slack_token", "stripe_key", "anthropic_key"),
    *("openai_key", "gitlab_token", "groq_key", "docker_token"),
)


@pytest.mark.parametrize("beside", BESIDE)
def test_keys_are_masked_beside_signs_of_programs(beside: str) -> None:
    leaks = Maker().leaks()
    for kind in SECRETS:
        for body in documents(beside.format(leaks[kind])):
            found = clean(body, ResultRules(secrets=True))
            assert leaks[kind][-8:].encode() not in found.body, (kind, beside)


PERSONS = (
    ("身份证号{china_id}", "china_id"),
    ("身份证：{china_id}姓名张三", "china_id"),
    ("手机号13812345678给我", "phone"),
    ("卡号{card}过期", "card"),
    ("账号{iban}请", "iban"),
    ("请联系zhang.san@gongsi.cn谢谢", "email"),
    ("https://corp.cn/?card={card}&id=1", "card"),
    ("mailto:zhang.san@gongsi.cn", "email"),
)


@pytest.mark.parametrize(("text", "kind"), PERSONS)
def test_persons_are_masked_beside_chinese_letters(text: str, kind: str) -> None:
    maker = Maker()
    leaks = {"china_id": maker.china_id(), "card": maker.card(), "iban": maker.iban()}

    for body in documents(text.format(**leaks)):
        assert clean(body, ResultRules(personal=True)).found == {f"masked.{kind}": 1}


def test_a_number_has_the_name_of_its_member_beside_it() -> None:
    body = json.dumps({"phone": "13812345678", "order": "13812345678"}).encode()

    changed = json.loads(clean(body, ResultRules(personal=True)).body)

    assert changed == {"phone": "[masked: phone]", "order": "13812345678"}


NAMES = (
    *("dbPassword", "adminPassword", "sessionToken", "apiToken", "secretKey", "密码", "口令"),
    *("passphrase", "aws_session_token", "api key", "token", "authorization", "cookie", "x.token"),
)
NO_NAMES = (
    "nextPageToken",
    "page_token",
    "csrf_token",
    "tokens",
    "passport",
    "keyboard",
    "cooking",
)


@pytest.mark.parametrize("name", NAMES)
def test_members_with_such_names_are_masked(name: str) -> None:
    for value in ({name: "Hunter2!xQ9"}, {"name": name, "value": "Hunter2!xQ9"}):
        for body in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps([value])):
            assert clean(body.encode(), ALL).found == {"masked.password": 1}, body
        told = json.dumps({"content": [{"type": "text", "text": json.dumps(value)}]})
        assert clean(told.encode(), ALL).found == {"masked.password": 1}, told


@pytest.mark.parametrize("name", NO_NAMES)
def test_members_with_other_names_stay(name: str) -> None:
    for value in ({name: "CAUQAA1xB7rt91Lw"}, {"name": name, "value": "CAUQAA1xB7rt91Lw"}):
        body = json.dumps(value).encode()
        assert clean(body, ALL).body is body


@pytest.mark.parametrize("value", ["next_page_2", "Hello", "a-token-of-thanks", "2026-11-28"])
def test_a_token_is_masked_where_it_looks_like_one(value: str) -> None:
    body = json.dumps({"token": value}).encode()

    assert clean(body, ALL).body is body


PASSWORDS = {
    'password="Hu,n;t2&9<xQ!z" so': 'password="[masked: password]" so',
    "password=Hunter2,restofit9Qx so": "password=[masked: password] so",
    "password=Hunter2xQ9&user=bob": "password=[masked: password]&user=bob",
    "password=Hunter2xQ9;Server=db": "password=[masked: password];Server=db",
    "password=Hunter2xQ9, user: bob": "password=[masked: password], user: bob",
    "postgres://adm:Hunt@er2xQ9@db/x?a@b": ("postgres://adm:[masked: connection string]@db/x?a@b"),
    "密码：Hunter2xQ9": "密码：[masked: password]",
}


@pytest.mark.parametrize("text", PASSWORDS)
def test_passwords_are_masked_to_their_end(text: str) -> None:
    for body in documents(text):
        (said,) = [
            one.text for one in strings(clean(body, ALL).body.decode()) if "masked" in one.text
        ]
        assert said == PASSWORDS[text]


HIDES = re.compile(f"[{of_kinds('control', 'bidi', 'selector', 'tag', 'unseen', 'surrogate')}]")
# Halves of characters are alike, and so is what Unicode has not given out.
REMOVED = [
    one
    for one in map(
        chr,
        (*range(0xD801), *range(0xDFFF, 0xE001), *range(0xFB00, 0x20000), *range(0xE0000, 0xE0200)),
    )
    if HIDES.match(one) and category(one) not in ("Cn", "Co")
]


def test_what_is_removed_joins_no_secret() -> None:
    secret = Maker().github()
    rules = ResultRules(hidden=HiddenText.REMOVE, secrets=True)
    assert len(REMOVED) > 300

    for hidden in (*REMOVED, "\r\r", "\x1b[m\r", "\ud800\u200b", "\r\u202e", "\u200d\r"):
        body = json.dumps({"text": f"{secret[:12]}{hidden}{secret[12:]}"}).encode()
        assert secret not in clean(body, rules).body.decode(), hex(ord(hidden[0]))


@pytest.mark.parametrize("half", [0xD800, 0xDFFF])
def test_half_a_character_hides_no_secret(half: int) -> None:
    secret = Maker().github()
    body = json.dumps({"text": f"{secret[:12]}{chr(half)}{secret[12:]}"}).encode()

    assert clean(body, ResultRules(secrets=True)).found == {"masked.github_token": 1}


@pytest.mark.parametrize("blank", ["\x0b", "\x85", "\u2800", "\u3164"])
def test_what_shows_as_a_blank_leaves_one(blank: str) -> None:
    body = json.dumps({"text": f"to{blank}be"}).encode()

    assert clean(body, ResultRules(hidden=HiddenText.REMOVE)).body == b'{"text": "to be"}'
