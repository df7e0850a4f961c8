from django.contrib import admin
from django.urls import include, path

from config.health import healthz

urlpatterns = [
    path("healthz", healthz),
    path("admin/", admin.site.urls),
    path("", include("accounts.urls")),
    path("", include("registry.urls")),
    path("", include("policies.urls")),
    path("", include("approvals.urls")),
    path("", include("calls.urls")),
    path("", include("gateway.console_urls")),
    path("", include("audit.urls")),
    path("api/", include("gateway.urls")),
]
