"""Our own styles, scripts, fonts and pictures: few files, packed once, under names that say what is
in them, so that browsers keep them for good.

Kept in memory, so that no start, container or test has a directory of them to fill first.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from whitenoise.media_types import MediaTypes
from whitenoise.middleware import WhiteNoiseMiddleware

# What every page of the console needs, and what the cards of the queue need, each as one file.
STYLES = ["tokens", "base", "layout", "components", "settings", "forms", "frame", "catalogue"]
STYLES += ["audit"]
OF_PAGES = [
    "theme",
    "live",
    "times",
    "alerts",
    "title",
    "errors",
    "keyboard",
    "palette",
    "drafts",
    "copy",
]
OF_PAGES += ["choices", "places", "app"]
OF_CARDS = ["queue", "picking", "lost", "talk", "arming", "passkeys"]
BUNDLES = {
    "console.css": [f"css/{name}.css" for name in STYLES],
    "console.js": ["django_htmx/htmx-2.min.js", *(f"js/{name}.js" for name in OF_PAGES)],
    "cards.js": [f"js/{name}.js" for name in OF_CARDS],
}
KINDS = {".css", ".js", ".woff2", ".svg", ".png"}
# For readers of the source. In our scripts they have lines of their own.
COMMENTS = {
    ".css": re.compile(r"\s*/\*.*?\*/", re.DOTALL),
    ".js": re.compile(r"^[ ]*//.*\n", re.MULTILINE),
}
URL_IN_CSS = re.compile(r'url\("\.\./([^"]+)"\)')
HASHED = re.compile(r"(.+)\.[0-9a-f]{12}(\.\w+)")
FOR_GOOD = "max-age=31536000, public, immutable"


class Asset(NamedTuple):
    # With the digest of its bytes.
    name: str
    content_type: str
    body: bytes
    packed: bytes


@cache
def assets() -> dict[str, Asset]:
    """By the name without a digest."""
    root = Path(settings.STATICFILES_DIRS[0])
    paths = [path for path in root.rglob("*") if path.suffix in KINDS - {".css"}]
    made = {name: _asset(name, (root / name).read_bytes()) for name in _names(paths, root)}
    for name, parts in BUNDLES.items():
        body = "\n".join(_text(part) for part in parts)
        body = URL_IN_CSS.sub(lambda found: f'url("{made[found[1]].name}")', body)
        made[name] = _asset(name, body.encode())
    return made


def _names(paths: list[Path], root: Path) -> Iterator[str]:
    return (path.relative_to(root).as_posix() for path in sorted(paths))


def _text(name: str) -> str:
    text = Path(str(finders.find(name))).read_text()
    return COMMENTS[Path(name).suffix].sub("", text)


def _asset(name: str, body: bytes) -> Asset:
    stem, dot, ending = name.rpartition(".")
    hashed = f"{stem}.{hashlib.sha256(body).hexdigest()[:12]}{dot}{ending}"
    kind = MediaTypes().get_type(name)
    kind += "; charset=utf-8" if kind.startswith("text/") else ""
    return Asset(hashed, kind, body, gzip.compress(body, mtime=0))


class HashedStorage(StaticFilesStorage):
    """Where templates find our files; what others bring (Django's admin) keeps its name."""

    def url(self, name: str | None) -> str:
        found = assets().get(name or "")
        return super().url(found.name if found else name)


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        name = request.path_info.removeprefix(settings.STATIC_URL)
        found = HASHED.fullmatch(name) if name != request.path_info else None
        ours = assets().get(found[1] + found[2]) if found else None
        if ours and request.method in ("GET", "HEAD"):
            return _answer(request, ours, is_current=ours.name == name)
        response: HttpResponseBase = super().__call__(request)
        return response


def _answer(request: HttpRequest, asset: Asset, *, is_current: bool) -> HttpResponse:
    """To a page of another release, the file of this one; not for good."""
    takes = "gzip" in request.headers.get("Accept-Encoding", "")
    is_packed = takes and len(asset.packed) < len(asset.body)
    response = HttpResponse(
        asset.packed if is_packed else asset.body, content_type=asset.content_type
    )
    response["Cache-Control"] = FOR_GOOD if is_current else "no-cache"
    response["Vary"] = "Accept-Encoding"
    if is_packed:
        response["Content-Encoding"] = "gzip"
    response["Content-Length"] = str(len(response.content))
    return response


class PackedPagesMiddleware(GZipMiddleware):
    """Packs pages, and no files: what is downloaded keeps its bytes. Django adds some of random
    length, so that sizes do not tell what a page holds (BREACH)."""

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if response.headers.get("Content-Type", "").startswith("text/html"):
            return super().process_response(request, response)
        return response
