"""The cold queue on a slow line (400 ms, 50 kB/s): bytes, round trips and seconds.

`python -m benchmarks.slow_line DIRECTORY [--pending 25]`: with nothing in the browser's cache, and
again; with the DIRECTORY's house, made if there is none.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from benchmarks.house import house

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")


def furnish(pending: int) -> Any:
    """So many calls of an agent, and who may decide them."""
    from accounts.models import Agent
    from accounts.roles import Role
    from calls.models import Call
    from calls.record.states import State
    from registry.models import Tool
    from tests.console import scenery

    alice = scenery.person("alice", Role.APPROVER, Role.AUDITOR, Role.OPERATOR)
    scout = Agent.objects.get(name="scout")
    mailer = scenery.server("mailer", alice, scenery.SEND)
    send = Tool.objects.get(server=mailer)
    for n in range(pending):
        scenery.call(scout, send, {**scenery.MAIL, "subject": f"Minutes {n}"}, State.HELD)
    assert Call.objects.filter(state=State.HELD).count() == pending
    return alice


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--pending", type=int, default=25)
    options = parser.parse_args()
    with house(options.data) as ours:
        # Once Django is set up.
        from playwright.sync_api import sync_playwright

        from tests.browser.conftest import ARGUMENTS, session_cookie
        from tests.browser.slow_line import visit

        alice = furnish(options.pending)
        assert ours.stack
        assert ours.stack.web
        cookie = session_cookie(alice, ours.stack.web_url)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            context = browser.new_context(base_url=ours.stack.web_url)
            context.add_cookies([cookie])
            print(f"{'the queue':<12}{'kB':>8}{'round trips':>13}{'painted s':>11}{'loaded s':>10}")
            # What the process does once is no matter of the line.
            context.request.get("/queue/")
            page = context.new_page()
            for name in ("cold", "again"):
                seen = visit(page, "/queue/")
                print(
                    f"{name:<12}{seen.bytes / 1000:>8.1f}{seen.round_trips:>13}"
                    f"{seen.painted_s:>11.1f}{seen.loaded_s:>10.1f}"
                )
                for one in seen.transfers if name == "cold" else []:
                    print(f"    {one.bytes:>7} {one.address.removeprefix(ours.stack.web_url)}")
            browser.close()


if __name__ == "__main__":
    main()
