"""What servers list beside their tools, on pages: waiting, published, read."""

import pytest
from django.test import Client
from django.urls import reverse

from accounts.roles import Role
from registry.models import Item, Server
from registry.models.versioned import difference
from tests.console import scenery

pytestmark = pytest.mark.django_db

NOTES = {"uri": "notes://today", "name": "today", "title": "Today's notes", "x": "</script><b>"}
GREET = {"name": "greet", "description": "Says hello."}


@pytest.fixture
def library() -> Server:
    operator = scenery.person("olga", Role.OPERATOR, Role.VIEWER)
    made = scenery.server("lib", operator)
    scenery.shelve(made, Item.Kind.RESOURCE, NOTES, publish=True)
    scenery.shelve(made, Item.Kind.RESOURCE, {**NOTES, "title": "Other"}, publish=False)
    scenery.shelve(made, Item.Kind.PROMPT, GREET, publish=False)
    return made


def test_the_servers_page_leads_to_all_of_it(client: Client, library: Server) -> None:
    client.force_login(scenery.person("vera", Role.VIEWER))

    server = client.get(reverse("registry:server", args=["lib"])).content.decode()
    items = client.get(reverse("registry:items", args=["lib"])).content.decode()

    assert "Prompt: 1" in server
    assert "Resource: 1" in server
    for said in ("notes://today", "greet", "Version 2, as its server says now"):
        assert said in items
    assert "Version 1, which was published" in items
    assert "</script><b>" not in items
    # A viewer reads and publishes nothing.
    assert "Review it" not in items
    assert client.get(reverse("registry:review", args=["lib"])).status_code == 403


@pytest.mark.long
def test_what_was_read_is_what_is_published(client: Client, library: Server) -> None:
    client.force_login(library.owner)
    address = reverse("registry:review", args=["lib"])
    page = client.get(address).content.decode()
    greet, today = Item.objects.get(key="greet"), Item.objects.get(key="notes://today")
    assert "notes://today" in page
    digests = {f"item-{item.pk}": difference(item) for item in (greet, today)}

    client.post(address, {f"item-{greet.pk}": difference(greet)})
    greet.refresh_from_db()
    assert greet.state == Item.State.PUBLISHED
    # It changes while somebody reads.
    scenery.shelve(library, Item.Kind.RESOURCE, {**NOTES, "title": "Third"}, publish=False)
    answer = client.post(address, digests, follow=True).content.decode()

    today.refresh_from_db()
    assert today.state == Item.State.CHANGED
    assert "has changed since it was reviewed" in answer
