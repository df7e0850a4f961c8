from celery import shared_task

from approvals import card_views


@shared_task(name="approvals.remove_old_card_views")
def remove_old_card_views() -> None:
    # Lost, it comes again within the day; repeated, it finds nothing.
    card_views.remove_old()
