"""Links between people and their Slack accounts: each change with its entry, in one transaction.

Both sides are proven. The code goes from the person's own page to Slack, and the link in Slack's
answer, which only that Slack user sees, goes back to a page of the same person.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.utils import timezone

from accounts.models import User
from audit.services import SYSTEM, record
from core.english import gettext as _
from core.errors import CountersignError
from notifications.delivery_entries import note_unsigned_link
from notifications.models import ChatAccount, SlackApp

WITHIN = timedelta(minutes=10)
# No letters and digits that look alike.
ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 12
OTHER_TEAM = _("You are of another Slack workspace: only users of this one may.")


class ChatLinkRefused(CountersignError):
    """The account is not linked; says why."""


class SlackUser(NamedTuple):
    """The user who is signed in at Slack, as Slack signed it."""

    team_id: str
    user_id: str
    name: str


def is_offered() -> bool:
    return SlackApp.objects.enabled().exists()


@transaction.atomic
def begin(person: User) -> str:
    """The code that the person types in Slack. An earlier one is void."""
    User.objects.select_for_update().get(pk=person.pk)
    ChatAccount.objects.begun().filter(person=person).delete()
    code = "".join(secrets.choice(ALPHABET) for _n in range(CODE_LENGTH))
    ChatAccount.objects.create(person=person, code_digest=_digest(code))
    record("chat_account.begun", actor=person.actor, person=person.username)
    return "-".join(code[at : at + 4] for at in range(0, CODE_LENGTH, 4))


@transaction.atomic
def name_user(user: SlackUser, teams: Mapping[str, str], code: str, signed_by: str) -> str:
    """The nonce for the link that this Slack user gets. The code works once. `teams`: names of the
    workspaces that have the app, by id; `signed_by`: the digest of its signing secret. Raises
    ChatLinkRefused."""
    if user.team_id not in teams or not user.user_id:
        raise ChatLinkRefused(OTHER_TEAM)
    given = code.replace("-", "").replace(" ", "").upper()
    begun = ChatAccount.objects.begun().filter(begun_at__gt=timezone.now() - WITHIN)
    account = begun.select_for_update().filter(code_digest=_digest(given)).first()
    if account is None or not account.person.is_active:
        raise ChatLinkRefused(_("The code is not valid. Create another one on your profile."))
    if linked(user):
        raise ChatLinkRefused(_("This Slack account is linked already. Unlink it first."))
    nonce = secrets.token_urlsafe(24)
    account.team_id, account.team_name = user.team_id, teams[user.team_id]
    account.user_id, account.user_name = user.user_id, user.name[:120]
    account.code_digest, account.nonce_digest = "", _digest(nonce)
    account.signed_by = signed_by
    account.save()
    _record("chat_account.named", account, account.person)
    return nonce


def note_unsigned(request: HttpRequest, nonce: str) -> None:
    """The link was followed without a sign-in."""
    if account := _named(nonce):
        about = "chat_account.confirmation"
        note_unsigned_link(request, nonce, about, account.person.username)


def _named(nonce: str) -> ChatAccount | None:
    begun = ChatAccount.objects.begun().select_related("person")
    since = timezone.now() - WITHIN
    return begun.filter(nonce_digest=_digest(nonce), begun_at__gt=since).first()


def find(person: User, nonce: str) -> ChatAccount:
    """The account that the link is about. Raises ChatLinkRefused; records a link of somebody
    else."""
    account = _named(nonce)
    if account is None:
        raise ChatLinkRefused(_("The link is not valid any more. Begin again on your profile."))
    if account.person_id != person.pk:
        why = _("The link was created for another account. Nothing is linked.")
        _record("chat_account.refused", account, person, reason=why)
        raise ChatLinkRefused(why)
    return account


def confirm(person: User, nonce: str) -> ChatAccount:
    """Raises ChatLinkRefused."""
    account = find(person, nonce)
    try:
        with transaction.atomic():
            _link(account)
    except IntegrityError as error:
        raise ChatLinkRefused(
            _("You already have an account in this workspace, or this one belongs to another user.")
        ) from error
    return account


def _link(account: ChatAccount) -> None:
    mine = ChatAccount.objects.begun().filter(pk=account.pk, nonce_digest=account.nonce_digest)
    if not mine.update(linked_at=timezone.now(), nonce_digest=""):
        raise ChatLinkRefused(_("The link is not valid any more. Begin again on your profile."))
    _record("chat_account.linked", account, account.person)


@transaction.atomic
def unlink(account: ChatAccount) -> None:
    removed, _each = ChatAccount.objects.linked().filter(pk=account.pk).delete()
    if removed:
        _record("chat_account.unlinked", account, account.person)


def linked(user: SlackUser) -> ChatAccount | None:
    known = ChatAccount.objects.linked().select_related("person")
    return known.filter(team_id=user.team_id, user_id=user.user_id).first()


def note_refusal(user: SlackUser, why: str) -> None:
    """Records that this Slack user was not linked."""
    record(
        "chat_account.refused",
        actor=SYSTEM,
        reason=why,
        team=user.team_id[:32],
        slack_user=user.user_id[:32],
        name=user.name[:120],
    )


def _record(action: str, account: ChatAccount, by: User, *, reason: str = "") -> None:
    record(
        action,
        actor=by.actor,
        reason=reason,
        person=account.person.username,
        team=account.team_id,
        slack_user=account.user_id,
        name=account.user_name,
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
