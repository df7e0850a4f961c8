"""What a new installation finds: a person, an agent with a token, servers to try."""

from __future__ import annotations

from accounts import services as accounts
from accounts.models import Agent

AGENT = "demo"


def first_run(*, examples: bool) -> dict[str, str]:
    """Make what is missing. Safe to repeat; what is shown once is made anew each time."""
    person = accounts.first_administrator()
    agent = Agent.objects.filter(name=AGENT).first()
    agent = agent or accounts.create_agent(AGENT, owner=person, by=None)
    return {
        "sign_in": accounts.sign_in_link(person),
        "token": accounts.issue_token(agent, by=None),
        "toolset": "default",
    }
