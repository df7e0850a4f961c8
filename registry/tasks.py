from celery import shared_task

from core import loop
from registry import discovery
from registry.models import Server


@shared_task(name="registry.discover_server")
def discover_server(server_id: int) -> None:
    # Lost, it comes with the next look at all; repeated, it finds nothing new.
    loop.run(discovery.look_at([server_id]))


@shared_task(name="registry.discover_all")
def discover_all() -> None:
    enabled = Server.objects.filter(enabled=True).values_list("pk", flat=True)
    loop.run(discovery.look_at(list(enabled)))
