"""Django's settings of mail, of one URL and a sender."""

from __future__ import annotations

from email.errors import InvalidHeaderDefect, NonASCIILocalPartDefect
from email.headerregistry import HeaderRegistry
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from core.bad_setting import BadSetting

SMTP = "django.core.mail.backends.smtp.EmailBackend"
FILES = "notifications.mail_files.PrivateFileBackend"
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


FORM = (
    "EMAIL_URL must be smtp://…, smtp+tls://… or smtps://…, with USER:PASSWORD@HOST:PORT and "
    "nothing after that. In the user name and password, write / as %2F, # as %23, ? as %3F, "
    "@ as %40, : as %3A and % as %25."
)


class BadEmailUrl(BadSetting):
    """EMAIL_URL cannot be used; never repeats the password in it."""


class BadEmailSender(BadSetting):
    """COUNTERSIGN_EMAIL_FROM is no address."""


class MailServer(NamedTuple):
    """`use_tls`: encrypted once both sides have greeted (STARTTLS); `use_ssl`: from the first
    byte."""

    backend: str
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    use_tls: bool = False
    use_ssl: bool = False


def mail_server(url: str) -> MailServer:
    """Without a URL, mail is written to files. Raises BadEmailUrl."""
    if not url:
        return MailServer(FILES)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # Its words, and a chained error, may have a part of the password.
        raise BadEmailUrl(FORM) from None
    # A "/" that is not encoded ends the host, and the password is taken for a port.
    is_cut_short = parts.path not in ("", "/") or parts.query or parts.fragment
    if parts.scheme not in PORTS or not parts.hostname or is_cut_short:
        raise BadEmailUrl(FORM)
    return MailServer(
        SMTP,
        parts.hostname,
        port or PORTS[parts.scheme],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        use_tls=parts.scheme == "smtp+tls",
        use_ssl=parts.scheme == "smtps",
    )


def sender(given: str) -> str:
    """The sender of all mail, as it was given; "" for none. Raises BadEmailSender."""
    if not given:
        return ""
    try:
        header: Any = HeaderRegistry()("from", given)
    except ValueError:
        raise BadEmailSender(_sender_form(given)) from None
    bad = [
        one
        for one in header.defects
        if isinstance(one, InvalidHeaderDefect | NonASCIILocalPartDefect)
    ]
    addresses = header.addresses
    is_one = len(addresses) == 1 and header.groups[0].display_name is None
    if bad or not is_one or not (addresses[0].username and addresses[0].domain):
        raise BadEmailSender(_sender_form(given))
    return given


def _sender_form(given: str) -> str:
    return (
        f"COUNTERSIGN_EMAIL_FROM is not one address: {given!r}. Write countersign@example.org or "
        'Countersign <countersign@example.org>; a name with a comma in quotes: "Example, Inc." '
        "<countersign@example.org>."
    )
