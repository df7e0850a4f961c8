"""A new password by a link that was sent by mail, for people who allowed that."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.tokens import PasswordResetTokenGenerator
from django.db import transaction
from django.utils import timezone

from accounts.backend import Backend
from accounts.models import User
from audit.services import record
from core.english import gettext as _
from core.errors import CountersignError

BY_MAIL = _("By a link sent by mail.")


class ResetRefused(CountersignError):
    """The link is unknown, used or expired; which one is not disclosed."""


class ResetTokens(PasswordResetTokenGenerator):
    """Django's; void also once the account was disabled, signed in to, or allows no links."""

    key_salt = "accounts.password_reset"

    def _make_hash_value(self, user: User, timestamp: int) -> str:
        facts = (user.pk, user.session_epoch, user.password, user.last_login)
        return ".".join(map(str, (*facts, user.reset_by_mail_since, timestamp)))


TOKENS = ResetTokens()


@transaction.atomic
def set_allowed(person: User, allowed: bool) -> None:
    """Whether this person's confirmed address gets links. The caller asked for the password."""
    if allowed == bool(person.reset_by_mail_since):
        return
    person.reset_by_mail_since = timezone.now() if allowed else None
    person.save(update_fields=["reset_by_mail_since"])
    action = "password_reset.allowed" if allowed else "password_reset.disallowed"
    record(action, actor=person.actor, person=person.username)


def link_text(person: User) -> str:
    """The end of a link, which is stored nowhere."""
    return f"{person.pk}.{TOKENS.make_token(person)}"


def person_of(text: str) -> User:
    """Whose link it is. Raises ResetRefused."""
    if not settings.LOCAL_SIGN_IN:
        raise ResetRefused(_("Passwords and passkeys sign nobody in here: use the provider."))
    pk, _dot, token = text.partition(".")
    person = Backend().get_user(int(pk)) if pk.isdecimal() and len(pk) < 19 else None
    if person is None or not person.reset_by_mail_since or not TOKENS.check_token(person, token):
        raise ResetRefused(_("This link is unknown, was used before, or is too old."))
    return person


@transaction.atomic
def finish(person: User, encoded: str) -> None:
    """Sets the password, as a hash; ends all sessions and links. Raises ResetRefused."""
    # The update decides: of two who use a link at once, one sets a password.
    unchanged = User.objects.filter(pk=person.pk, password=person.password, is_active=True)
    if not unchanged.update(password=encoded):
        raise ResetRefused(_("This link is unknown, was used before, or is too old."))
    person.password = encoded
    let_in_by = person.let_in_by.username if person.let_in_by else ""
    record(
        "person.password_set",
        actor=person.actor,
        reason=BY_MAIL,
        person=person.username,
        let_in_by=let_in_by,
    )
