from typing import Any

from django.urls import path

from audit import views, views_exports
from audit.finding import Containing


def urls(containing: Containing) -> tuple[list[Any], str]:
    """`containing` looks into payloads, which belong to a higher package (config/urls.py)."""
    has = {"has": containing}
    return [
        path("audit/", views.entry_list, has, name="list"),
        path("audit/news/", views.news, name="news"),
        path("audit/who-ran-what/", views.who_ran_what, name="report"),
        path("audit/filters/", views.save_filter, name="save_filter"),
        path("audit/filters/<int:pk>/remove/", views.remove_filter, name="remove_filter"),
        path("audit/exports/", views_exports.begin, name="export"),
        path("audit/exports/<int:pk>/", views_exports.progress, name="export_progress"),
        path("audit/exports/<int:pk>/file", views_exports.download, has, name="export_file"),
        path("audit/verify.py", views_exports.verifier, name="verifier"),
        path("audit/<int:pk>/", views.detail, name="detail"),
    ], "audit"
