"""What the official suite demands, and what of it is not run here: named, with the reason."""

import re
import subprocess

import pytest

from tests.conformance import differences, scenarios, test_client
from tests.conformance.suite import ROOT, SUITE, node

# Not scored by the suite.
NOT_RUN = {
    "tasks-status-notifications": "The suite skips it until it listens on streams itself.",
}


def demanded(revision: str) -> dict[str, set[str]]:
    """What is required of either leg, and the rest."""
    argv = [node(), str(SUITE), "list", "--requirements", revision]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    required, _, rest = said.partition("never scored")
    found: dict[str, set[str]] = {"server": set(), "client": set(), "rest": set()}
    leg = ""
    for line in required.splitlines():
        leg = {"Server": "server", "Client": "client"}.get(line.partition(" ")[0], leg)
        if name := re.fullmatch(r"  - (\S+)", line):
            found[leg].add(name[1])
    found["rest"] = set(re.findall(r"    - (\S+) \[(?:client|server)\]", rest))
    return found


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_what_is_required_is_run(revision: str) -> None:
    found = demanded(revision)
    served = {one for one, at in scenarios.ALL if at == revision}
    asked = {one for at, one in test_client.ALL if at == revision}

    assert found["server"] - served == set()
    # OAuth ("auth/…") is not spoken on either side.
    assert {one for one in found["client"] - asked if not one.startswith("auth/")} == set()


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_what_else_is_not_run_has_its_reason(revision: str) -> None:
    found = demanded(revision)
    run = {one for one, _ in scenarios.ALL} | {one for _, one in test_client.ALL}

    left = {one for one in found["rest"] - run if not one.startswith("auth/")}
    assert left <= NOT_RUN.keys()


def test_the_page_lists_the_differences() -> None:
    page = (ROOT / "docs" / "en" / "reference" / "compatibility.md").read_text()
    _, _, rest = page.partition("<!-- the differences: begin -->\n")
    listed, _, _ = rest.partition("\n<!-- the differences: end -->")

    assert listed == differences.table()
