"""Sends what is due. At least once: a process that dies between sending and writing that down
leaves the delivery to another, which sends it again with the same id."""

from __future__ import annotations

import logging
import threading
from datetime import datetime

from django.db import close_old_connections

from audit.origins import is_at_home
from audit.rollback import has_gone_back
from core.english import gettext as _
from notifications import (
    deliveries,
    mails,
    pushes,
    quiet_hours,
    statement_decisions,
    webhook_requests,
    workload_mails,
)
from notifications.models import Delivery
from notifications.outcomes import Failed, Impossible, NotNeeded

log = logging.getLogger(__name__)

# Messages that one process sends at the same time; who comes beyond that has nothing to do.
AT_ONCE = threading.BoundedSemaphore(4)


def send_due() -> int:
    """Until nothing is due; how many were tried."""
    if not AT_ONCE.acquire(blocking=False):
        return 0
    try:
        return _send_due()
    finally:
        AT_ONCE.release()


def _send_due() -> int:
    done = 0
    # A copy of the database tells nobody of what the record's own has told, or will tell.
    while is_at_home() and not has_gone_back() and (delivery := deliveries.claim()):
        _attempt(delivery)
        done += 1
    return done


def send_in_background() -> None:
    threading.Thread(target=_in_thread, name="notifying", daemon=True).start()


def _in_thread() -> None:
    try:
        send_due()
    except Exception:
        log.exception("Notifications could not be sent; it is tried again.")
    finally:
        close_old_connections()


def _attempt(delivery: Delivery) -> None:
    if delivery.attempts > deliveries.ATTEMPTS_MAX:
        deliveries.give_up(delivery, _("Its sender's process ended at each attempt."))
        return
    if resumes := _resumes_at(delivery):
        deliveries.postpone(delivery, resumes)
        return
    try:
        receipt = _send(delivery)
    except NotNeeded as why:
        deliveries.drop(delivery, str(why))
    except Impossible as why:
        log.warning("notification %s is given up: %s", delivery.pk, why)
        deliveries.give_up(delivery, str(why))
    except Failed as why:
        log.warning("notification %s was not delivered: %s", delivery.pk, why)
        deliveries.retry_later(
            delivery, str(why), spare_others=why.is_of_place, retry_after_s=why.retry_after_s
        )
    except Exception:
        log.exception("notification %s was not delivered", delivery.pk)
        deliveries.retry_later(delivery, _("An error here: see the log."), spare_others=False)
    else:
        deliveries.mark_sent(delivery, receipt)


def _resumes_at(delivery: Delivery) -> datetime | None:
    """When it is looked at again; None: it is sent now."""
    return (
        quiet_hours.resumes_at(delivery)
        or statement_decisions.resumes_at(delivery)
        or workload_mails.resumes_at(delivery)
    )


def _send(delivery: Delivery) -> str:
    """The id that the channel gave the message, or ""."""
    if delivery.channel == Delivery.Channel.WEBHOOK:
        return webhook_requests.send(delivery)
    if delivery.channel == Delivery.Channel.PUSH:
        pushes.send(delivery)
    else:
        mails.send(delivery)
    return ""
