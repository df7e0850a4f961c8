"""The service worker, and the page that it keeps for when there is no connection: anybody may read
both, since nothing of this installation is in them."""

from __future__ import annotations

from functools import cache

import orjson
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

# What the page without a connection is drawn with.
PARTS = [
    *("console.css", "js/theme.js", "img/mark.svg", "img/favicon.svg"),
    *("fonts/hyperlegible-next-basic.woff2", "fonts/hyperlegible-mono-basic.woff2"),
]


@require_safe
@cache_control(no_cache=True)
def service_worker(request: HttpRequest) -> HttpResponse:
    """At the root: a service worker serves what is below its own address."""
    return HttpResponse(_source(), content_type="text/javascript")


@require_safe
def offline(request: HttpRequest) -> HttpResponse:
    return render(request, "offline.html")


@cache
def _source() -> bytes:
    source: bytes = (settings.BASE_DIR / "static" / "js" / "service-worker.js").read_bytes()
    return b"const PARTS = %s;\n" % orjson.dumps([static(name) for name in PARTS]) + source
