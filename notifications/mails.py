"""Mail on one event to one person: in their language, with no argument of the call in it."""

from __future__ import annotations

import logging
import re
import smtplib
from collections.abc import Iterator
from contextlib import contextmanager
from email.errors import MessageError
from email.header import Header
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_OID, UUID, uuid5
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone, translation

from accounts.models import User
from core.english import gettext as _
from core.text import revealed
from notifications import deliveries
from notifications.events import PERSONAL, Event
from notifications.mail_body import MailText
from notifications.mail_texts import compose, compose_digest
from notifications.models import Delivery, MailRecipient
from notifications.outcomes import DECIDED, NOT_WANTED, Failed, Impossible, NotNeeded

log = logging.getLogger(__name__)

REPLY_MAX = 300
# Source: RFC 3463: a security or policy status (5.7), or a bad address of the sender.
_OF_SENDER = re.compile(r"5\.(7\.|1\.[78]\b)")


def send(delivery: Delivery) -> None:
    recipient = _recipient(delivery)
    companions = []
    if delivery.event == Event.APPROVAL_NEEDED:
        companions = deliveries.claim_companions(delivery)
    if companions:
        _send_digest(delivery, companions, recipient)
        return
    with spoken_to(recipient.person):
        said = compose(delivery, recipient.person)
        message = _message(delivery, recipient.address, said, {delivery.pk})
    transmit(message)


def _send_digest(delivery: Delivery, companions: list[Delivery], recipient: MailRecipient) -> None:
    """All in one mail, with the link of the first that is still needed; where it is the only one,
    in its own mail. One that fails takes its companions with it: they are tried again as it is."""
    with spoken_to(recipient.person):
        said, needed = compose_digest([delivery, *companions], recipient.person)
        about = next((one for one in [delivery, *companions] if one.pk in needed), delivery)
        message = _message(about, recipient.address, said, needed) if said else None
    try:
        if message is not None:
            transmit(message)
    except (Failed, Impossible) as error:
        for one in companions:
            deliveries.retry_later(one, str(error), spare_others=False)
        raise
    for one in companions:
        if one.pk in needed:
            deliveries.mark_sent(one, receipt=str(about.pk))
        else:
            deliveries.drop(one, DECIDED)
    if delivery.pk not in needed:
        # Its mail may have been sent all the same, on the others.
        raise NotNeeded(DECIDED)


def transmit(message: EmailMultiAlternatives) -> None:
    """Raises Failed, or Impossible for an address that its server will never take."""
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as error:
        raise _rejected(error) from error
    except (smtplib.SMTPException, OSError) as error:
        raise Failed(
            _("The mail server could not be used: %(why)s") % {"why": _why(error)}
        ) from error
    except (ValueError, TypeError, MessageError) as error:
        raise Failed(
            _("The mail could not be written for this sender and address."), is_of_place=False
        ) from error
    if folder := mail_folder():
        log.info("a mail was written to %s, since EMAIL_URL is not set", folder)


@contextmanager
def spoken_to(person: User) -> Iterator[None]:
    """Their language, and their clock."""
    language, zone = person.language or settings.LANGUAGE_CODE, ZoneInfo(person.time_zone)
    with translation.override(language), timezone.override(zone):
        yield


def mail_folder() -> str:
    """Where mail is written instead of being sent; "" where there is a mail server."""
    return "" if settings.EMAIL_URL else str(settings.EMAIL_FILE_PATH)


def mail(
    address: str,
    subject: str,
    context: dict[str, Any],
    headers: dict[str, str],
    *,
    is_plain: bool = False,
) -> EmailMultiAlternatives:
    message = _Mail(
        subject,
        render_to_string("notifications/mail/message.txt", context),
        to=[address],
        headers={"Auto-Submitted": "auto-generated", **headers},
    )
    if not is_plain:
        message.attach_alternative(
            render_to_string("notifications/mail/message.html", context), "text/html"
        )
    return message


class _Mail(EmailMultiAlternatives):
    """A mail whose subject, where it is no ASCII, begins on the line of its header: folded as if no
    name stood before it, as Django does, a long one begins with an empty line."""

    def message(self, **given: Any) -> Any:
        made: Any = super().message(**given)
        if not self.subject.isascii():
            folded = Header(str(self.subject), "utf-8", header_name="Subject")
            made.replace_header("Subject", folded)
        return made


def _recipient(delivery: Delivery) -> MailRecipient:
    found = MailRecipient.objects.reachable().select_related("person")
    recipient = found.filter(person_id=delivery.person_id).first()
    if recipient is None or not recipient.wants(delivery.event):
        raise NotNeeded(NOT_WANTED)
    return recipient


def _message(
    delivery: Delivery, address: str, said: MailText, told: set[UUID]
) -> EmailMultiAlternatives:
    is_chosen = delivery.event not in PERSONAL
    context = {
        "said": said,
        "profile": settings.PUBLIC_URL + reverse("notifications:profile") if is_chosen else "",
        "is_of_account": delivery.event in PERSONAL and delivery.event != Event.PASSWORD_RESET,
    }
    thread = _thread(delivery, told)
    # Nothing of a call with secrets is drawn by what reads the mail.
    return mail(address, said.subject, context, thread, is_plain=said.is_masked)


def _thread(delivery: Delivery, told: set[UUID]) -> dict[str, str]:
    """All mail on one call hangs together. The id is the same at every attempt that says the same,
    since a mailbox may discard a second mail under one id: a mail on other calls has another id."""
    host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    if len(told) > 1:
        calls = " ".join(sorted(str(pk) for pk in told))
        return {"Message-ID": f"<{uuid5(NAMESPACE_OID, calls)}@{host}>"}
    headers = {"Message-ID": f"<{delivery.pk}@{host}>"}
    if delivery.call_id:
        call = f"<{delivery.call_id}@{host}>"
        headers |= {"References": call, "In-Reply-To": call}
    return headers


def _rejected(error: smtplib.SMTPRecipientsRefused) -> Failed | Impossible:
    # By its own words for now (4xx), or for good.
    ((address, (code, words)),) = error.recipients.items()
    said = _reply(code, words, address)
    if code < 500:
        sentence = _("The mail server does not take the address now: %(said)s")
    elif _OF_SENDER.match(words.decode(errors="replace")):
        sentence = _("The mail server does not take mail from this sender: %(said)s")
    else:
        sentence = _("The mail server does not take the address: %(said)s")
        return Impossible(sentence % {"said": said})
    return Failed(sentence % {"said": said}, is_of_place=False)


def _why(error: Exception) -> str:
    if isinstance(error, smtplib.SMTPResponseException):
        words = error.smtp_error
        return _reply(error.smtp_code, words if isinstance(words, bytes) else words.encode())
    return type(error).__name__


def _reply(code: int, words: bytes, address: str = "") -> str:
    """The server's answer on one line. Operators read it, the address is for its owner alone."""
    said = words.decode(errors="replace")
    if address:
        said = re.sub(re.escape(address), "…", said, flags=re.IGNORECASE)
    return revealed(" ".join(f"{code} {said}".split()))[:REPLY_MAX]
