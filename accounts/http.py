"""A request of a page that only signed-in people reach."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from accounts.models import User


class ConsoleRequest(HttpRequest):
    user: User
    htmx: HtmxDetails
