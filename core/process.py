"""Which of the product's processes this is: web, agents, worker, beat, seal; else a command."""

from __future__ import annotations

import secrets

_role = "command"
_own = secrets.token_hex(4)


def role() -> str:
    return _role


def process_name() -> str:
    """The role, and what no other process is called."""
    return f"{_role} {_own}"


def set_role(name: str) -> None:
    """Once, before anything connects to the database."""
    global _role  # noqa: PLW0603 one per process is the point
    _role = name
