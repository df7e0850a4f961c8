"""Which passwords are too easy to guess, for somebody who knows whose they are."""

from __future__ import annotations

import re
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from zxcvbn import zxcvbn

# Of 0 to 4: at least 10^8 guesses, by words, names, dates, patterns on keyboards and repetitions.
STRONG_ENOUGH = 3
# Beyond that it costs time, and says nothing new.
LOOKED_AT = 72
ATTRIBUTES = ("username", "email", "first_name", "last_name")


class StrengthValidator:
    """A password validator for AUTH_PASSWORD_VALIDATORS: refuses passwords that are quickly
    guessed."""

    def validate(self, password: str, user: Any = None) -> None:
        found = zxcvbn(password[:LOOKED_AT], user_inputs=known_words(user))
        if found["score"] < STRONG_ENOUGH:
            raise ValidationError(
                _("This password is easy to guess. Take three or four words that nobody expects."),
                code="password_too_weak",
            )

    def get_help_text(self) -> str:
        return str(_("Your password must not be easy to guess."))


def known_words(user: Any) -> list[str]:
    """Words that an attacker tries first: the person's names and the site's."""
    values = [str(getattr(user, name, "") or "") for name in ATTRIBUTES]
    words = [word for value in values for word in (value, *re.split(r"\W+", value))]
    return ["countersign", *filter(None, words)]
