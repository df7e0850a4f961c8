"""An index of the tools at one address, by the words of their definitions as agents get them."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from heapq import heapify, heappop
from itertools import chain, islice
from typing import NamedTuple

from gateway.tool_search import meanings
from gateway.tool_search.meanings import Meaning
from gateway.tool_search.words import Meant, meant, weighed
from registry.publishing.published_tools import CALL, PublishedTool, PublishedToolset
from registry.publishing.tool_override import OverriddenTool

# As Okapi BM25 is usually set: how soon more of the same word tells no more, and how much long
# definitions are marked down.
SATURATION, BY_LENGTH = 1.2, 0.6
# The weight of synonyms beside a word, and where no tool has the word.
BESIDE, INSTEAD = 0.3, 0.7
# A word that no tool has, and no synonym of it, stands for those that are spelled nearly so.
NEARLY, NEARLY_MAX, NEARLY_WEIGHT = 0.8, 3, 0.6
NEARLY_FROM, NEARLY_LONGER = 4, 2
# Of one question, so many words are compared with so many others.
NEARLY_WORDS, NEARLY_COMPARED = 3, 1_000
# Reciprocal rank fusion of the first of both rankings, where there are vectors.
FUSED, FUSION = 50, 60


class _Indexed(NamedTuple):
    """A tool's words, and what they were taken from."""

    tool: PublishedTool
    override: OverriddenTool
    words: dict[str, float]
    # For the endpoint of embeddings.
    text: str


class _Postings(NamedTuple):
    """The tools that have a word, by their place, and how much each has of it."""

    places: array[int]
    shares: array[float]


class ToolIndex:
    """Made once for a toolset as it is; `before`: of what it was, whose words are taken over."""

    def __init__(
        self,
        toolset: PublishedToolset,
        tools: Mapping[str, PublishedTool],
        before: ToolIndex | None = None,
    ) -> None:
        self.tools = tools
        known: Mapping[str, _Indexed] = before._indexed if before else {}
        self._indexed: dict[str, _Indexed] = {
            name: _index(name, tool, toolset, known.get(name))
            for name, tool in tools.items()
            if tool.method == CALL
        }
        self._names = list(self._indexed)
        self._postings = _postings([one.words for one in self._indexed.values()])
        self._spelled = _by_first_and_length(self._postings)
        self.meanings = _taken_over(self._indexed, before)

    def learn(self) -> None:
        """Asks for the vectors that are missing. Raises CountersignError."""
        while missing := [name for name in self._indexed if name not in self.meanings]:
            some = missing[: meanings.BATCH]
            found = meanings.embed([self._indexed[name].text for name in some])
            self.meanings = {**self.meanings, **dict(zip(some, found, strict=True))}

    @property
    def is_learned(self) -> bool:
        return len(self.meanings) == len(self._indexed)

    def search(
        self,
        question: str,
        most: int,
        may_name: Callable[[str], bool] = lambda _name: True,
        meaning: Meaning | None = None,
    ) -> list[str]:
        """The names of the tools that fit best, the best first; of those that may be named."""
        ranked = self._ranked(question)
        if meaning is not None:
            ranked = _fused(ranked, meanings.nearest(meaning, self.meanings, FUSED))
        return list(islice(filter(may_name, ranked), most))

    def _ranked(self, question: str) -> Iterator[str]:
        scores: defaultdict[int, float] = defaultdict(float)
        for word, weight in self._present(meant(question)).items():
            found = self._postings[word]
            rarity = weight * math.log(1 + len(self._names) / (len(found.places) + 0.5))
            for place, share in zip(found.places, found.shares, strict=True):
                scores[place] += rarity * share
        # Of the same score, in the order of the list.
        best = [(-score, place) for place, score in scores.items()]
        heapify(best)
        while best:
            yield self._names[heappop(best)[1]]

    def _present(self, wanted: Mapping[str, Meant]) -> dict[str, float]:
        """The words to look for, with their weights."""
        found: dict[str, float] = {}
        unknown = []
        for word, (synonyms, translations) in wanted.items():
            known = [one for one in synonyms if one in self._postings]
            if not known and word not in self._postings:
                known = [one for one in translations if one in self._postings]
            if word in self._postings:
                found[word] = 1.0
            elif not known:
                unknown.append(word)
            beside = BESIDE if word in self._postings else INSTEAD
            found |= {one: max(beside, found.get(one, 0.0)) for one in known}
        for word in unknown[:NEARLY_WORDS]:
            for one in self._nearly(word):
                found.setdefault(one, NEARLY_WEIGHT)
        return found

    def _nearly(self, word: str) -> Iterable[str]:
        if len(word) < NEARLY_FROM or not word.isascii():
            return []
        # Comparing is slow, and hardly anybody mistakes the first letter.
        lengths = range(len(word) - NEARLY_LONGER, len(word) + NEARLY_LONGER + 1)
        candidates = chain.from_iterable(self._spelled.get((word[0], n), ()) for n in lengths)
        few = list(islice(candidates, NEARLY_COMPARED))
        return get_close_matches(word, few, NEARLY_MAX, NEARLY)


def _index(
    name: str, tool: PublishedTool, toolset: PublishedToolset, known: _Indexed | None
) -> _Indexed:
    override = toolset.override_for(tool)
    if known and known.tool is tool and known.override is override:
        return known
    told = toolset.definition_for(name, tool)
    labels = [*tool.tags, *tool.labels]
    words = weighed(told, tool.server_slug, labels)
    return _Indexed(tool, override, words, meanings.text_of(told))


def _taken_over(indexed: Mapping[str, _Indexed], before: ToolIndex | None) -> dict[str, Meaning]:
    """Vectors of the tools that are as they were."""
    if before is None:
        return {}
    known = before.meanings.items()
    return {n: one for n, one in known if n in indexed and before._indexed.get(n) is indexed[n]}


def _fused(by_words: Iterator[str], by_meaning: list[str]) -> Iterator[str]:
    """By the places in both rankings, and then the rest of the first."""
    scores: defaultdict[str, float] = defaultdict(float)
    for ranking in (list(islice(by_words, FUSED)), by_meaning):
        for place, name in enumerate(ranking):
            scores[name] += 1 / (FUSION + place)
    yield from sorted(scores, key=lambda name: -scores[name])
    yield from (name for name in by_words if name not in scores)


def _by_first_and_length(words: Iterable[str]) -> dict[tuple[str, int], list[str]]:
    found: dict[tuple[str, int], list[str]] = {}
    for word in words:
        found.setdefault((word[0], len(word)), []).append(word)
    return found


def _postings(every: list[dict[str, float]]) -> dict[str, _Postings]:
    lengths = [sum(words.values()) for words in every]
    usual = sum(lengths) / len(lengths) if lengths else 1.0
    found: dict[str, _Postings] = {}
    for place, (words, length) in enumerate(zip(every, lengths, strict=True)):
        less = SATURATION * (1 - BY_LENGTH + BY_LENGTH * length / usual)
        for word, count in words.items():
            postings = found.get(word) or found.setdefault(word, _Postings(array("I"), array("f")))
            postings.places.append(place)
            postings.shares.append(count * (SATURATION + 1) / (count + less))
    return found
