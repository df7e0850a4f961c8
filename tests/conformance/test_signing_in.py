"""The official conformance suite's authorization scenarios, at our client towards servers."""

import sys
from pathlib import Path

import pytest

from tests.conformance.suite import assert_clean, check

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]

OURS = f"{sys.executable} -m tests.conformance.signing_client"
SCENARIOS = [
    "metadata-default",
    "metadata-var1",
    "metadata-var2",
    "metadata-var3",
    "basic-cimd",
    "scope-from-www-authenticate",
    "scope-from-scopes-supported",
    "scope-omitted-when-undefined",
    "scope-step-up",
    "scope-retry-limit",
    "token-endpoint-auth-basic",
    "token-endpoint-auth-post",
    "token-endpoint-auth-none",
    "pre-registration",
    "resource-mismatch",
    "offline-access-scope",
    "offline-access-not-supported",
    "authorization-server-migration",
    "iss-supported",
    "iss-not-advertised",
    "iss-supported-missing",
    "iss-wrong-issuer",
    "iss-unexpected",
    "iss-normalized",
    "metadata-issuer-mismatch",
]
# The suite wishes for its own document's address; ours is this installation's.
WARNED = {
    "basic-cimd": frozenset({"cimd-client-id-used"}),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nothing_fails(scenario: str, tmp_path: Path) -> None:
    said = check("client", f"auth/{scenario}", "2026-07-28", tmp_path, command=OURS)
    assert_clean(said, but=WARNED.get(scenario, frozenset()))
