"""Search and facets of the catalogue."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import timedelta

from django.contrib.postgres.lookups import TrigramWordSimilar
from django.contrib.postgres.search import (
    SearchQuery,
    SearchRank,
    SearchVectorExact,
    TrigramWordSimilarity,
)
from django.db import connection, transaction
from django.db.models import Case, Count, F, FloatField, Func, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast, Concat, Greatest, LPad, Round
from django.utils import timezone

from core.folding import folded
from registry import managed
from registry.models import HAS_METHOD, IS_METHOD, Item, Server, Tool, Toolset
from registry.versions.search_index import HINTS, UNSPACED, bigrams, parted

USED_DAYS = 30
# How much of a mistyped word a name must share with it; a transposed letter costs three trigrams.
ALIKE = 0.3
CLOSE_MAX = 20
WITH_WORDS_MAX = 6
# The operator that the index serves knows no other place for it.
THRESHOLD = "SELECT set_config('pg_trgm.word_similarity_threshold', %s, true)"
MAX_WORDS = 8
_word = re.compile(r"\w+").findall
# They stand in every description and in no query that means something.
_EMPTY = {"a", "an", "and", "for", "from", "in", "into", "is", "it"}
_EMPTY |= {"of", "on", "or", "that", "the", "this", "to", "with"}


def tools(filters: Mapping[str, str]) -> QuerySet[Tool]:
    """In the order of `place`: the best first where words were given, else by name."""
    found = faceted(Tool.objects.for_list().select_related("server__owner"), filters)
    words = _words(filters.get("q", ""))
    if not words:
        return found.annotate(place=F("exposed_name"))
    return _with_words(found, words).annotate(place=_place(words))


def fitting(filters: Mapping[str, str]) -> QuerySet[Tool]:
    """All tools that have the words, whatever else is filtered by."""
    words = _words(filters.get("q", ""))
    if not words:
        return Tool.objects.order_by()
    having = _with_words(Tool.objects.order_by(), words).values_list("pk", flat=True)
    # As numbers: every count would look for the words again.
    return Tool.objects.order_by().filter(pk__in=list(having))


def _with_words(found: QuerySet[Tool], words: list[str]) -> QuerySet[Tool]:
    for word in words:
        found = found.filter(_has(word))
    return found


def toolsets_of(shown: list[Tool]) -> dict[int, list[str]]:
    """By tool, the names of the toolsets that it is in, by itself or with all of its server."""
    single = Toolset.tools.through.objects.filter(tool__in=shown)
    whole = Toolset.servers.through.objects.filter(server__tools__in=shown)
    rows = single.values_list("tool_id", "toolset__slug").union(
        whole.values_list("server__tools", "toolset__slug")
    )
    known = {tool.pk for tool in shown}
    found: dict[int, list[str]] = {}
    for tool, slug in sorted(rows):
        if tool in known:
            found.setdefault(tool, []).append(slug)
    return found


def with_words(text: str) -> list[Tool]:
    """The best few that have every word of a text; none for a text without words."""
    return list(tools({"q": text}).order_by(F("place"))[:WITH_WORDS_MAX]) if _words(text) else []


def close(filters: Mapping[str, str]) -> list[Tool]:
    """Near matches where nothing fits: tools with similar names or arguments, best first."""
    words = _words(filters.get("q", ""))
    if not words:
        return []
    alike = Q(*(_is_similar(word) for word in words), _connector=Q.OR)
    likeness = sum((_likeness(word) for word in words), Value(0.0, FloatField()))
    listed = Tool.objects.for_list().select_related("server__owner")
    near = faceted(listed, filters).filter(alike).annotate(likeness=likeness)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(THRESHOLD, [str(ALIKE)])
        return list(near.order_by("-likeness", "exposed_name")[:CLOSE_MAX])


def items(server: Server) -> QuerySet[Item]:
    """The server's items, in the order of `place`."""
    place = Concat(F("kind"), Value(" "), F("key"), output_field=TextField())
    return server.items.select_related("latest", "published").annotate(place=place)


def kinds(server: Server) -> QuerySet[Item, tuple[str, int, int]]:
    """How many of which kind it has now, and how many of these wait for review."""
    there = server.items.exclude(state=Item.State.RETIRED).order_by("kind")
    waiting = Count("pk", filter=_in_state("unpublished"))
    return there.values_list("kind").annotate(n=Count("pk"), waiting=waiting)


def _words(q: str) -> list[str]:
    said = [word.lower() for word in _word(parted(q.replace("_", " ")))]
    return [word for word in dict.fromkeys(said) if word not in _EMPTY][:MAX_WORDS]


def _folded_words(word: str) -> list[str]:
    """The word in the form of the index, in which it can be several."""
    return [one.lower() for one in _word(parted(folded(word)))][:MAX_WORDS]


def _has(word: str) -> Q:
    """Finds it folded, or the way it was typed: older rows of the index are not folded."""
    inner = _folded_words(word)
    return (
        _has_as_written(word)
        if inner == [word]
        else _has_as_written(word) | Q(*map(_has_as_written, inner))
    )


def _has_as_written(word: str) -> Q:
    """Its beginning in any text, or all of it within a name."""
    begins = SearchQuery(f"{word}:*", config="english", search_type="raw")
    has = Q(SearchVectorExact(F("listing__lexemes"), begins))
    if UNSPACED.match(word):
        # Without spaces, two characters are a whole word, and it is in the middle of others.
        return has | Q(listing__bigrams__contains=sorted(set(bigrams(word))))
    # Shorter ones have no trigram of their own and would walk through every tool.
    is_within = len(word) > 2 or not word.isascii()
    return has | Q(listing__words__contains=word) if is_within else has


def _place(words: list[str]) -> Concat:
    """Three digits that fall with the rank, then the name: one key, and unique."""
    spelled = dict.fromkeys(one for word in words for one in (word, *_folded_words(word)))
    query = SearchQuery(
        " | ".join(f"{word}:*" for word in spelled), config="english", search_type="raw"
    )
    rank = Greatest(SearchRank(F("listing__lexemes"), query, normalization=1), Value(0.0))
    digits = LPad(Cast(Round(999 - 999 * rank), TextField()), 3, Value("0"))
    return Concat(digits, Value(" "), F("exposed_name"), output_field=TextField())


def _is_similar(word: str) -> Q:
    return Q(TrigramWordSimilar(F("listing__words"), Value(word)))


def _likeness(word: str) -> Func:
    return TrigramWordSimilarity(word, "listing__words")


def faceted(found: QuerySet[Tool], filters: Mapping[str, str]) -> QuerySet[Tool]:
    return found.filter(*conditions(filters).values())


def conditions(filters: Mapping[str, str]) -> dict[str, Q]:
    """By facet, what it asks of a tool; facets that nothing was chosen of ask nothing. The state
    always does."""
    asked = {"state": _in_state(filters.get("state", "")), **_of_choices(filters)}
    if used := _by_use(filters.get("used", "")):
        asked["used"] = used
    return asked


def _of_choices(filters: Mapping[str, str]) -> dict[str, Q]:
    given = {name: filters[name] for name in CHOICES if filters.get(name)}
    made = {name: CHOICES[name](value) for name, value in given.items()}
    return {name: asks for name, asks in made.items() if asks}


def _in_toolset(slug: str) -> Q:
    single = Toolset.tools.through.objects.filter(toolset__slug=slug)
    whole = Toolset.servers.through.objects.filter(toolset__slug=slug)
    return Q(pk__in=single.values("tool")) | Q(server__in=whole.values("server"))


def _has_tag(name: str) -> Q:
    return Q(pk__in=Tool.tags.through.objects.filter(tag__name=name).values("tool"))


def _has_risk(risk: str) -> Q:
    return Q(risk=risk) if risk in Tool.Risk.values else Q()


def _has_hint(name: str) -> Q:
    return Q(hints__contains=[HINTS[name]]) if name in HINTS else Q()


def _is_kind(kind: str) -> Q:
    return {"tool": ~IS_METHOD, "method": IS_METHOD}.get(kind, Q())


# An empty condition stands for a choice that there is not.
CHOICES: dict[str, Callable[[str], Q]] = {
    "server": lambda slug: Q(server__slug=slug),
    "owner": lambda name: Q(server__owner__username=name),
    "tag": _has_tag,
    "toolset": _in_toolset,
    "risk": _has_risk,
    "hint": _has_hint,
    "kind": _is_kind,
}


def _by_use(used: str) -> Q:
    since = timezone.now().date() - timedelta(days=USED_DAYS)
    lately = Q(used_on__gte=since)
    return {"yes": lately, "no": Q(used_on=None) | Q(used_on__lt=since)}.get(used, Q())


def _in_state(state: str) -> Q:
    if state == "unpublished":
        return Q(state__in=[Tool.State.NEW, Tool.State.CHANGED])
    # What is gone from its server is found only by asking for it.
    return Q(state=state) if state in Tool.State.values else ~Q(state=Tool.State.RETIRED)


def server_of_page() -> QuerySet[Server]:
    """Servers with the rows that the page of one shows at once, its owner's and its origin's."""
    managed_by = managed.source_of_each(managed.SERVERS, "slug")
    return Server.objects.select_related("owner", "origin").annotate(managed_by=managed_by)


def servers() -> QuerySet[Server]:
    """Servers: unreachable ones first, then those never reached, then by name."""
    worst = Case(
        When(enabled=False, then=3),
        When(health=Server.Health.DOWN, then=0),
        When(health=Server.Health.UNKNOWN, then=1),
        default=2,
    )
    is_tool = ~HAS_METHOD
    offered = is_tool & ~Q(tools__state=Tool.State.RETIRED)
    counted = Server.objects.kept().annotate(
        offered=Count("tools", filter=offered),
        published=Count("tools", filter=is_tool & Q(tools__state=Tool.State.PUBLISHED)),
    )
    return counted.order_by(worst, "slug")
