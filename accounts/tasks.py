from celery import shared_task

from accounts import used_proofs
from accounts.agent_sign_in import removal
from accounts.sessions import remove_ended


@shared_task(name="accounts.remove_ended_sessions")
def remove_ended_sessions() -> None:
    # Lost, it comes again within the hour; repeated, it finds nothing.
    remove_ended()


@shared_task(name="accounts.remove_ended_sign_ins")
def remove_ended_sign_ins() -> None:
    # As above.
    removal.remove()


@shared_task(name="accounts.remove_used_proofs")
def remove_used_proofs() -> None:
    # As above, and often: each request of some clients leaves one.
    used_proofs.remove_ended()
