"""People's pages that ask for calls."""

from django.urls import path

from gateway import views

app_name = "gateway"

urlpatterns = [path("calls/<uuid:call_id>/again/", views.again, name="again")]
