"""Notifications of a restored backup: nothing that was on its way then is sent now."""

from __future__ import annotations

from notifications.cursor import begin_after_restore
from notifications.deliveries import drop_all


def forget_pending(*, said: str) -> int:
    """In the caller's transaction; how many they were."""
    begin_after_restore()
    return drop_all(said)
