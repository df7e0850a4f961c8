from django.contrib import admin
from django.urls import include, path

from accounts.scim.urls import urls as scim_urls
from approvals import disabling
from audit.urls import urls as audit_urls
from calls.content.payloads import containing
from calls.views.rule_figures import count_calls
from config.access.views import access, doubles, service_account_access
from config.overview import home, overview
from config.palette import find
from config.service_worker import offline, service_worker
from gateway.rest.problems import Nothing
from policies.urls import urls as policy_urls
from registry.views import tool_urls

tool_urls.register()

handler400 = "config.errors.bad_request"
handler500 = "config.errors.failed"

urlpatterns = [
    path("", home, name="home"),
    path("overview/", overview, name="overview"),
    path("find/", find, name="find"),
    path("access/", access, name="access"),
    path("access/doubles/", doubles, name="doubles"),
    path("access/service-accounts/<slug:name>/", service_account_access, name="account_access"),
    path("service-worker.js", service_worker, name="service_worker"),
    path("offline/", offline, name="offline"),
    path("", include("notifications.urls")),
    path("", include("accounts.urls")),
    path("admin/", admin.site.urls),
    path("", include("registry.urls")),
    path("", include(policy_urls(count_calls))),
    path("", include("approvals.urls")),
    path("", include("calls.urls")),
    path("", include("gateway.views.urls")),
    path("", include(audit_urls(containing))),
    path("api", Nothing.as_view()),
    path("api/", include("gateway.rest.urls")),
    path("scim/v2/", include(scim_urls(disabling.set_active))),
]
