"""What every test can ask for. The plugin beside it brings databases and processes."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import TransactionTestCase

from tests.database import Cleaner


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker: Any, cleaner: Cleaner) -> Iterator[None]:
    """The database is there, migrated, and settings point to it as the application's role.

    That role may not empty tables, so a test that commits is cleaned up after by a superuser.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda self: cleaner.clean())
        with django_db_blocker.unblock():
            yield
