"""Reasons why an attempt to deliver did not deliver, as sentences without anything secret."""

from __future__ import annotations

from core.english import gettext as _
from core.errors import CountersignError


class Failed(CountersignError):
    """The attempt failed; another may succeed. `is_of_place`: whatever is sent there would fail.
    `retry_after_s`: for how long its receiver wants nothing."""

    def __init__(
        self, sentence: str, *, is_of_place: bool = True, retry_after_s: float = 0
    ) -> None:
        super().__init__(sentence)
        self.is_of_place = is_of_place
        self.retry_after_s = retry_after_s


class Impossible(CountersignError):
    """No further attempt would succeed."""


class NotNeeded(CountersignError):
    """Meanwhile nobody needs it, or may have it."""


NOT_WANTED = _("Its reader does not want it any more.")
NOT_ALLOWED = _("Its reader may do nothing of it any more.")
DECIDED = _("It was decided meanwhile, or its reader may not decide on it.")
ENDED = _("The delegation ended meanwhile.")
REPLACED = _("The token was revoked or replaced meanwhile.")
NO_DECISIONS = _("Nobody decided anything in that week.")
DETACHED = _("The entry that it is about was taken out of the database meanwhile.")
REVIEWED = _("The definitions were reviewed meanwhile.")
