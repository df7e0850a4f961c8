import logging

from celery import shared_task

from calls.content import received_results
from calls.content.large_results import expire, may_expire
from calls.measuring import measure
from calls.queue.worker import work
from calls.record.listed_tasks import KEPT_S, forget
from calls.services import forget_keys
from calls.tally import advance
from core import months
from policies.limits.sweeping import sweep_counters

log = logging.getLogger(__name__)


@shared_task(name="calls.run")
def run_call(call_id: str) -> None:
    # A doorbell: whose turn it is, the row says and not the message. Lost or repeated, it does not
    # matter: claiming happens once, and the sweep looks for itself.
    work()


@shared_task(name="calls.measure")
def measure_tools() -> None:
    # Lost, it comes again within a minute; repeated, it finds the same.
    measure()
    forget_keys()
    advance()


@shared_task(name="calls.expire_results")
def expire_results() -> None:
    # Lost, it comes again within the hour; repeated, it finds nothing.
    if may_expire():
        while expire():
            pass
    if received_results.may_expire():
        while received_results.expire():
            pass
    while forget(older_s=KEPT_S):
        pass
    while sweep_counters():
        pass
    if months.may_make():
        try:
            months.make()
        except months.TableHeld as error:
            log.warning("%s", error)
    for sentence in months.overdue():
        log.warning("%s", sentence)
