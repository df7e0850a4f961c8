from celery import shared_task

from registry import discovery_queue


@shared_task(name="registry.discover_server")
def discover_server(server_id: int) -> None:
    # Lost, it comes with the next discovery of all; repeated, it finds nothing new. The thread is
    # one of those that calls wait for: nothing is waited for here.
    discovery_queue.requested.add([server_id])


@shared_task(name="registry.discover_all")
def discover_all() -> None:
    discovery_queue.scheduled.add_all()
