"""The official conformance suite, at our client towards servers. OAuth is not a part of it."""

import sys
from pathlib import Path

import pytest

from tests.conformance.suite import assert_clean, check

OURS = f"{sys.executable} -m tests.conformance.client"
SCENARIOS = {
    "2025-11-25": [
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry",
        "json-schema-2020-12-preservation",
    ],
    "2026-07-28": [
        "tools_call",
        "request-metadata",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ],
}
ALL = [(revision, one) for revision, scenarios in SCENARIOS.items() for one in scenarios]


@pytest.mark.parametrize(("revision", "scenario"), ALL, ids=["@".join(one) for one in ALL])
def test_nothing_fails(revision: str, scenario: str, tmp_path: Path) -> None:
    assert_clean(check("client", scenario, revision, tmp_path, command=OURS))


def test_it_would_notice_a_client_that_asks_for_nothing(tmp_path: Path) -> None:
    idle = f"{sys.executable} -c pass"

    said = check("client", "tools_call", "2026-07-28", tmp_path, command=idle)

    assert "FAILURE" in {how for how, _id, _why in said}
