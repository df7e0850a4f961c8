from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "approvals"

    def ready(self) -> None:
        # Models can only be imported once Django is ready.
        from approvals import eligibility, standing_approvals
        from calls.queue import recheck

        # Before any call is sent that people decided: do they still stand behind it?
        recheck.register(eligibility.obstacle, standing_approvals.obstacle)
