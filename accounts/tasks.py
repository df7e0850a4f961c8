from celery import shared_task

from accounts.sessions import remove_ended


@shared_task(name="accounts.remove_ended_sessions")
def remove_ended_sessions() -> None:
    # Lost, it comes again within the hour; repeated, it finds nothing.
    remove_ended()
