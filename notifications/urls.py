from django.urls import path

from notifications.views import devices, password_reset, profile, webhooks

app_name = "notifications"

urlpatterns = [
    path("notifications/", webhooks.webhooks, name="webhooks"),
    path("new/webhook/", webhooks.add_webhook, name="add_webhook"),
    path("notifications/webhooks/<uuid:pk>/", webhooks.webhook, name="webhook"),
    path("notifications/webhooks/<uuid:pk>/change/", webhooks.edit_webhook, name="edit_webhook"),
    path("notifications/webhooks/<uuid:pk>/enabled/", webhooks.set_enabled, name="set_enabled"),
    path("notifications/webhooks/<uuid:pk>/test/", webhooks.test, name="test_webhook"),
    path("notifications/webhooks/<uuid:pk>/rotate/", webhooks.rotate, name="rotate_secret"),
    path(
        "notifications/webhooks/<uuid:pk>/remove/", webhooks.remove_webhook, name="remove_webhook"
    ),
    path("notifications/deliveries/<uuid:pk>/again/", webhooks.send_again, name="send_again"),
    path("profile/notifications/", profile.notifications, name="profile"),
    path("password-reset/", password_reset.ask, name="password_reset"),
    path("profile/notifications/password-reset/", profile.allow_reset, name="allow_reset"),
    path("profile/notifications/remove/", profile.remove, name="remove_mail"),
    path("profile/notifications/devices/", devices.set_events, name="device_events"),
    path("profile/notifications/devices/add/", devices.add, name="add_device"),
    path("profile/notifications/devices/<uuid:pk>/test/", devices.test, name="test_device"),
    path("profile/notifications/devices/<uuid:pk>/remove/", devices.remove, name="remove_device"),
    path("profile/notifications/open/<uuid:pk>/", devices.follow, name="follow"),
    path("profile/notifications/confirm/<str:token>/", profile.confirm, name="confirm"),
]
