"""Errors with words that fit every surface."""

from uuid import UUID


class CountersignError(Exception):
    """A refusal with a sentence for whoever asked; never a secret in it."""


class RecordUnavailable(CountersignError):
    """The record cannot be written or read in time, so nothing is done."""

    def __init__(self, sentence: str, *, call_id: UUID | None = None) -> None:
        super().__init__(sentence)
        # The call that it was about: under this id it stands, if it stands anywhere.
        self.call_id = call_id


class RecordUnsure(RecordUnavailable):
    """RecordUnavailable, where the record may have been written all the same."""
