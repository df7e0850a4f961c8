from celery import shared_task

from notifications.deliveries import remove_old
from notifications.sending import send_due


@shared_task(name="notifications.send")
def send_notifications() -> None:
    # A doorbell: what is due, rows say. Lost or repeated, it does not matter, since each is claimed
    # once and the sweep looks for itself.
    send_due()


@shared_task(name="notifications.remove_old")
def remove_old_deliveries() -> None:
    # Lost, it comes again within the hour; repeated, it finds nothing.
    while remove_old():
        pass
