"""Words of people between sentences of ours."""

import pytest

from core.english import with_full_stop


@pytest.mark.parametrize(
    ("said", "ended"),
    [
        ("", ""),
        ("Too many mails", "Too many mails."),
        ("Too many mails.", "Too many mails."),
        ("Ask at the café", "Ask at the café."),
        ("See “mails”", "See “mails”."),
        ("邮件太多", "邮件太多。"),
        ("邮件太多！", "邮件太多！"),
    ],
)
def test_a_sentence_ends_in_the_full_stop_of_its_script(said: str, ended: str) -> None:
    assert with_full_stop(said) == ended
