"""Results that leak or attack, and others that look like them and must stay byte for byte."""

import base64
import json
import random
import string
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from inspection.json_text import strings
from inspection.results import PASS_ALL, HiddenText, ResultRules, ResultTooLong, clean

ALL = ResultRules(hidden="remove", secrets=True, personal=True, tracebacks=True)
SEED = 21
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
            "twilio_key": f"SK{self.letters(32, '0123456789abcdef')}",
            "github_token": self.github(),
            "google_key": f"AIza{self.letters(35)}",
            "anthropic_key": f"sk-ant-{self.letters(40)}",
            "openai_key": f"sk-proj-{self.letters(48)}",
            "stripe_key": f"sk_live_{self.letters(24)}",
            "slack_token": f"xoxb-{self.digits(12)}-{self.letters(24)}",
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
            f"sha256:{self.letters(64, '0123456789abcdef')} {self.digits(3)}.{self.digits(3)}.1.1",
            "Traceback (most recent call last) is what Python prints first.",
            "See you at (the house:12)\n at noon\n at ten",
            "👩‍👩‍👧 ❤️ 🏴󠁧󠁢󠁳󠁣󠁴󠁿 می‌خواهم क्‍ष שלום\u200f! 東\U000e0100 \ufeff"[:-1],
            "a\r\nb\tc\u00a0d\u3000e co\u00adoperate",
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
    "control": ["a\x08b", "a\x00b", "over\rwritten \x01"],
    "bidi": ["a\u202eb", "a\u2066b\u2069"],
    "tag": ["a\U000e0068\U000e0069"],
    "unseen": ["a\u200bb", "pass\u2060word", "a\ufeffb"],
    "selector": ["a\ufe00\ufe01\ufe02b"],
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


TRACES = {
    "ValueError: bad": (
        'Traceback (most recent call last):\n  File "/srv/a.py", line 1\nValueError: bad'
    ),
    "java.io.IOException: x": "java.io.IOException: x\n\tat a.B.c(B.java:1)\n\tat a.B.d(B.java:2)",
    "TypeError: y": "TypeError: y\n    at f (/app/x.js:3:4)\n    at g (/app/x.js:9:1)",
    "System.Exception: z": (
        "System.Exception: z\n   at A.B() in /src/a.cs:line 3\n   at A.C() in /src/a.cs:line 9"
    ),
    "panic: oh": "panic: oh\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/a.go:3 +0x1d",
    "PHP Fatal error:  no": (
        "PHP Fatal error:  no\nStack trace:\n#0 /var/www/a.php(3): f()\n#1 {main}"
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
