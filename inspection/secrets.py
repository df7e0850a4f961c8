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

from inspection import secret_names
from inspection.provider_keys import MATTERMOST, PROVIDER_KEYS, WEBHOOK, WEBHOOKS, ProviderKey


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


def _basic(match: re.Match[str]) -> bool:
    """A name and a password, with a colon between them."""
    try:
        said = base64.b64decode(match["secret"] + "=" * (-len(match["secret"]) % 4))
    except (binascii.Error, ValueError):
        return False
    return b":" in said and said.isascii()


def _mixed(match: re.Match[str]) -> bool:
    """With a digit, and capital and small letters, or in one long piece: words with hyphens between
    them are neither."""
    tail = match.group().partition("-")[2]
    is_long = any(len(piece) >= 32 for piece in re.split("[_-]", tail))
    return _random(match) and (is_long or secret_names.kinds_of(tail) >= 4)


def _webhook(match: re.Match[str]) -> bool:
    """A part of its path looks random; `/api/webhooks/orders/created` is of a shop. Those of
    Mattermost are known by their length."""
    path = match["secret"].replace("/", " ")
    return match.group().startswith(MATTERMOST) or secret_names.looks_random(path)


def _cookies(match: re.Match[str]) -> bool:
    """One of them holds what looks random; `theme=dark` does not."""
    cookies = match["secret"].split(";")
    return any(secret_names.looks_random(one.partition("=")[2]) for one in cookies)


def _password(match: re.Match[str]) -> bool:
    secret = match["secret"]
    return not secret_names.is_placeholder(secret) and len(set(secret)) >= 4


_GAP = r"[ \t]{0,30}"
# Names of many other things too: of results of tests, and of people.
_SHORT_NAMES = ("pass", "credential", "credentials")
# What may stand before the name of a token: `next_page_`.
_NAME_BEFORE = re.compile(r"[A-Za-z0-9_\-]{0,40}\Z")
_LETTER_BEFORE = re.compile(r"[a-z]\Z")


def _assigned(match: re.Match[str]) -> bool:
    """The value assigned to a name such as `password`, and neither a word of prose nor code."""
    secret = match["secret"] if match["quote"] else match["secret"].rstrip(".,;:!?)`")
    if (weak := match["weak"]) and not (
        secret_names.looks_strong(secret) and _is_beside(match, weak)
    ):
        return False
    if not match["quote"] and "(" in secret:
        return False
    if not (_password(match) and secret_names.is_value(secret) and _is_named(match, secret)):
        return False
    is_spaced = match["sign"] != "="
    is_literal = match["quote"] and match["name"].lower() not in ("secret", "token")
    return bool(is_literal) or not secret_names.is_code(secret, slugs=is_spaced)


def _is_beside(match: re.Match[str], sign: str) -> bool:
    """A space alone stands between the option of a command and its value."""
    before = _NAME_BEFORE.search(match.string[max(0, match.start() - 40) : match.start()])
    return sign != " " or bool(before and before.group().startswith("--"))


def _is_named(match: re.Match[str], secret: str) -> bool:
    """Whether its name, with what stands before it, is one of a secret with this value."""
    name = match["name"].lower()
    if name in _SHORT_NAMES:
        return secret_names.looks_strong(secret)
    if name != "token":
        return True
    # The longest is cut short there, and looked at as far as it goes.
    before = _NAME_BEFORE.search(match.string[max(0, match.start() - 40) : match.start()])
    words = before.group() if before else ""
    name = words + match["name"]
    if not words or secret_names.is_named(name):
        return True
    return secret_names.is_token(name) and secret_names.looks_random(secret)


# No letter or digit of ASCII; those of Chinese stand beside words without a space. The letter of an
# escape is none, and neither is the second digit of one in an address.
BORDER = r"(?:(?<![A-Za-z0-9_\-+])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"


def _plain(prefix: str, tail: str) -> re.Pattern[str]:
    return re.compile(f"{BORDER}{prefix}{tail}(?![A-Za-z0-9_])")


def _of_provider(key: ProviderKey) -> Detector:
    marks = "|".join(map(re.escape, key.marks))
    return Detector(key.kind, key.label, key.marks, _plain(f"(?:{marks})", key.tail), _random)


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
        ("hv",),
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
        _mixed,
    ),
    Detector(
        "anthropic_key",
        _("Anthropic key"),
        ("sk-ant-",),
        _plain("sk-ant-", r"[A-Za-z0-9_\-]{24,160}"),
        _mixed,
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
        re.compile(
            r"(?:(?<![A-Za-z0-9_:])|(?<=bot))\d{8,10}:AA[A-Za-z0-9_\-]{33}(?![A-Za-z0-9_\-])"
        ),
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
        "gitlab_token",
        _("GitLab token"),
        (
            "glrt-",
            "gldt-",
            "glptt-",
        ),
        _plain("gl(?:[rd]t|ptt)-", r"[A-Za-z0-9_\-]{20,64}"),
        _random,
    ),
    Detector(
        "docker_token",
        _("Docker token"),
        ("dckr_pat_",),
        _plain("dckr_pat_", r"[A-Za-z0-9_\-]{27}"),
        _random,
    ),
    Detector(
        "google_key",
        _("Google OAuth token"),
        ("ya29.",),
        _plain(r"ya29\.", r"[A-Za-z0-9_\-]{30,500}"),
        _random,
    ),
    Detector(
        "databricks_token",
        _("Databricks token"),
        ("dapi",),
        _plain("dapi", r"[a-f0-9]{32}(?:-\d)?"),
        _random,
    ),
    Detector(
        "notion_token",
        _("Notion token"),
        ("ntn_",),
        _plain("ntn_", "[A-Za-z0-9]{40,60}"),
        _random,
    ),
    Detector(
        "grafana_token",
        _("Grafana token"),
        (
            "glsa_",
            "glc_",
        ),
        _plain("gls?[ac]_", "[A-Za-z0-9+/=]{32,400}(?:_[A-Fa-f0-9]{8})?"),
        _random,
    ),
    Detector(
        "linear_key",
        _("Linear key"),
        ("lin_api_",),
        _plain("lin_api_", "[A-Za-z0-9]{32,64}"),
        _random,
    ),
    Detector(
        "groq_key",
        _("Groq key"),
        ("gsk_",),
        _plain("gsk_", "[A-Za-z0-9]{40,64}"),
        _random,
    ),
    Detector(
        "xai_key",
        _("xAI key"),
        ("xai-",),
        _plain("xai-", "[A-Za-z0-9]{60,100}"),
        _random,
    ),
    Detector(
        "azure_key",
        _("Azure shared access signature"),
        ("sig=",),
        re.compile(r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/]{40,80}(?:=|%3[Dd])?)"),
        _random,
    ),
    *map(_of_provider, PROVIDER_KEYS),
    Detector(
        "terraform_token",
        _("Terraform token"),
        (".atlasv1.",),
        # After more of the token.
        re.compile(r"\.atlasv1\.[A-Za-z0-9_\-]{60,70}(?![A-Za-z0-9_])"),
        _random,
    ),
    Detector(
        "mailgun_key",
        _("Mailgun key"),
        ("mailgun",),
        re.compile(
            r"(?i)mailgun[^\r\n]{0,80}?(?<![a-z0-9])(?P<secret>key-[a-z0-9]{32}"
            r"|[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8})(?![a-z0-9])"
        ),
        _random,
        folds=True,
        stems=secret_names.STEMS,
    ),
    Detector(
        "webhook",
        _("webhook address"),
        WEBHOOKS,
        re.compile(f"(?:{'|'.join(map(re.escape, WEBHOOKS))}){WEBHOOK}"),
        _webhook,
    ),
    Detector(
        "cookie",
        _("cookie"),
        ("cookie:",),
        # In any text a line of its own, or in quotes.
        re.compile(r"(?i)cookie:[ \t]{0,3}(?P<secret>[^\r\n\"'\\]{8,4000})"),
        _cookies,
        folds=True,
        stems=secret_names.STEMS,
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
            r"-----BEGIN (?:[A-Z0-9]{2,10} )?(?:ENCRYPTED )?PRIVATE KEY(?: BLOCK)?-----"
            # To its end; where that is cut off, as far as there is key.
            r"(?:(?:(?!-----)[\s\S]){40,20000}-----END (?:[A-Z0-9]{2,10} )?(?:ENCRYPTED"
            r" )?PRIVATE KEY(?: BLOCK)?-----"
            r"|(?:\s|\\n){0,8}(?:[A-Za-z0-9+/=]{16,200}(?:\s|\\n){0,8}){1,400})"
        ),
    ),
    Detector(
        "connection_string",
        _("password in an address"),
        ("://",),
        re.compile(r"://[^\s/:@\"'<>]{0,100}:(?P<secret>[^\s/\"'<>]{3,200})@"),
        _password,
    ),
    Detector(
        "bearer_token",
        _("bearer token"),
        ("bearer ",),
        re.compile(r"(?i)(?<![A-Za-z0-9_])bearer (?P<secret>[A-Za-z0-9_\-.~+/]{20,4000}=*)"),
        _random,
        folds=True,
    ),
    Detector(
        "basic_auth",
        _("basic authentication"),
        ("basic ",),
        re.compile(r"(?i)(?<![A-Za-z0-9_])basic (?P<secret>[A-Za-z0-9+/]{8,400}={0,2})"),
        _basic,
        folds=True,
    ),
    Detector(
        "password",
        _("password or secret"),
        (
            *("pass", "pwd", "密", "口令", "secret", "credential"),
            *("token", "apikey", "api_key", "api-key", "accesskey", "access_key", "access-key"),
        ),
        re.compile(
            r"(?i)(?P<name>password|passwd|passwort|passphrase|(?<![a-z])pass|pwd|口令"
            r"|密 ?[码碼钥鑰]|(?<![a-z])credentials?|api[_\-]?key"
            r"|access[_\-]?key|(?:(?<![a-z])|(?<=client))secret(?:[_\-]?key|[_\-]access[_\-]key)?"
            r"|(?:(?<![a-z])|(?<=auth)|(?<=access)|(?<=refresh)|(?<=session)|(?<=api)|(?<=bearer))"
            r"token)"
            # JSON within JSON has backslashes before its quotes; Markdown has marks around words.
            r"(?:\\{0,15}[\"']|[*_`]{1,3})?"
            rf"(?:(?P<sign>\s{{0,3}}=>?\s{{0,3}}|{_GAP}(?::=|=>?|->|[:：][*_]{{0,3}}){_GAP})"
            # What may stand between other words too: in a table, in XML, in a sentence, on the line
            # below, in a command.
            rf"|(?P<weak>[:：] ?(?:[|>][+\-]?)?\r?\n[ \t]{{1,20}}|[ \t]{{1,30}}\|[ \t]{{1,30}}|>"
            r"|\s{1,3}value\s?=\s?| (?:is|was):? |(?:是|为|為)[:：]? ?| ))`?"
            # To the end of what is in quotes; without, to a separator with no value behind it.
            r"(?:\\{0,15}(?P<quote>[\"'])(?=(?:(?!(?P=quote))[^\r\n]){1,200}(?P=quote))"
            r"|\\{0,15}[\"'])?"
            r"(?P<secret>(?(quote)(?:(?!(?P=quote))[^\\\r\n]|\\++(?!(?P=quote))){6,200}"
            r"|(?:[^\s\"'<>,;&\\]|\\++(?![\"'])"
            r"|[,;&](?![\w.\-]{0,40}\s{0,2}[=:])(?=[A-Za-z0-9])){6,200}))"
        ),
        _assigned,
        folds=True,
        stems=secret_names.STEMS,
    ),
)
LABELS: dict[str, str | Promise] = {one.kind: one.label for one in reversed(DETECTORS)}

# Characters of marks, those that fewest texts have first.
_RARE = "~_=-JZXKGB/ISTAv9p"
# Of these there are many marks: they are known by what stands before the character.
_JOINS = "_-"
_ENDS = 2

Places = list[tuple[str, int]]


def _by_sign() -> dict[str, Places]:
    """Marks with the places of their detectors, by a character that most texts do not have: a text
    without it is not searched for them."""
    found: dict[str, Places] = {sign: [] for sign in _RARE}
    for place, one in enumerate(DETECTORS):
        for mark in () if one.folds else one.marks:
            found[next(sign for sign in _RARE if sign in mark)].append((mark, place))
    return {sign: marks for sign, marks in found.items() if marks}


def _by_end(sign: str) -> dict[str, Places]:
    """Takes marks out of _BY_SIGN: by the two characters before the first such sign in them."""
    found: dict[str, Places] = {}
    for mark, place in _BY_SIGN[sign]:
        found.setdefault(mark.partition(sign)[0][-_ENDS:], []).append((mark, place))
    _BY_SIGN[sign] = found.pop("", [])
    return found


_BY_SIGN = _by_sign()
_BY_END = {sign: _by_end(sign) for sign in _JOINS}
_FOLDING = [(place, one) for place, one in enumerate(DETECTORS) if one.folds]


def wanted(text: str, folded: str, *, stemmed: bool) -> tuple[Detector, ...]:
    """Those that could find anything in it. `folded`: the text in lower case, and whether it has a
    stem."""
    found = set()
    for sign, marks in _BY_SIGN.items():
        if sign in text:
            found.update([place for mark, place in marks if mark in text])
    for sign, ends in _BY_END.items():
        if sign in text:
            for end in {piece[-_ENDS:] for piece in text.split(sign)} & ends.keys():
                found.update([place for mark, place in ends[end] if mark in text])
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
