"""Results that leak or attack, and others that look like them, over every content type."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any, NamedTuple

from tests.inspection.test_cleaning import FRAMES, HIDDEN, TRACES, Maker

PICTURE = base64.b64encode(b"AKIAZ7RQWLKJX2MPND4T" * 20).decode()
SOURCE = re.compile(r"\.(?:py|java|js|cs|go|php|rb)\b")
CONTENTS = ("text", "structured", "embedded", "link", "error", "beside a picture")


class CorpusResult(NamedTuple):
    """`kind`: counted in the call's entry; empty for harmless ones. `leak`: must not pass."""

    kind: str
    content: str
    text: str
    leak: str = ""

    @property
    def tool_result(self) -> bytes:
        item = {"type": "text", "text": self.text}
        resource = {"uri": "note:a", "text": self.text}
        link = {"type": "resource_link", "uri": "note:a", "name": "a", "description": self.text}
        image = {"type": "image", "data": PICTURE, "mimeType": "image/png"}
        shapes: dict[str, dict[str, Any]] = {
            "text": {"content": [item]},
            "structured": {"content": [], "structuredContent": {"a": [self.text, 1.0]}},
            "embedded": {"content": [{"type": "resource", "resource": resource}]},
            "link": {"content": [link]},
            "error": {"content": [item], "isError": True},
            "beside a picture": {"content": [image, item]},
        }
        return json.dumps(shapes[self.content]).encode()

    def resource(self, uri: str) -> bytes:
        contents = [{"uri": uri, "text": self.text}, {"uri": uri, "blob": PICTURE}]
        return json.dumps({"contents": contents}).encode()

    @property
    def prompt(self) -> bytes:
        content = {"type": "text", "text": self.text}
        return json.dumps({"messages": [{"role": "user", "content": content}]}).encode()


def hostile(count: int) -> list[CorpusResult]:
    return list(islice(_hostile(), count))


def harmless(count: int) -> list[CorpusResult]:
    return list(islice(_harmless(), count))


def _hostile() -> Iterator[CorpusResult]:
    maker, frames, contents = Maker(), cycle(FRAMES), cycle(CONTENTS)
    while True:
        for kind, secret in maker.leaks().items():
            tail = secret.rpartition("=")[2].rpartition(" ")[2][-24:]
            leak = secret.partition("://")[2].partition(":")[2].partition("@")[0] or tail
            text = next(frames).format(secret)
            yield CorpusResult(f"masked.{kind}", next(contents), text, leak.splitlines()[0])
        for kind, texts in HIDDEN.items():
            for text in texts:
                said = next(frames).format(text)
                yield CorpusResult(f"hidden.{kind}", next(contents), said, text)
        for trace in TRACES.values():
            # The last place in the source, which nobody is to see.
            places = [line for line in trace.splitlines() if SOURCE.search(line)]
            yield CorpusResult("traceback", next(contents), trace, places[-1].strip())
        next(contents)


def _harmless() -> Iterator[CorpusResult]:
    maker, frames, contents = Maker(), cycle(FRAMES), cycle(CONTENTS)
    while True:
        for text in maker.lookalikes():
            yield CorpusResult("", next(contents), next(frames).replace("{}", text))
        next(contents)
