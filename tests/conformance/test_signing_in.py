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
# Those that earlier revisions have, too, and what servers of 2025-03-26 lack.
EARLIER = [
    ("2025-03-26-oauth-metadata-backcompat", "2025-03-26"),
    ("2025-03-26-oauth-endpoint-fallback", "2025-03-26"),
    *((f"token-endpoint-auth-{how}", "2025-06-18") for how in ("basic", "post", "none")),
    *((one, "2025-11-25") for one in SCENARIOS[: SCENARIOS.index("resource-mismatch")]),
]
# The suite wishes for its own document's address; ours is this installation's.
WARNED = {
    "basic-cimd": frozenset({"cimd-client-id-used"}),
}


@pytest.mark.parametrize(
    ("scenario", "revision"), [*((one, "2026-07-28") for one in SCENARIOS), *EARLIER]
)
def test_nothing_fails(scenario: str, revision: str, tmp_path: Path) -> None:
    said = check("client", f"auth/{scenario}", revision, tmp_path, command=OURS)
    assert_clean(said, but=WARNED.get(scenario, frozenset()))
