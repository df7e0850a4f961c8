"""Forms of what a policy file manages: they change nothing, and say where it is managed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django_htmx.http import HttpResponseClientRedirect

from core.http import is_htmx, page_of
from registry.managed import ManagedElsewhere


class ManagedPagesMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, ManagedElsewhere):
            return None
        messages.error(request, str(error))
        there = page_of(request)
        return HttpResponseClientRedirect(there) if is_htmx(request) else redirect(there)
