from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    name = "notifications"

    def ready(self) -> None:
        # Models can only be imported once Django is ready.
        from notifications import escalation_policies, policy_section
        from policies import removal
        from policies.as_code import sections

        removal.register(escalation_policies.remove_of_rule)
        sections.register(policy_section.SCHEDULE_SECTION)
