"""Is this process alive, and does it reach and hear the database? For supervisors and balancers."""

from django.db import DatabaseError, InterfaceError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from core.connections import each_within
from gateway.process import current

WITHIN_S = 1.5


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    try:
        with each_within(WITHIN_S), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (DatabaseError, InterfaceError):
        return JsonResponse({"status": "no database"}, status=503)
    if not current.is_listening():
        return JsonResponse({"status": "not listening"}, status=503)
    return JsonResponse({"status": "ok"})
