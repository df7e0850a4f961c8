"""Django's admin, for whoever may reach other pages too."""

from __future__ import annotations

from django.contrib.admin import AdminSite
from django.http import HttpRequest

from core.http import lacks_factor


class ConsoleAdminSite(AdminSite):
    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) and not lacks_factor(request.user)
