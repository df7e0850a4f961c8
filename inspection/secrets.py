"""Secrets in text: keys of known providers, tokens, private keys, passwords in addresses.

Each detector starts from letters that its secrets begin with, looks at a bounded stretch, and
judges by a checksum, by the form of what is inside, or by the words beside it.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


class Masked(NamedTuple):
    """A stretch to mask, and as what."""

    start: int
    end: int
    kind: str


class Detector(NamedTuple):
    kind: str
    label: str | Promise
    # What it begins with; in lower case where `folds`.
    marks: tuple[str, ...]
    pattern: re.Pattern[str]
    # Whether this is one, of what the pattern matched.
    holds: Callable[[re.Match[str]], bool] = lambda match: True
    folds: bool = False
    # The marks stand within it.
    is_inner: bool = False
    # Fewer parts of them, one of which every mark has.
    stems: tuple[str, ...] = ()


_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _github(match: re.Match[str]) -> bool:
    """The last six characters are the CRC-32 of those before, in base 62 (GitHub, 2021-04-05)."""
    token = match.group()
    body, check = token[4:-6], token[-6:]
    value, digits = zlib.crc32(body.encode()), ""
    while value:
        value, rest = divmod(value, 62)
        digits = _BASE62[rest] + digits
    return digits.rjust(6, "0") == check or _is_random(body)


def _random(match: re.Match[str]) -> bool:
    return _is_random(match["secret"] if "secret" in match.re.groupindex else match.group())


def _is_random(text: str) -> bool:
    """No filler as documentation has it (xxxx, 0000, EXAMPLE): eight characters or more differ."""
    folded = text.lower()
    return len(set(folded)) >= 8 and "example" not in folded and "xxxx" not in folded


def _jwt(match: re.Match[str]) -> bool:
    head = match.group().split(".", 1)[0]
    try:
        said = base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))
    except (binascii.Error, ValueError):
        return False
    return b'"alg"' in said


# What stands where a password would, and is none.
_NO_PASSWORD = re.compile(
    r"(?i)\A(?:[<{$%*\[].*|x{3,}|\*+|\.{3,}|password|passwd|pass|pwd|secret|token|null|none|nil"
    r"|true"
    r"|false|undefined|required|optional|string|redacted|masked|hidden|changeme|your[-_ ].*"
    r"|my[-_]?(?:password|secret|token)|example.*|env\..*|os\..*|process\..*|getenv.*|config.*"
    r"|settings\..*|self\..*|vault:.*|file:.*|ssm:.*|arn:.*)\Z"
)


def _password(match: re.Match[str]) -> bool:
    secret = match["secret"]
    return not _NO_PASSWORD.match(secret) and len(set(secret)) >= 4


def _assigned(match: re.Match[str]) -> bool:
    """The value assigned to a name such as `password`, and neither a word of prose nor code."""
    secret = match["secret"].rstrip(".,;:!?)")
    if len(secret) < 6 or "(" in secret or _NO_PASSWORD.match(secret) or not _password(match):
        return False
    kinds = (str.isdigit, str.isupper, str.islower, lambda c: not c.isalnum())
    return sum(any(map(kind, secret)) for kind in kinds) >= 2


def _plain(prefix: str, tail: str, *, before: str = r"(?<![A-Za-z0-9_\-/+=])") -> re.Pattern[str]:
    return re.compile(f"{before}{prefix}{tail}(?![A-Za-z0-9_])")


# One of them is in every name of a secret; what has none is looked at no further.
STEMS = ("passw", "pwd", "secret", "token", "key", "密码")

DETECTORS = (
    Detector(
        "aws_key",
        _("AWS access key"),
        ("AKIA", "ASIA"),
        _plain("(?:AKIA|ASIA)", "[A-Z2-7]{16}"),
        lambda match: "EXAMPLE" not in match.group(),
    ),
    Detector(
        "alibaba_key",
        _("Alibaba Cloud access key"),
        ("LTAI",),
        _plain("LTAI", "[A-Za-z0-9]{12,26}"),
        _random,
    ),
    Detector(
        "tencent_key",
        _("Tencent Cloud access key"),
        ("AKID",),
        _plain("AKID", "[A-Za-z0-9]{32}"),
        _random,
    ),
    Detector(
        "vault_token",
        _("HashiCorp Vault token"),
        ("hvs.", "hvb.", "hvr."),
        _plain(r"hv[sbr]\.", r"[A-Za-z0-9_\-]{24,300}"),
        _random,
    ),
    Detector(
        "twilio_key",
        _("Twilio API key"),
        ("SK",),
        _plain("SK", "[0-9a-f]{32}"),
        _random,
    ),
    Detector(
        "github_token",
        _("GitHub token"),
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        _plain("gh[pousr]_", "[A-Za-z0-9]{36}"),
        _github,
    ),
    Detector(
        "github_token",
        _("GitHub token"),
        ("github_pat_",),
        _plain("github_pat_", "[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    ),
    Detector(
        "gitlab_token",
        _("GitLab token"),
        ("glpat-",),
        _plain("glpat-", r"[A-Za-z0-9_\-]{20,64}"),
        _random,
    ),
    Detector(
        "slack_token",
        _("Slack token"),
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-"),
        _plain("(?:xox[abprs]|xapp)-", r"[A-Za-z0-9\-]{20,200}"),
        _random,
    ),
    Detector(
        "slack_token",
        _("Slack webhook"),
        ("hooks.slack.com/services/",),
        re.compile(
            r"hooks\.slack\.com/services/T[A-Z0-9]{6,12}/B[A-Z0-9]{6,12}/[A-Za-z0-9]{20,32}"
        ),
        _random,
    ),
    Detector(
        "stripe_key",
        _("Stripe key"),
        ("sk_live_", "rk_live_", "sk_test_", "whsec_"),
        _plain("(?:[sr]k_(?:live|test)|whsec)_", "[A-Za-z0-9]{16,128}"),
        _random,
    ),
    Detector(
        "openai_key",
        _("OpenAI key"),
        ("sk-",),
        _plain("sk-(?!ant-)", r"[A-Za-z0-9_\-]{32,200}"),
        _random,
    ),
    Detector(
        "anthropic_key",
        _("Anthropic key"),
        ("sk-ant-",),
        _plain("sk-ant-", r"[A-Za-z0-9_\-]{24,160}"),
        _random,
    ),
    Detector(
        "google_key", _("Google API key"), ("AIza",), _plain("AIza", r"[A-Za-z0-9_\-]{35}"), _random
    ),
    Detector(
        "google_key",
        _("Google OAuth secret"),
        ("GOCSPX-",),
        _plain("GOCSPX-", r"[A-Za-z0-9_\-]{28}"),
        _random,
    ),
    Detector("npm_token", _("npm token"), ("npm_",), _plain("npm_", "[A-Za-z0-9]{36}"), _random),
    Detector(
        "pypi_token",
        _("PyPI token"),
        ("pypi-AgE",),
        _plain("pypi-AgE", r"[A-Za-z0-9_\-]{50,400}"),
    ),
    Detector(
        "sendgrid_key",
        _("SendGrid key"),
        ("SG.",),
        _plain("SG\\.", r"[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{43}"),
    ),
    Detector(
        "huggingface_token",
        _("Hugging Face token"),
        ("hf_",),
        _plain("hf_", "[A-Za-z0-9]{34}"),
        _random,
    ),
    Detector(
        "digitalocean_token",
        _("DigitalOcean token"),
        ("dop_v1_", "doo_v1_"),
        _plain("do[op]_v1_", "[a-f0-9]{64}"),
        _random,
    ),
    Detector(
        "shopify_token",
        _("Shopify token"),
        ("shpat_", "shpss_"),
        _plain("shp(?:at|ss)_", "[a-fA-F0-9]{32}"),
        _random,
    ),
    Detector(
        "telegram_token",
        _("Telegram token"),
        (":AA",),
        re.compile(r"(?<![\w:])\d{8,10}:AA[A-Za-z0-9_\-]{33}(?![\w\-])"),
        _random,
        is_inner=True,
    ),
    Detector(
        "azure_key",
        _("Azure storage key"),
        ("AccountKey=",),
        re.compile(r"AccountKey=(?P<secret>[A-Za-z0-9+/]{86}==)"),
        _random,
    ),
    Detector(
        "jwt",
        _("JSON Web Token"),
        ("eyJ",),
        re.compile(
            r"(?<![A-Za-z0-9_\-.])eyJ[A-Za-z0-9_\-]{10,2000}\.eyJ[A-Za-z0-9_\-]{2,8000}"
            r"\.[A-Za-z0-9_\-]{16,2000}(?![A-Za-z0-9_\-])"
        ),
        _jwt,
    ),
    Detector(
        "private_key",
        _("private key"),
        ("-----BEGIN ",),
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]{2,10} )?(?:ENCRYPTED )?PRIVATE KEY-----"
            # To its end; where that is cut off, as far as there is key.
            r"(?:(?:(?!-----)[\s\S]){40,20000}-----END (?:[A-Z0-9]{2,10} )?(?:ENCRYPTED"
            r" )?PRIVATE KEY-----"
            r"|(?:\s|\\n){0,8}(?:[A-Za-z0-9+/=]{16,200}(?:\s|\\n){0,8}){1,400})"
        ),
    ),
    Detector(
        "connection_string",
        _("password in an address"),
        ("://",),
        re.compile(r"://[^\s/:@\"'<>]{0,100}:(?P<secret>[^\s/@\"'<>]{3,200})@"),
        _password,
    ),
    Detector(
        "bearer_token",
        _("bearer token"),
        ("bearer ",),
        re.compile(r"(?i)\bbearer (?P<secret>[A-Za-z0-9_\-.~+/]{20,4000}=*)"),
        _random,
        folds=True,
    ),
    Detector(
        "password",
        _("password or secret"),
        (
            *("password", "passwd", "passwort", "pwd", "密码", "secret", "token"),
            *("apikey", "api_key", "api-key", "accesskey", "access_key", "access-key"),
        ),
        re.compile(
            r"(?i)(?:password|passwd|passwort|pwd|密码|api[_\-]?key|access[_\-]?key"
            r"|(?:(?<![a-z])|(?<=client))secret(?:[_\-]?key|[_\-]access[_\-]key)?"
            r"|(?:(?<![a-z_\-])|(?<=auth)|(?<=auth[_\-])|(?<=access)|(?<=access[_\-])"
            r"|(?<=refresh)|(?<=refresh[_\-]))token)"
            # JSON within JSON has backslashes before its quotes.
            r"(?:\\{0,15}[\"'])?(?:\s{0,3}=>?\s{0,3}|[ \t]{0,3}[:：][ \t]{0,3})(?:\\{0,15}[\"'])?"
            r"(?P<secret>(?:[^\s\"'<>,;&\\]|\\++(?![\"'])){6,200})"
        ),
        _assigned,
        folds=True,
        stems=STEMS,
    ),
)
LABELS: dict[str, str | Promise] = {one.kind: one.label for one in reversed(DETECTORS)}
# Members of JSON that are called so hold one, whatever it looks like.
_SECRET_NAME = re.compile(
    r"(?i)(?:.{0,40}[_\-.])?(?:password|passwd|pwd|secret|client_?secret|private_?key|api_?key"
    r"|access_?key|secret_?access_?key|auth_?token|access_?token|refresh_?token|bearer_?token)"
)


# Characters of marks, those that fewest texts have first.
_RARE = "_=-JZXKGB/ISTA."


def _by_sign() -> dict[str, list[tuple[str, int]]]:
    """Marks with the places of their detectors, by a character that most texts do not have: a text
    without it is not searched for them."""
    found: dict[str, list[tuple[str, int]]] = {sign: [] for sign in _RARE}
    for place, one in enumerate(DETECTORS):
        for mark in () if one.folds else one.marks:
            found[next(sign for sign in _RARE if sign in mark)].append((mark, place))
    return {sign: marks for sign, marks in found.items() if marks}


_BY_SIGN = _by_sign()
_FOLDING = [(place, one) for place, one in enumerate(DETECTORS) if one.folds]


def has_stem(folded: str) -> bool:
    """Whether the text in lower case has a part of what names a secret."""
    for stem in STEMS:  # noqa: SIM110 a generator takes twice as long, for every result
        if stem in folded:
            return True
    return False


def wanted(text: str, folded: str, *, stemmed: bool) -> tuple[Detector, ...]:
    """Those that could find anything in it. `folded`: the text in lower case, and whether it has a
    stem."""
    found = set()
    for sign, marks in _BY_SIGN.items():
        if sign in text:
            found.update([place for mark, place in marks if mark in text])
    for place, one in _FOLDING:
        if (stemmed or not one.stems) and any(mark in folded for mark in one.marks):
            found.add(place)
    return tuple([DETECTORS[place] for place in sorted(found)]) if found else ()


def find(text: str, detectors: Iterable[Detector] = DETECTORS) -> Iterator[Masked]:
    folded = text.lower()
    # A letter of Turkish becomes two: then places are others.
    is_alike = len(folded) == len(text)
    for one in detectors:
        of = "secret" if "secret" in one.pattern.groupindex else 0
        if one.is_inner or (one.folds and not is_alike):
            matches = one.pattern.finditer(text)
        else:
            matches = _anchored(one, text, folded if one.folds else text)
        for match in matches:
            if one.holds(match):
                yield Masked(match.start(of), match.end(of), one.kind)


def _anchored(one: Detector, text: str, searched: str) -> Iterator[re.Match[str]]:
    """Where its marks are: looking for a plain word is many times faster than for a pattern."""
    for mark in one.marks:
        at = searched.find(mark)
        while at >= 0:
            match = one.pattern.match(text, at)
            if match is not None:
                yield match
            at = searched.find(mark, match.end() if match else at + 1)


def is_named(name: str) -> bool:
    """Whether a member of this name holds a secret."""
    return len(name) < 80 and _SECRET_NAME.fullmatch(name) is not None


def is_value(text: str) -> bool:
    """Whether what such a member holds is one: no placeholder, no word, no sentence."""
    if not 6 <= len(text) <= 4000 or " " in text or _NO_PASSWORD.match(text):
        return False
    kinds = (str.isdigit, str.isupper, str.islower, lambda c: not c.isalnum())
    return len(set(text)) >= 4 and sum(any(map(kind, text)) for kind in kinds) >= 2
