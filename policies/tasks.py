from celery import shared_task

from audit.origins import is_at_home
from audit.rollback import has_gone_back
from policies.unusual_use import watch


@shared_task(name="policies.watch_unusual")
def watch_unusual() -> None:
    # Lost, it comes again within the minute; repeated, it tells nothing twice. A copy of the
    # installation tells nobody.
    if is_at_home() and not has_gone_back():
        watch()
