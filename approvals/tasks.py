from celery import shared_task

from approvals import card_views
from approvals.retention.erasing import erase_due


@shared_task(name="approvals.remove_old_card_views")
def remove_old_card_views() -> None:
    # Lost, it comes again within the day; repeated, it finds nothing.
    card_views.remove_old()


@shared_task(name="approvals.erase_due")
def erase_what_is_due() -> None:
    # Lost, it comes again within the minute; repeated or killed, it goes on where a batch ended.
    erase_due()
