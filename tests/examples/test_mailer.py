from email import message_from_bytes
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.examples.running import Connection, over_stdio

EXAMPLE = "mailer"
MAIL = {"to": ["ada@example.org", "bo@example.org"], "subject": "Båten går", "body": "Kl. 6.\nHei!"}


@pytest.fixture(scope="module")
def options(outbox: Path) -> list[str]:
    return ["--outbox", str(outbox)]


@pytest.fixture(autouse=True)
def empty(outbox: Path) -> None:
    for file in outbox.rglob("*.eml"):
        file.unlink()


def test_it_puts_a_real_mail_into_the_outbox(server: Connection, outbox: Path) -> None:
    sent: Any = server.call("send_mail", **MAIL).structured_content

    (file,) = (outbox / "mail").iterdir()
    mail = message_from_bytes(file.read_bytes(), policy=default)
    assert file.name == sent["file"]
    assert mail["Message-ID"] == sent["message_id"]
    assert mail["To"] == "ada@example.org, bo@example.org"
    assert mail["Subject"] == "Båten går"
    assert mail["Bcc"] is None
    assert mail.get_content().splitlines() == ["Kl. 6.", "Hei!"]


def test_two_mails_of_the_same_words_are_two_mails(server: Connection, outbox: Path) -> None:
    first, second = (server.call("send_mail", **MAIL).structured_content for _ in range(2))

    assert first["message_id"] != second["message_id"]
    assert len(list((outbox / "mail").iterdir())) == 2


def test_it_lists_what_was_sent_with_the_newest_first(server: Connection) -> None:
    for subject in ("first", "second", "third"):
        server.call("send_mail", **MAIL | {"subject": subject})

    listed = server.call("list_sent", limit=2).structured_content["result"]

    assert [each["subject"] for each in listed] == ["third", "second"]
    assert listed[0]["to"] == MAIL["to"]


@pytest.mark.parametrize(
    ("argument", "value", "reason"),
    [
        ("to", [], "at least 1 item"),
        ("to", ["ada"], "match pattern"),
        ("to", ["ada@example.org\nBcc: eve@example.org"], "match pattern"),
        ("to", ["ada@example.org", "Ada@example.org"], "name each address once"),
        ("to", ["ada@example.org"] * 21, "at most 20 items"),
        ("subject", "x\r\nBcc: eve@example.org", "match pattern"),
        ("subject", "x\u2028Bcc: eve@example.org", "match pattern"),
        ("subject", "", "at least 1 character"),
        ("body", "", "at least 1 character"),
        ("body", "x" * 50_001, "at most 50000 characters"),
    ],
)
def test_it_refuses_what_is_no_mail_and_sends_nothing(
    server: Connection, outbox: Path, argument: str, value: Any, reason: str
) -> None:
    assert reason in server.error("send_mail", **MAIL | {argument: value})

    assert list(outbox.rglob("*.eml")) == []


@pytest.mark.long
def test_the_environment_may_name_the_outbox_too(tmp_path: Path) -> None:
    with over_stdio(EXAMPLE, COUNTERSIGN_OUTBOX=str(tmp_path)) as server:
        sent: Any = server.call("send_mail", **MAIL).structured_content

    assert [file.name for file in (tmp_path / "mail").iterdir()] == [sent["file"]]


def test_it_says_what_it_destroys(server: Connection) -> None:
    tools = server.tools()
    send, listing = tools["send_mail"], tools["list_sent"]

    assert send.annotations
    assert (send.annotations.read_only_hint, send.annotations.destructive_hint) == (False, True)
    assert send.annotations.idempotent_hint is False
    assert listing.annotations
    assert listing.annotations.read_only_hint is True


def test_its_schemas_are_valid(server: Connection) -> None:
    for tool in server.tools().values():
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator.check_schema(tool.output_schema or {})
    to = server.tools()["send_mail"].input_schema["properties"]["to"]
    assert (to["minItems"], to["maxItems"], to["uniqueItems"]) == (1, 20, True)
    assert to["items"]["format"] == "email"
