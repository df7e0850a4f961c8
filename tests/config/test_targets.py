"""Roles that are limited to tags: on which pages they permit anything."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import RequestFactory
from django.urls import ResolverMatch, URLPattern, get_resolver

from config import targets


def pages(patterns: Any, before: str = "", space: str = "") -> Iterator[tuple[str, str]]:
    for one in patterns:
        route = before + str(one.pattern)
        if isinstance(one, URLPattern):
            yield route, f"{space}:{one.name}" if space else str(one.name)
        else:
            yield from pages(one.url_patterns, route, one.namespace or space)


def find_target(route: str, name: str) -> Any:
    request: HttpRequest = RequestFactory().get("/")
    space, _colon, name = name.rpartition(":")
    match = ResolverMatch(print, (), {"slug": "till"}, name, namespaces=[space], route=route)
    request.resolver_match = match
    targets.TargetMiddleware(print).process_view(request, print, (), {"slug": "till"})
    return getattr(request, "find_target", None)


def test_every_page_below_an_object_says_whether_it_is_about_that_alone() -> None:
    found = {name: route for route, name in pages(get_resolver().url_patterns)}
    places = tuple(targets.FINDERS)
    below = {name for name, route in found.items() if route.startswith(places)}

    assert below == targets.PAGES_OF_ONE | targets.OF_MANY
    assert not targets.PAGES_OF_ONE & targets.OF_MANY


@pytest.mark.parametrize("name", [*sorted(targets.OF_MANY), "registry:a_new_page"])
def test_a_page_that_does_not_say_so_has_no_object(name: str) -> None:
    assert find_target("toolsets/<slug:slug>/new/", name) is None
    assert find_target("toolsets/<slug:slug>/title/", "registry:set_toolset_title") is not None
