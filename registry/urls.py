from django.urls import path
from django.views.generic import RedirectView

from registry import views

app_name = "registry"

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="registry:catalogue"), name="home"),
    path("catalogue/", views.catalogue, name="catalogue"),
    path("servers/<slug:slug>/", views.server, name="server"),
    path("servers/<slug:slug>/refresh/", views.refresh, name="refresh"),
    path("tools/<str:name>/", views.tool, name="tool"),
    path("tools/<str:name>/publish/", views.publish, name="publish"),
]
