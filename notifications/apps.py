from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "notifications"

    def ready(self) -> None:
        # Models can only be imported once Django is ready.
        from notifications import escalation_policies
        from policies import removal

        removal.register(escalation_policies.remove_of_rule)
