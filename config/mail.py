"""Django's settings of mail, of one URL."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

SMTP = "django.core.mail.backends.smtp.EmailBackend"
FILES = "notifications.mail_files.PrivateFileBackend"
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}


class BadEmailUrl(ValueError):
    """EMAIL_URL cannot be used; never repeats the password in it."""


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
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise BadEmailUrl(
            "EMAIL_URL is none of smtp://…, smtp+tls://… and smtps://…, with user:password@host."
        )
    return MailServer(
        SMTP,
        parts.hostname,
        parts.port or PORTS[parts.scheme],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        use_tls=parts.scheme == "smtp+tls",
        use_ssl=parts.scheme == "smtps",
    )
