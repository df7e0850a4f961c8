from typing import Any

from django.urls import path

from audit.finding import Containing
from audit.views import entries, exports


def urls(containing: Containing) -> tuple[list[Any], str]:
    """`containing` looks into payloads, which belong to a higher package (config/urls.py)."""
    has = {"has": containing}
    return [
        path("audit/", entries.entry_list, has, name="list"),
        path("audit/news/", entries.news, name="news"),
        path("audit/suggestions/<str:field>/", entries.suggest, name="suggest"),
        path("audit/who-ran-what/", entries.who_ran_what, name="report"),
        path("audit/filters/", entries.save_filter, name="save_filter"),
        path("audit/filters/<int:pk>/remove/", entries.remove_filter, name="remove_filter"),
        path("audit/exports/", exports.exports, name="export"),
        path("audit/exports/<int:pk>/", exports.progress, name="export_progress"),
        path("audit/exports/<int:pk>/end/", exports.end, name="end_export"),
        path("audit/exports/<int:pk>/file", exports.download, has, name="export_file"),
        path("audit/verify.py", exports.verifier, name="verifier"),
        path("audit/<int:pk>/", entries.detail, name="detail"),
    ], "audit"
