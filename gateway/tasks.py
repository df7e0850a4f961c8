from celery import shared_task
from django.utils import timezone

from gateway.cases.runs import settle_all
from gateway.cases.schedules import run_due
from gateway.models import AnsweredRequest


@shared_task(name="gateway.run_cases")
def run_cases() -> None:
    # Lost, it comes again within a minute; repeated, it finds nothing that is due.
    settle_all()
    run_due(timezone.now())


@shared_task(name="gateway.remove_answered_requests")
def remove_answered_requests() -> None:
    # Lost, it comes again within the hour; repeated, it finds nothing.
    AnsweredRequest.objects.outdated().delete()
