"""A text analyser: counts, readability and the most common words of a text."""

import argparse
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

Text = Annotated[str, Field(min_length=1, max_length=100_000, description="The text to look at.")]

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
SENTENCE_END = re.compile(r"[.!?…]+(?=\s|$)")
VOWELS = re.compile(r"[aeiouy]+")
STOP_WORDS = frozenset((Path(__file__).parent / "data" / "stop_words.txt").read_text().split())
WORDS_READ_A_MINUTE = 230


class Counts(BaseModel):
    characters: int
    words: int
    different_words: int
    sentences: int
    paragraphs: int
    reading_minutes: float = Field(description=f"At {WORDS_READ_A_MINUTE} words a minute.")


class Readability(BaseModel):
    reading_ease: float = Field(description="Flesch: 100 is very easy, 0 is very hard.")
    school_grade: float = Field(description="Flesch-Kincaid: years of school needed.")
    words_a_sentence: float
    syllables_a_word: float
    verdict: str


class CommonWord(BaseModel):
    word: str
    times: int
    share: float = Field(description="Of all words of the text, 0 to 1.")


READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
server = MCPServer("text-analyser", title="Text analyser", version="1.0")


@server.tool(title="Count words", annotations=READ_ONLY)
def count_words(text: Text) -> Counts:
    """Count the characters, words, sentences and paragraphs of a text."""
    words = words_of(text)
    return Counts(
        characters=len(text),
        words=len(words),
        different_words=len(set(words)),
        sentences=sentences_in(text),
        paragraphs=len([part for part in re.split(r"\n\s*\n", text) if part.strip()]),
        reading_minutes=round(len(words) / WORDS_READ_A_MINUTE, 2),
    )


@server.tool(title="Measure readability", annotations=READ_ONLY)
def measure_readability(text: Text) -> Readability:
    """Say how hard an English text is to read, after Flesch and Kincaid."""
    words = words_of(text)
    words_a_sentence = len(words) / sentences_in(text)
    syllables_a_word = sum(map(syllables, words)) / len(words)
    ease = 206.835 - 1.015 * words_a_sentence - 84.6 * syllables_a_word

    return Readability(
        reading_ease=round(ease, 1),
        school_grade=round(0.39 * words_a_sentence + 11.8 * syllables_a_word - 15.59, 1),
        words_a_sentence=round(words_a_sentence, 1),
        syllables_a_word=round(syllables_a_word, 2),
        verdict=verdict(ease),
    )


@server.tool(title="Find the most common words", annotations=READ_ONLY)
def most_common_words(
    text: Text,
    limit: Annotated[int, Field(ge=1, le=100, description="How many words to return.")] = 10,
    shortest: Annotated[int, Field(ge=1, le=20, description="Leave out shorter words.")] = 3,
    with_stop_words: Annotated[bool, Field(description="Also count “the”, “of”, “and”…")] = False,
) -> list[CommonWord]:
    """List the words that a text uses most, the most common first."""
    words = words_of(text)
    counted = Counter(
        word
        for word in words
        if len(word) >= shortest and (with_stop_words or word not in STOP_WORDS)
    )
    return [
        CommonWord(word=word, times=times, share=round(times / len(words), 4))
        for word, times in counted.most_common(limit)
    ]


def words_of(text: str) -> list[str]:
    words = [word.lower() for word in WORD.findall(text)]
    if not words:
        raise ToolError("There is no word in this text.")
    return words


def sentences_in(text: str) -> int:
    # A text without a full stop is still one sentence.
    return max(1, len(SENTENCE_END.findall(text)))


def syllables(word: str) -> int:
    """A guess: groups of vowels, without the silent e at the end."""
    spoken = re.sub(r"(?<![aeiouyl])e$", "", word)
    return max(1, len(VOWELS.findall(spoken)))


def verdict(ease: float) -> str:
    steps = [(80, "Easy"), (60, "Plain English"), (40, "Fairly hard"), (20, "Hard")]
    return next((name for least, name in steps if ease >= least), "Very hard")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP instead of stdio")
    port = parser.parse_args().http
    if port is None:
        server.run()
    else:
        server.run("streamable-http", port=port)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
