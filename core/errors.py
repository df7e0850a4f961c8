"""What can go wrong in words that fit every surface."""


class CountersignError(Exception):
    """A refusal with a sentence for whoever asked; never a secret in it."""


class RecordUnavailable(CountersignError):
    """The record cannot be written or read in time, so nothing is done."""


class RecordUnsure(RecordUnavailable):
    """As before, and the record may have been written all the same."""
