"""Template tags of every console page: strangers' text, times, JSON, links that keep filters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django import template
from django.http import HttpRequest, QueryDict
from django.template.defaultfilters import floatformat
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext_lazy, ngettext, pgettext
from django.utils.translation import gettext as _

from core import actions, exact_json, text, text_kinds
from core.messages import localizing

register = template.Library()

MINUTE, HOUR, DAY = 60, 3600, 86400
# More than this of one value is folded away behind its size.
FOLD_AT = 600


@register.inclusion_tag("ui/segments.html")
def reveal(value: object) -> dict[str, Any]:
    return {"segments": text.reveal(_as_text(value))}


@register.filter
def revealed(value: object) -> str:
    """Text for attributes and titles, where no element can mark a hidden character."""
    return text.revealed(_as_text(value))


@register.filter
def localized(sentence: object) -> str:
    """A sentence of ours that was kept in English, in the language of this page."""
    return localizing.localized(str(sentence)) if sentence else ""


@register.filter(is_safe=True)
def strip(text: str) -> str:
    """A part of a sentence without the line breaks of its template."""
    return text.strip()


@register.filter
def join_names(names: Iterable[object]) -> str:
    return pgettext("list", ", ").join(map(str, names))


@register.filter
def percent(share: float) -> str:
    return _("%(share)s%%") % {"share": floatformat(share, "-1")}


@register.inclusion_tag("ui/value.html")
def value(content: object, name: str = "") -> dict[str, Any]:
    """One argument, whole, and as what it is: long ones folded, never cut."""
    if not isinstance(content, str):
        shown, shape = pretty(content), "data"
        segments = text_kinds.segments(shown, "json")
    else:
        shown, shape = content, text_kinds.shape(content, name)
        segments = text_kinds.segments(shown, shape)
    return {
        "segments": segments,
        "address": text_kinds.address(content) if isinstance(content, str) else None,
        "shape": shape if shape != "data" else "",
        "word": WORDS.get(shape, ""),
        "is_empty": content == "",
        "hidden": text.hidden_count(shown),
        "characters": len(shown) if len(shown) > FOLD_AT else 0,
        "start": text.reveal(shown[:120]),
    }


# What a text is, said beside it.
WORDS = {
    "json": gettext_lazy("JSON in a text"),
    "sql": gettext_lazy("SQL"),
    "change": gettext_lazy("A change to files"),
    "program": gettext_lazy("A program"),
}


@register.inclusion_tag("ui/code.html")
def json_block(content: object) -> dict[str, Any]:
    """JSON as it came when it is text or bytes; anything else is laid out here."""
    shown = _as_text(content) if isinstance(content, str | bytes | memoryview) else pretty(content)
    return {"segments": text_kinds.segments(shown, "json")}


def pretty(content: object) -> str:
    """On one line if that is short; numbers as they were written, where that is known."""
    line = exact_json.dumps(content, after=" ")
    return line if len(line) <= 72 else exact_json.laid_out(content)


def _as_text(value: object) -> str:
    if isinstance(value, memoryview):
        value = bytes(value)
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    return str(value)


@register.simple_tag
def space() -> str:
    """Between two sentences: Chinese full-width punctuation holds its own."""
    return "" if (get_language() or "").startswith("zh") else " "


@register.simple_tag(takes_context=True)
def when(context: template.Context, at: datetime | None, focusable: bool = True) -> SafeString:
    """A relative time, the exact one on hover and focus, in the person's own time zone.

    With `as`, a sentence takes it where its language puts it.
    """
    if at is None:
        return render_to_string("ui/when.html")
    shown = {
        "at": at,
        "relative": relative(at, timezone.now()),
        "exact": exact(at, context.get("user")),
        "focusable": focusable,
    }
    return render_to_string("ui/when.html", shown)


@register.inclusion_tag("ui/at.html", takes_context=True)
def absolute(context: template.Context, at: datetime, *, to_minute: bool = False) -> dict[str, Any]:
    """An exact time in the person's own time zone, the relative one on hover: for records, or to
    the minute, with its weekday, for plans."""
    zone = ZoneInfo(getattr(context.get("user"), "time_zone", "") or "UTC")
    here, now = at.astimezone(zone), timezone.now()
    day = _("j M") if here.year == now.astimezone(zone).year else _("j M Y")
    said = f"{planned(at, zone)} {here.tzname()}" if to_minute else _day_and_time(here, day)
    return {"at": at, "said": said, "relative": relative(at, now)}


@register.inclusion_tag("ui/countdown.html")
def countdown(at: datetime) -> dict[str, Any]:
    """How long it takes until then, which counts down by the second where there is a script."""
    left = math.ceil((at - timezone.now()).total_seconds())
    return {"at": at, "left": _("in {span}").format(span=span(left)) if left > 0 else _("now")}


def exact(at: datetime, person: object) -> str:
    return in_full(at, ZoneInfo(getattr(person, "time_zone", "") or "UTC"))


def in_full(at: datetime, zone: tzinfo) -> str:
    """A time to the second with its year and its zone: it may be read elsewhere, or later."""
    local = at.astimezone(zone)
    return f"{_day_and_time(local, _('j M Y'))} {local.tzname()}"


@register.filter
def planned(at: datetime, zone: tzinfo) -> str:
    """A time in a plan, to the minute, with its weekday; the year only where it is another."""
    here = at.astimezone(zone)
    is_this_year = here.year == timezone.now().astimezone(zone).year
    return _day_and_time(here, _("D j M") if is_this_year else _("D j M Y"), "%H:%M")


def _day_and_time(at: datetime, day: str, time: str = "%H:%M:%S") -> str:
    return _("%(day)s, %(time)s") % {"day": date_format(at, day), "time": f"{at:{time}}"}


def relative(at: datetime, now: datetime) -> str:
    seconds = int((now - at).total_seconds())
    if abs(seconds) < 10:
        return _("just now")
    if abs(seconds) >= 30 * DAY:
        return date_format(at, _("j M Y"))
    return (
        _("{span} ago").format(span=span(seconds))
        if seconds > 0
        else _("in {span}").format(span=span(-seconds))
    )


def span(seconds: float) -> str:
    """A length of time in its largest unit, short."""
    whole = int(seconds)
    if whole < MINUTE:
        return _("{n} s").format(n=whole)
    if whole < HOUR:
        return _("{n} min").format(n=whole // MINUTE)
    if whole < DAY:
        return _("{n} h").format(n=whole // HOUR)
    return ngettext("{n} day", "{n} days", whole // DAY).format(n=whole // DAY)


@register.filter
def duration(seconds: float | None) -> str:
    """How long something took: 12 ms, 3.4 s, 2 min 5 s."""
    if seconds is None:
        return ""
    if seconds < 1:
        return _("{n} ms").format(n=round(seconds * 1000))
    if seconds < MINUTE:
        return _("{n} s").format(n=floatformat(seconds, "-1"))
    minutes, rest = divmod(round(seconds), MINUTE)
    if not rest:
        return span(seconds)
    return _("{m} min {s} s").format(m=minutes, s=rest)


@register.simple_tag(takes_context=True)
def query(context: template.Context, **changes: object) -> str:
    """This page's address with some of its filters changed; an empty value takes one away."""
    request: HttpRequest = context["request"]
    parameters: QueryDict = request.GET.copy()
    # A page key belongs to the filters that it was made with.
    for key in ("beyond", "back", *changes):
        parameters.pop(key, None)
    parameters.update({key: str(given) for key, given in changes.items() if given})
    return f"?{parameters.urlencode()}"


@register.simple_tag(takes_context=True)
def facet_link(context: template.Context, name: str, value: str) -> str:
    """`query` for a name that is not known when the template is written."""
    return query(context, **{name: value})


@register.simple_tag(takes_context=True)
def narrowed(context: template.Context, **changes: object) -> str:
    """The filters of this page's `filters` and these too: for rows that come by themselves."""
    given = {**context["filters"].kept, **{key: str(value) for key, value in changes.items()}}
    return f"?{urlencode(given)}"


@register.simple_tag(takes_context=True)
def without(context: template.Context, name: str) -> str:
    return f"?{urlencode({k: v for k, v in context['filters'].kept.items() if k != name})}"


@register.filter
def local(at: datetime, zone: ZoneInfo) -> str:
    """A short exact time on the person's own clock; the year only where it is another."""
    here = at.astimezone(zone)
    day = _("j M") if here.year == timezone.now().astimezone(zone).year else _("j M Y")
    return _day_and_time(here, day, "%H:%M")


# What an entry that is about no tool is about, by the names that services give to it.
_ABOUT = (
    "rule",
    "limit",
    "schedule",
    "service_account",
    "toolset",
    "member",
    "group",
    "role",
    "client",
    "token",
    "person",
    "filter",
    "export",
    "format",
    "key",
    "plan",
    "name",
    "target",
)
# As pages name it.
_PLAN_DIGITS = 10


@register.filter
def about(details: object) -> str:
    """The subject of an entry in a few words."""
    if not isinstance(details, dict):
        return ""
    # Beside the name of a client nobody looks for the ids of its sign-in.
    passed = {"token"} if details.get("client") else set()
    named = [
        _plainly(name, details[name]) for name in _ABOUT if details.get(name) and name not in passed
    ]
    return " · ".join(named)[:200]


def _plainly(name: str, fact: object) -> str:
    """A fact of facts, such as {"agent": "scout"}, by its values."""
    match name, fact:
        case _, dict():
            return " ".join(map(str, fact.values()))
        case "export", _:
            return _("export %(n)s") % {"n": fact}
        case "format", "csv" | "jsonl":
            return str(fact).upper()
        case "format", "proof":
            return _("JSONL with proofs")
        case "plan", _:
            return str(fact)[:_PLAN_DIGITS]
        case _:
            return str(fact)


@register.filter
def unlocal(number: float) -> str:
    """A number for SVG, with a decimal point in every language."""
    return f"{number:g}"


register.filter("words", actions.words)


@register.filter
def person_name(name: str, shown_names: dict[str, str] | str) -> str:
    """A username of the record, with the display name that its person has now."""
    return shown_names.get(name, name) if isinstance(shown_names, dict) else name


@register.filter
def actor_name(name: str) -> str:
    """An actor of the record in the language of this page. Only names of systems hold a space:
    users and agents are called the same in every language."""
    return localized(name) if " " in name else name


@register.filter
def has(mapping: dict[str, Any], key: str) -> bool:
    return key in mapping


@register.filter
def get(mapping: dict[str, Any], key: str) -> Any:
    return mapping.get(key)
