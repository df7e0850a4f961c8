"""The chart of a tool's calls a day."""

import re

from django.test import Client

from accounts.models import Agent
from calls.record.states import State
from registry.models import Tool
from tests.console import scenery


def test_what_did_not_run_is_no_success(as_alice: Client, scout: Agent, send_mail: Tool) -> None:
    scenery.call(scout, send_mail, scenery.MAIL, State.INVALID, effect="")
    sent = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "2"}, State.QUEUED)
    scenery.run(sent)
    scenery.finish(sent, {"content": []})

    page = as_alice.get(f"/tools/{send_mail.exposed_name}/usage/").text

    heights = dict(re.findall(r'<rect data-outcome="(\w+)"[^>]*height="([\d.]+)"', page))
    assert heights["succeeded"] == heights["stopped"]
    assert "error" not in heights
    assert "Blocked, stopped or not ended" in page
