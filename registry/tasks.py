from celery import shared_task

from audit.services import SYSTEM
from core.english import gettext as _
from registry import discovery_queue
from registry.credentials import credential_store
from registry.models import ServerCredential
from registry.publishing import registry_versions
from registry.versions import stored_findings


@shared_task(name="registry.discover_server")
def discover_server(server_id: int) -> None:
    # Lost, it comes with the next discovery of all; repeated, it finds nothing new. The thread is
    # one of those that calls wait for: nothing is waited for here.
    discovery_queue.requested.add([server_id])


@shared_task(name="registry.discover_all")
def discover_all() -> None:
    discovery_queue.scheduled.add_all()


@shared_task(name="registry.renew_findings")
def renew_findings() -> None:
    # Lost or repeated, the next one goes on where this ended.
    stored_findings.renew()


@shared_task(name="registry.remove_credentials")
def remove_credentials() -> None:
    # Calls carry none of them from the moment in which their owner was gone; here they are deleted.
    credential_store.remove(
        ServerCredential.objects.left_behind(), by=SYSTEM, reason=_("Its owner is gone.")
    )


@shared_task(name="registry.refresh_registries")
def refresh_registries() -> None:
    registry_versions.refresh_all()
