"""Sends mail, or so it looks: every mail becomes one .eml file in a local outbox.

Sending cannot be undone, so the tool says that it is destructive and a gateway may ask a person.
"""

import argparse
import os
import re
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from email.message import EmailMessage
from email.parser import BytesHeaderParser
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from pathlib import Path
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import AfterValidator, BaseModel, Field

SENDER = "Countersign examples <agent@countersign.example>"

Address = Annotated[
    str,
    Field(
        max_length=254,
        pattern=r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$",
        json_schema_extra={"format": "email"},
    ),
]


def without_repeats(addresses: list[str]) -> list[str]:
    if len({address.lower() for address in addresses}) < len(addresses):
        raise ValueError("name each address once")
    return addresses


Recipients = Annotated[
    list[Address],
    Field(
        min_length=1,
        max_length=20,
        description="Who gets the mail.",
        json_schema_extra={"uniqueItems": True},
    ),
    AfterValidator(without_repeats),
]
Subject = Annotated[
    str,
    Field(
        min_length=1,
        max_length=200,
        # Nothing that breaks a line: it would let a subject write headers of its own.
        pattern=r"^[^\x00-\x1f\x7f\x85\u2028\u2029]+$",
        description="One line.",
    ),
]


class SentMail(BaseModel):
    message_id: str
    file: str = Field(description="Its name in the outbox.")
    to: list[str]
    subject: str
    sent_at: datetime


server = MCPServer("mailer", title="Mailer", version="1.0")


@server.tool(
    title="Send a mail",
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True
    ),
)
def send_mail(
    to: Recipients,
    subject: Subject,
    body: Annotated[str, Field(min_length=1, max_length=50_000, description="Plain text.")],
) -> SentMail:
    """Send a plain-text mail. It cannot be called back."""
    sent_at = datetime.now(UTC)
    mail = EmailMessage(policy=SMTP)
    mail["From"] = SENDER
    mail["To"] = ", ".join(to)
    mail["Subject"] = subject
    mail["Date"] = format_datetime(sent_at)
    mail["Message-ID"] = make_msgid(domain="countersign.example")
    mail.set_content(body)

    file = put(mail, sent_at)
    return SentMail(
        message_id=mail["Message-ID"], file=file.name, to=to, subject=subject, sent_at=sent_at
    )


@server.tool(
    title="List sent mails",
    annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
)
def list_sent(
    limit: Annotated[int, Field(ge=1, le=100, description="Most mails to return.")] = 20,
) -> list[SentMail]:
    """List the mails in the outbox, the newest first."""
    files = sorted(outbox().glob("*.eml"), reverse=True)
    return [sent_mail(file) for file in files[:limit]]


def outbox() -> Path:
    folder = Path(os.environ.get("COUNTERSIGN_OUTBOX", "var/outbox")) / "mail"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(f"The outbox cannot be used: {error.strerror}.") from error
    return folder


def put(mail: EmailMessage, sent_at: datetime) -> Path:
    """Written beside and renamed, so that nobody ever reads half a mail."""
    folder = outbox()
    name = f"{sent_at:%Y%m%dT%H%M%S.%f}-{secrets.token_hex(3)}-{slug(mail['Subject'])}"
    beside = folder / f"{name}.part"
    beside.write_bytes(mail.as_bytes())
    return beside.rename(folder / f"{name}.eml")


def slug(subject: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", subject.lower()).strip("-")[:40] or "mail"


def sent_mail(file: Path) -> SentMail:
    with file.open("rb") as source:
        headers = BytesHeaderParser(policy=SMTP).parse(source)
    return SentMail(
        message_id=headers["Message-ID"],
        file=file.name,
        to=headers["To"].split(", "),
        subject=headers["Subject"],
        sent_at=headers["Date"].datetime,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP instead of stdio")
    parser.add_argument("--outbox", help="where to write (default: COUNTERSIGN_OUTBOX, var/outbox)")
    options = parser.parse_args()
    if options.outbox:
        os.environ["COUNTERSIGN_OUTBOX"] = options.outbox
    if options.http is None:
        server.run()
    else:
        server.run("streamable-http", port=options.http)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
