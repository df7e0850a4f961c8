"""Personal data in text: by checksum where there is one, by the words beside it where not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from inspection.secrets import Masked

LABELS: dict[str, str | Promise] = {
    "card": _("payment card number"),
    "iban": _("IBAN"),
    "china_id": _("Chinese ID number"),
    "phone": _("phone number"),
    "email": _("e-mail address"),
}
# Where a number may begin that is of a person; the shortest has seven digits. A set of characters
# first, or it takes ten times as long.
# The letter of an escape is no letter before a number.
_NUMBER = re.compile(
    r"[+\d](?:(?<![A-Za-z0-9_.\-/+].)|(?<=\\[nrt].))(?=(?<=\d)(?:[ \-.()]{0,2}\d){6}|(?<=\+)\d)"
)
_DIGITS = re.compile(r"\d(?:[ \-]?\d){12,18}(?![A-Za-z0-9_\-/+=]|\.\d)")
# Of Visa, Mastercard, American Express, Diners, Discover, UnionPay, JCB, Maestro: by length.
_ISSUER = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:2[2-9]|[3-6]\d|7[01])\d{13}|27201?\d{11,12}"
    r"|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|6(?:011|5\d\d|4[4-9]\d)\d{12}|62\d{14,17}|35(?:2[89]|[3-8]\d)\d{12}"
    r"|(?:50|5[6-8]|6[37])\d{14}"
)
_IBAN = re.compile(
    r"[A-Z](?:(?<![A-Za-z0-9].)|(?<=\\[nrt].))[A-Z]\d{2}(?: ?[A-Z0-9]{4}){2,7}"
    r"(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
)
# ISO 13616: how long an IBAN of each country is.
_IBAN_LENGTHS = {
    country: int(length)
    for length, countries in {
        "15": "NO", "16": "BE", "18": "DK FI FO GL NL SD", "19": "MK SI",
        "20": "AT BA EE KZ LT LU MN XK",
        "21": "CH HR LI LV", "22": "BG BH CR DE GB GE IE ME RS VA", "23": "AE GI IL IQ OM SO TL",
        "24": "AD CZ ES MD PK RO SA SE SK TN VG", "25": "LY PT ST", "26": "IS TR",
        "27": "BI DJ FR GR IT MC MR SM", "28": "AL AZ BY CY DO GT HU LB NI PL SV",
        "29": "BR EG PS QA UA", "30": "JO KW MU", "31": "MT SC", "32": "LC", "33": "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip
_CHINA_ID = re.compile(r"[1-8]\d{16}[\dXx](?![A-Za-z0-9_\-/+=])")
_CHINA_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
# Provinces, as the first two digits of an ID number name them.
_CHINA_REGIONS = frozenset(
    [
        "11",
        "12",
        "13",
        "14",
        "15",
        "21",
        "22",
        "23",
        "31",
        "32",
        "33",
        "34",
        "35",
        "36",
        "37",
        "41",
        "42",
        "43",
        "44",
        "45",
        "46",
        "50",
        "51",
        "52",
        "53",
        "54",
        "61",
        "62",
        "63",
        "64",
        "65",
        "71",
        "81",
        "82",
        "83",
    ]
)
_CHINA_PHONE = re.compile(
    r"(?P<code>\+?86[ \-]?)?1[3-9]\d(?P<gap>[ \-]?)\d{4}(?P=gap)\d{4}(?![A-Za-z0-9_\-/+=]"
    r"|\.\d)"
)
_PHONE = re.compile(r"\+[1-9](?:[ \-.()]{0,2}\d){8,14}(?![A-Za-z0-9_\-/=])")
_PHONE_WORDS = re.compile(
    r"(?i)(?:phone|mobile|cell|tel|call|whats\s?app|wechat|手机|电话|联系|微信)"
)
# Word characters before the sign, each looked at once: a longer name is no address of a person.
_EMAIL = re.compile(
    r"(?:(?<![A-Za-z0-9._%+\-/:])|(?<=mail:)|(?<=mailto:)|(?<=[箱件]:))"
    # In an address of the web the sign may be encoded.
    r"[A-Za-z0-9_][A-Za-z0-9._%+\-]{0,63}(?:@|%40)"
    r"(?P<host>[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63}){0,6}\.[A-Za-z]{2,24})(?![A-Za-z0-9_\-])"
)
# RFC 2606 and 6761: nobody's. And addresses that no person reads.
_NOBODY = re.compile(r"(?i)(?:.+\.)?(?:example(?:\.(?:com|net|org))?|invalid|test|localhost|local)")
_ROLE = re.compile(
    r"(?i)(?:git|no-?reply|do-?not-?reply|postmaster|mailer-daemon"
    r"|[0-9+]{0,12}[a-z0-9\-]{0,40}\+?bot)@"
)
NEAR = 24


def find(text: str, name: str = "") -> Iterator[Masked]:
    """In no order. Looks at each character a bounded number of times. `name`: of the member with
    this text."""
    if "@" in text or "%40" in text:
        yield from _emails(text)
    places = [match.start() for match in _NUMBER.finditer(text)]
    is_phone = bool(places) and is_of_phone(name)
    for kind, pattern, holds in _NUMBERS:
        for match in _matches(pattern, text, places):
            if holds(match) or (is_phone and kind == "phone"):
                yield Masked(match.start(), match.end(), kind)
    for match in _IBAN.finditer(text):
        if length := iban_length(match.group()):
            yield Masked(match.start(), match.start() + length, "iban")


def _matches(pattern: re.Pattern[str], text: str, places: list[int]) -> Iterator[re.Match[str]]:
    """Those that begin in these places, none within another."""
    end = 0
    for place in places:
        if place >= end and (match := pattern.match(text, place)):
            yield match
            end = match.end()


def is_of_phone(name: str) -> bool:
    """Whether a member of this name has numbers of phones."""
    return _PHONE_WORDS.search(name) is not None


def is_card(text: str) -> bool:
    """A card number: of an issuer, in groups or in one piece, with its check digit (ISO 7812), and
    not one digit again and again."""
    groups = re.split(r"[ \-]", text)
    if len(groups) > 1 and not (3 <= len(groups) <= 5 and all(3 <= len(g) <= 6 for g in groups)):
        return False
    digits = "".join(groups)
    return bool(_ISSUER.fullmatch(digits)) and len(set(digits)) > 1 and _luhn(digits)


def _luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 * (value > 9)
    return total % 10 == 0


def iban_length(text: str) -> int:
    """How much of it is an IBAN with its check digits (mod 97); 0: it is none."""
    wanted = _IBAN_LENGTHS.get(text[:2], 0)
    places = [at for at, one in enumerate(text, start=1) if one != " "]
    if not wanted or len(places) < wanted:
        return 0
    taken = places[wanted - 1]
    following = text[taken : taken + 1]
    if following.isascii() and following.isalnum():
        return 0
    plain = text[:taken].replace(" ", "")
    number = "".join(str(int(one, 36)) for one in plain[4:] + plain[:4])
    return taken if int(number) % 97 == 1 else 0


def is_china_id(text: str) -> bool:
    """GB 11643: a region, a day of birth, and a check digit."""
    try:
        born = date(int(text[6:10]), int(text[10:12]), int(text[12:14]))
    except ValueError:
        return False
    total = sum(int(digit) * weight for digit, weight in zip(text, _CHINA_WEIGHTS, strict=False))
    is_right = "10X98765432"[total % 11] == text[17].upper()
    return is_right and text[:2] in _CHINA_REGIONS and 1880 < born.year < 2100


def _emails(text: str) -> Iterator[Masked]:
    for match in _EMAIL.finditer(text):
        if not _NOBODY.fullmatch(match["host"]) and not _ROLE.match(
            match.group().replace("%40", "@")
        ):
            yield Masked(match.start(), match.end(), "email")


def _is_china_phone(match: re.Match[str]) -> bool:
    """Eleven digits alone are as well the number of an order."""
    beside = max(0, match.start() - NEAR), match.start()
    said = match["code"] or match["gap"] or _PHONE_WORDS.search(match.string, *beside)
    return bool(said)


def _is_phone(match: re.Match[str]) -> bool:
    return 9 <= sum(map(str.isdigit, match.group())) <= 15


_NUMBERS: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], bool]], ...] = (
    ("china_id", _CHINA_ID, lambda match: is_china_id(match.group())),
    ("card", _DIGITS, lambda match: is_card(match.group())),
    ("phone", _CHINA_PHONE, _is_china_phone),
    ("phone", _PHONE, _is_phone),
)
