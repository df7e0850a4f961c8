from collections.abc import Iterator
from typing import Any

import pytest

from tests.database import Cleaner


@pytest.fixture(scope="module")
def lasting_database(
    django_db_setup: None, django_db_blocker: Any, cleaner: Cleaner
) -> Iterator[None]:
    """Rows that stay until the module's tests are done."""
    with django_db_blocker.unblock():
        yield
        cleaner.clean()
