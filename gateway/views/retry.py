from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext_lazy as _

from accounts.http import ConsoleRequest
from calls.models import Call
from core.errors import CountersignError, RecordUnavailable
from core.http import page
from core.outage import recording
from gateway.views.retry_call import run_again


@page("calls.cancel_call", "POST")
def retry(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    call = get_object_or_404(Call.objects.for_page(), pk=call_id)
    try:
        with recording(request):
            asked = run_again(call, by=request.user)
    except RecordUnavailable:
        raise
    except CountersignError as error:
        messages.error(request, str(error))
        return redirect("calls:detail", call_id)
    messages.success(request, _("It was asked for again and is pending approval."))
    return redirect("calls:detail", asked)
