"""A request of a page that only signed-in people reach, and the reason that one may bring."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from accounts.models import User


class ConsoleRequest(HttpRequest):
    user: User
    htmx: HtmxDetails


# As long as entries keep it.
REASON_MAX = 300


def reason_in(request: HttpRequest) -> str:
    """Why somebody does it, in their words; empty if they do not say."""
    return request.POST.get("reason", "").strip()[:REASON_MAX]
