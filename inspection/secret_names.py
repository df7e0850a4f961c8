"""Names of members and variables that hold secrets, and values that look like one."""

from __future__ import annotations

import re
from collections.abc import Callable

# One of them is in every name of a secret; what has none is looked at no further.
STEMS = ("pass", "pwd", "secret", "token", "key", "cookie", "credential", "密", "口令")
# With a letter that most texts do not have: looking for it is many times faster.
RARE_STEM = "authoriz"
# How names of members end that hold one.
ENDS = (
    *("password", "passwd", "passwort", "passphrase", "pass", "pwd", "secret", "key", "token"),
    *("cookie", "credential", "credentials", "authorization", "passwords", "密码", "口令"),
)
_LONGEST = 80
_BEGIN = r"(?:.{0,60}(?:[_\-. ]|(?<=[a-z0-9])(?=[A-Z])))?"
# Members that are called so hold one, whatever it looks like.
_SECRET = re.compile(
    r"(?i:.{0,60}(?:passwords?|passwd|passwort|passphrase|密码|口令))"
    rf"|{_BEGIN}(?i:pwd|secret|client[_\- ]?secret|private[_\- ]?key|api[_\- ]?key"
    r"|access[_\- ]?key|secret[_\- ]?(?:access[_\- ]?)?key"
    r"|(?:auth|access|refresh|bearer|session|api)[_\- ]?token)"
)
# These hold many other things as well.
_TOKEN = re.compile(rf"{_BEGIN}(?i:token|authorization|(?:set[_\- ]?)?cookie)")
_SHORT = re.compile(rf"{_BEGIN}(?i:pass|credentials?)")
# Where a list goes on, which is no secret.
_PLACE = re.compile(
    r"(?i)(?:next|prev|previous|page|paging|continuation|continue|sync|delta|cursor|resume|skip"
    r"|scroll|start|end|csrf|xsrf)"
)
# What stands where a password would, and is none.
_NO_PASSWORD = re.compile(
    r"(?i)\A(?:[<{$%*\[].*|x{3,}|\*+|\.{3,}|password|passwd|pass|pwd|secret|token|null|none|nil"
    r"|true"
    r"|false|undefined|required|optional|string|redacted|masked|hidden|changeme|your[-_ ].*"
    r"|my[-_]?(?:password|secret|token)|example.*|env\..*|os\..*|process\..*|getenv.*|config.*"
    r"|settings\..*|projects/.*|self\..*|vault:.*|file:.*|ssm:.*|arn:.*)\Z"
)
_WORD = r"[A-Z]?[a-z]+(?:[A-Z][a-z]+)*\d{0,2}|[A-Z]+\d{0,2}"
# Words in a row as programs write names: request.headers, Secret::new, db-credentials-1.
_CODE = re.compile(rf"(?:{_WORD})(?:(?:\.|::|->|[_/])(?:{_WORD}|\d{{1,2}}))+[\[\](){{}}.,;:!?]*")
_SLUG = re.compile(rf"(?:{_WORD})(?:[._\-](?:{_WORD}|\d{{1,2}}))+[.,;:!?]*")
_KINDS: tuple[Callable[[str], bool], ...] = (
    str.isdigit,
    str.isupper,
    str.islower,
    lambda one: not one.isalnum(),
)
# A random token of fewer characters is rare, and a word with a number is not.
_SHORTEST_TOKEN = 16


def has_stem(folded: str) -> bool:
    """Whether the text in lower case has a part of what names a secret."""
    for stem in STEMS:
        if stem in folded:
            return True
    return "z" in folded and RARE_STEM in folded


def is_named(name: str) -> bool:
    """Whether a member of this name holds a secret."""
    return len(name) < _LONGEST and _SECRET.fullmatch(name) is not None


def is_token(name: str) -> bool:
    """Whether it holds one if it looks like one."""
    return len(name) < _LONGEST and _TOKEN.fullmatch(name) is not None and not _PLACE.search(name)


def holds_secret(name: str, text: str) -> bool:
    """Whether a member of this name and with this text holds a secret."""
    return (
        (is_named(name) and is_value(text))
        or (is_token(name) and looks_random(text))
        or (len(name) < _LONGEST and _SHORT.fullmatch(name) is not None and looks_strong(text))
    )


def is_placeholder(text: str) -> bool:
    return _NO_PASSWORD.match(text) is not None


def is_value(text: str) -> bool:
    """Whether what a member with such a name holds is one: no placeholder, no word, no sentence."""
    if not 6 <= len(text) <= 4000 or is_placeholder(text):
        return False
    if " " in text and not any(map(_is_mixed, text.split())):
        return False
    return len(set(text)) >= 4 and kinds_of(text) >= 2


def looks_random(text: str) -> bool:
    """Whether a word of it has letters and digits as a token does, and not as a name."""
    return len(text) <= 4000 and any(map(_is_random, text.split()))


def looks_strong(text: str) -> bool:
    """Whether a word of it has what rules for passwords ask for, or looks random."""
    return looks_random(text) or (len(text) <= 4000 and any(map(_is_mixed, text.split())))


def _is_random(word: str) -> bool:
    if is_placeholder(word) or len(set(word)) < 8 or is_code(word, slugs=True):
        return False
    has_both = any(map(str.isdigit, word)) and any(map(str.isalpha, word))
    return has_both and (len(word) >= _SHORTEST_TOKEN or kinds_of(word) == len(_KINDS))


def is_code(text: str, *, slugs: bool) -> bool:
    """Whether it is a name of a program's. `slugs`: words with hyphens between them too."""
    return _CODE.fullmatch(text) is not None or (slugs and _SLUG.fullmatch(text) is not None)


def kinds_of(text: str) -> int:
    """How many kinds of characters it has: digits, capitals, small letters, others."""
    return sum(any(map(kind, text)) for kind in _KINDS)


def _is_mixed(word: str) -> bool:
    return len(word) >= 6 and all(any(map(kind, word)) for kind in _KINDS[:3])
