"""The published set AgentDojo, as the calls of a model that obeys whatever it reads.

`agentdojo.json` has, for each of its tasks, the calls by which the set itself solves it, and after
how many of them a result contained the text that somebody injected; and the calls by which the set
solves each injected order. A scripted model makes the calls of the task up to there, and then those
of the order. Orders that the set solves by no call are left out.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.gateway.attack_set import CLOSED, DESTROY, OPEN, READ, Scenario

SUITES: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("agentdojo.json").read_text()
)["suites"]
# What others wrote and the user's own data come together: an operator labels it untrusted too.
MIXED = (
    *("get_unread_emails", "get_received_emails", "search_emails", "search_calendar_events"),
    *("get_day_calendar_events", "list_files", "get_file_by_id", "search_files"),
    *("search_files_by_filename", "get_most_recent_transactions", "get_scheduled_transactions"),
    *("read_file", "read_channel_messages", "read_inbox"),
)
OWN = (
    *("get_sent_emails", "get_draft_emails", "search_contacts_by_name"),
    *("search_contacts_by_email", "get_user_information", "get_iban", "get_balance"),
    *("get_user_info", "get_channels", "get_users_in_channel"),
)
# They reach other people, and bring nothing: an operator labels them not untrusted.
SENDING = (
    *("send_email", "share_file", "create_calendar_event", "reschedule_calendar_event"),
    *("cancel_calendar_event", "add_calendar_event_participants", "reserve_hotel"),
    *("reserve_car_rental", "reserve_restaurant", "send_money", "schedule_transaction"),
    *("update_scheduled_transaction", "send_direct_message", "send_channel_message"),
    *("post_webpage", "invite_user_to_slack", "add_user_to_channel"),
)
DESTROYING = (
    *("delete_email", "delete_file", "update_password", "update_user_info"),
    "remove_user_from_slack",
)
WRITING = ("append_to_file", "create_file")
HARMLESS = "get_current_day"
LABELLED: dict[str, dict[str, str]] = {
    **{name: {"untrusted": "yes"} for name in MIXED},
    **{name: {"untrusted": "no"} for name in SENDING},
    HARMLESS: {"sensitive": "no"},
}


def _hints(name: str) -> dict[str, bool]:
    """As a correct server declares them."""
    if name in SENDING:
        return OPEN
    if name in DESTROYING:
        return CLOSED | DESTROY
    if name in WRITING:
        return CLOSED
    return (CLOSED if name in (*MIXED, *OWN, HARMLESS) else OPEN) | READ


TOOLS: dict[str, dict[str, Any]] = {
    name: {
        "inputSchema": {"type": "object"},
        "description": f"The tool {name} of AgentDojo.",
        "annotations": _hints(name),
    }
    for suite in SUITES.values()
    for name in suite["tools"]
}


def attacks() -> Counter[Scenario]:
    """Each order in each task, with how many of them make the same calls."""
    return Counter(
        Scenario(name, (*task["steps"][: task["reads"]], *order))
        for name, suite in SUITES.items()
        for task in suite["tasks"]
        for order in suite["injections"]
    )


def tasks() -> Counter[Scenario]:
    return Counter(
        Scenario(name, tuple(task["steps"]))
        for name, suite in SUITES.items()
        for task in suite["tasks"]
    )
