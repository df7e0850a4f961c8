from celery import shared_task
from django.utils import timezone

from audit.origins import is_at_home
from audit.rollback import has_gone_back
from notifications import calendars, expiring_tokens, weekly_workload
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


@shared_task(name="notifications.read_calendars")
def read_calendars() -> None:
    # Lost, it comes again within the minute; repeated, it finds none that is due. A copy of the
    # installation asks no calendar.
    if is_at_home() and not has_gone_back():
        calendars.read_due()


@shared_task(name="notifications.tell_expiring_tokens")
def tell_expiring_tokens() -> None:
    # Lost, it comes again within the hour; repeated, each token was told.
    if is_at_home() and not has_gone_back():
        expiring_tokens.tell()


@shared_task(name="notifications.tell_workload")
def tell_workload() -> None:
    # What a week holds is read when its mail is sent. Lost, it comes again within the hour;
    # repeated, the week was told.
    if is_at_home() and not has_gone_back():
        weekly_workload.tell(timezone.now())
