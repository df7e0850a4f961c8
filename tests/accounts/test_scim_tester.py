"""What scim2-tester, which others wrote, finds about the SCIM server."""

from typing import Any

import httpx2
import pytest

from accounts.models import User
from accounts.roles import Role
from tests.accounts.fake_provider import FakeProvider
from tests.accounts.scim import scim_token
from tests.accounts.test_identity_providers import company, configure, fake
from tests.console import scenery

__all__ = ["company", "configure", "fake"]


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_it_finds_nothing_wrong(live_server: Any, ada: User, company: FakeProvider) -> None:
    # Takes a fifth of the time in which all tests are collected.
    from scim2_client.engines.httpx2 import SyncSCIMClient
    from scim2_tester import Status, check_server

    headers = {"Authorization": f"Bearer {scim_token(ada)}"}
    with httpx2.Client(base_url=f"{live_server.url}/scim/v2", headers=headers) as client:
        results = check_server(SyncSCIMClient(client))

    taken = [one for one in results if one.status in (Status.SUCCESS, Status.COMPLIANT)]
    skipped = [one.reason for one in results if one.status == Status.SKIPPED]
    assert [one for one in results if one not in taken and one.status != Status.SKIPPED] == []
    assert len(taken) > 60
    # No extension, and no attribute that is only written.
    assert len(skipped) <= 2, skipped
