"""How long a task took, by its server's own times, as far as these can be true."""

from __future__ import annotations

import asyncio
import math
from datetime import datetime
from typing import Any

# The task was made before we heard of it, and its server's clock runs a little differently.
_SLACK_S = 1.0


class TaskStopwatch:
    """Begins when a server has made a task. What its times say counts where it ended between the
    last look that found it running and the one that found it ended."""

    def __init__(self) -> None:
        self._began = self._looked = self._ran = asyncio.get_running_loop().time()

    def note_look(self) -> None:
        self._looked = asyncio.get_running_loop().time()

    def note_running(self) -> None:
        """The last look found it running."""
        self._ran = self._looked

    def took(self, task: dict[str, Any]) -> float | None:
        """`task`: as its server describes it now that it has ended."""
        made, ended = _time(task.get("createdAt")), _time(task.get("lastUpdatedAt"))
        if made is None or ended is None:
            return None
        seconds = ended - made
        most = asyncio.get_running_loop().time() - self._began + _SLACK_S
        return seconds if self._ran - self._began <= seconds <= most else None


def _time(said: Any) -> float | None:
    """In seconds since 1970."""
    if not isinstance(said, str):
        return None
    try:
        at = datetime.fromisoformat(said)
        seconds = at.timestamp() if at.tzinfo is not None else math.nan
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) else None
