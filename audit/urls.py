from django.urls import path

from audit import views

app_name = "audit"

urlpatterns = [
    path("audit/", views.entry_list, name="list"),
    path("audit/<int:pk>/", views.detail, name="detail"),
]
