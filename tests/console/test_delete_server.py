"""Deleting a server that was registered by mistake."""

from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client

from accounts.models import Agent, User
from audit.models import Entry
from calls.record.states import State
from registry import services
from registry.models import Server, Tool, Toolset
from registry.names import NameRefused
from registry.publishing import published_catalogue
from tests.console import scenery

DELETE = "/servers/mailer/delete/"


@pytest.fixture
def as_olga(client: Client, olga: User, mailer: Server) -> Client:
    client.force_login(olga)
    return client


@pytest.mark.long
def test_it_is_gone_from_everywhere_but_the_record(
    as_olga: Client, mailer: Server, send_mail: Tool, scout: Agent
) -> None:
    ended = scenery.call(scout, send_mail, {}, State.REFUSED)
    toolset = Toolset.objects.create(slug="office")
    toolset.servers.add(mailer)
    Server.objects.filter(pk=mailer.pk).update(sealed_credential=b"sealed")
    assert DELETE in as_olga.get("/servers/mailer/edit/").text
    assert "Delete “mailer”?" in as_olga.get(DELETE).text
    assert Server.objects.get().deleted_at is None

    page = as_olga.post(DELETE, follow=True)

    assert "“mailer” is deleted." in page.text
    assert "No servers yet" in page.text
    gone = Server.objects.get()
    assert (gone.enabled, gone.sealed_credential) == (False, None)
    assert gone.deleted_at
    assert published_catalogue.one(send_mail.pk) is None
    assert Tool.objects.get().state == Tool.State.RETIRED
    assert not toolset.servers.exists()
    assert Entry.objects.get(action="server.deleted").actor == "olga"
    shown = as_olga.get("/servers/mailer/").text
    assert "Deleted" in shown
    assert "/servers/mailer/edit/" not in shown
    assert as_olga.get(f"/calls/{ended}/").status_code == 200


def test_it_is_refused_while_calls_are_open(as_olga: Client, held: UUID, mailer: Server) -> None:
    assert "Delete the server" not in as_olga.get(DELETE).text

    page = as_olga.post(DELETE, follow=True)

    assert "has calls that have not ended" in page.text
    mailer.refresh_from_db()
    assert mailer.enabled
    assert not Entry.objects.filter(action="server.deleted").exists()


@pytest.mark.long
def test_it_does_not_come_back(as_olga: Client, mailer: Server, olga: User) -> None:
    as_olga.post(DELETE)

    for address in ("edit", "review", "delete"):
        assert as_olga.get(f"/servers/mailer/{address}/").status_code == 404
    for address in ("enabled", "relays", "revision", "refresh", "delete"):
        assert as_olga.post(f"/servers/mailer/{address}/", {"enabled": "1"}).status_code == 404
    for command in (["discover", "mailer"], ["update_server", "mailer", "--enable"]):
        with pytest.raises(CommandError):
            call_command(*command)
    services.set_enabled(Server.objects.get(), True, by=olga)
    # Somebody's page or command may have begun before it was deleted.
    with pytest.raises(services.RegistrationRefused, match="was deleted"):
        services.set_connection(mailer, by=olga, url="https://a.example/mcp", credential="secret")
    assert Server.objects.get().sealed_credential is None
    with pytest.raises(IntegrityError), transaction.atomic():
        Server.objects.update(enabled=True)
    assert not Server.objects.get().enabled
    # The record speaks of it under this name.
    with pytest.raises(NameRefused):
        scenery.server("mailer", olga)


def test_others_delete_nothing(as_olga: Client, mailer: Server, alice: User) -> None:
    as_olga.force_login(alice)

    assert as_olga.get(DELETE).status_code == 403
    assert as_olga.post(DELETE).status_code == 403
    assert Server.objects.get().deleted_at is None
