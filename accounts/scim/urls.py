from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import path

from accounts.scim.provisioning import SetActive


def urls(set_active: SetActive) -> tuple[list[Any], str]:
    """`set_active` disables and enables a person, which ends more than lower packages know of
    (config/urls.py)."""
    given = {"set_active": set_active}
    return [
        path("", endpoint, given | {"path": ""}, name="root"),
        path("<path:path>", endpoint, given, name="endpoint"),
    ], "scim"


def endpoint(request: HttpRequest, path: str, set_active: SetActive) -> HttpResponse:
    # The libraries take a second and 30 MB: loaded where a provider asks.
    from accounts.scim.endpoint import endpoint

    return endpoint(request, path, set_active)


endpoint.csrf_exempt = True  # type: ignore[attr-defined]
