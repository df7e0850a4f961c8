from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from core.http import page
from registry.models import Icon

# Drawn once: another picture has another address.
FOR_GOOD = "private, max-age=31536000, immutable"


@page("registry.view_tool", cacheable=True)
def icon(request: HttpRequest, pk: int) -> HttpResponse:
    """A picture that a server declared, as PNG of our own making."""
    found = get_object_or_404(Icon.objects.exclude(content=None), pk=pk)
    headers = {
        "Cache-Control": FOR_GOOD,
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(bytes(found.content or b""), content_type="image/png", headers=headers)
