"""Requests for a link by which to set a new password: answered alike, whoever has the address."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest

from accounts import attempts
from accounts.models import User
from audit.services import SYSTEM, record
from core.client_address import client_address
from notifications.models import MailRecipient
from notifications.ringing import ring_on_commit

# Accounts that share an address and get a link each.
ACCOUNTS_MAX = 5


def request_link(request: HttpRequest, address: str) -> None:
    """The mail is made and sent later, from the entry, so that an address that nobody has takes no
    less time. Raises TooManyAttempts."""
    attempts.count_reset(request, address)
    people: list[User | None] = [*people_of(address)]
    with transaction.atomic():
        for person in people or [None]:
            record(
                "password_reset.requested",
                actor=SYSTEM,
                person=person.username if person else "",
                person_id=person.pk if person else None,
                address=client_address(request),
            )
        ring_on_commit()


def people_of(address: str) -> list[User]:
    """Accounts that may be sent a link there."""
    found = MailRecipient.objects.reachable().filter(
        address__iexact=address, person__reset_by_mail_since__isnull=False
    )
    return [one.person for one in found.select_related("person")[:ACCOUNTS_MAX]]
