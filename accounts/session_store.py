"""Django's session store, with an idle and an absolute limit for whoever is signed in.

Both are in the row's `expire_date`, so each process keeps them by reading the session at all.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.contrib.sessions.models import Session
from django.utils import timezone

SINCE = "signed_in_at"
# Of a session in which nobody is signed in: a first step, or a passkey that is asked for.
UNSIGNED_S = 3600


class SessionStore(DatabaseStore):
    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        if SESSION_KEY in data:
            data.setdefault(SINCE, timezone.now().timestamp())
        made = super().create_model_instance(data)
        assert isinstance(made, Session)
        made.expire_date = expires(data)
        return made


def expires(data: dict[str, Any]) -> datetime:
    """When a session that is used now ends, if it is not used again."""
    now = timezone.now().timestamp()
    if SESSION_KEY not in data:
        return _moment(now + UNSIGNED_S)
    since = data.get(SINCE, now)
    return _moment(min(now + settings.SESSION_IDLE_S, since + settings.SESSION_MAX_S))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
