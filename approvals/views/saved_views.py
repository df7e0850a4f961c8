"""Saving and removing views of the queue."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from approvals import saved_views
from approvals.queue_list import QueueFilters
from approvals.saved_views import ViewRefused
from core.http import page
from core.text import revealed


@page("approvals.view_approval", "POST")
def save(request: ConsoleRequest) -> HttpResponse:
    name, filters = request.POST.get("name", ""), QueueFilters.read(request.POST)
    try:
        saved_views.save(name, filters, by=request.user)
    except ViewRefused as error:
        messages.warning(request, str(error))
    else:
        messages.success(request, _("The view “%s” is saved.") % revealed(name.strip()))
    return redirect(reverse("approvals:queue") + filters.address)


@page("approvals.view_approval", "POST")
def remove(request: ConsoleRequest, pk: int) -> HttpResponse:
    view = get_object_or_404(request.user.queue_views, pk=pk)
    saved_views.remove(view)
    messages.success(request, _("The view “%s” is removed.") % revealed(view.name))
    return redirect("approvals:queue")
