from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from core.http import page


@page("")
def settings(request: HttpRequest) -> HttpResponse:
    """The settings menu; on a phone, the only way to these pages."""
    return render(request, "accounts/settings.html", {"section": "settings"})
