from celery import shared_task

from audit.export_jobs import remove_old


@shared_task(name="audit.remove_old_exports")
def remove_old_exports() -> None:
    # Lost, it comes again within the hour; repeated, it finds nothing.
    remove_old()
