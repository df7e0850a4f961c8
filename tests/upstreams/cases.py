"""What a misbehaving server is asked to do with one call, and what may be said of it then."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus

WAYS = ("modern", "legacy", "session", "sse")
# Also such as nobody registered.
EVERY_STATUS = (*sorted(s.value for s in HTTPStatus if s >= HTTPStatus.CREATED), 499, 520, 599)
INTERIM = (100, 101, 102, 103)
REFUSALS = (401, 403, 429, 503)
DEEDS = ("answer", "twice", "half", "reset", "never", "late", "another", "garbage", "error")
# With these its process ends.
DEEDS_ON_STDIO = (*DEEDS, "exit", "kill")
# Where calls share a stream or a process, whatever ends it for one ends it for all.
SHARED = ("sse", "pipe")
# (state, executed), as the record has them.
REFUSED = ("failed", "reported")
UNKNOWN = ("unknown", "unknown")
SUCCEEDED = ("succeeded", "yes")


@dataclass(frozen=True)
class Case:
    way: str
    do: str
    status: int = 200
    acts: bool = True
    # How long `late` takes, which is longer than the tool's time limit.
    ms: int = 2500

    @property
    def nonce(self) -> str:
        return f"{self.way} {self.do} {self.status} {self.acts}"

    @property
    def arguments(self) -> str:
        return self.spelled(self.nonce)

    def spelled(self, nonce: str) -> str:
        """So that writing them anew would change them."""
        said = {"nonce": nonce, "do": self.do, "status": self.status, "acts": self.acts}
        return json.dumps(said | {"ms": self.ms}).replace(": ", " :  ")

    @property
    def ended_its_session(self) -> bool:
        """By the words of its revision; it says so each time."""
        said_so = self.do in ("status", "error of none") and self.status == 404
        return self.way == "session" and said_so

    @property
    def expected(self) -> tuple[str, str]:
        match self.do:
            case "answer" | "twice":
                return SUCCEEDED
            # What follows the 101 is of another protocol.
            case "interim" if self.status != 101:
                return SUCCEEDED
            case "error":
                return REFUSED
            case "status" if self.status in REFUSALS:
                return REFUSED
        return UNKNOWN


def cases(statuses: Iterable[int], *, not_acting: Iterable[str] = ("modern",)) -> list[Case]:
    """Each status after acting, in every way, and before acting in those of `not_acting`."""
    statuses = tuple(statuses)
    every = [Case(way, "status", status) for way in WAYS for status in statuses]
    every += [Case(way, "status", s, acts=False) for way in not_acting for s in statuses]
    for way in WAYS:
        every += [Case(way, do) for do in DEEDS]
        # To a post of HTTP with SSE, the status and the answer come by two ways.
        if way != "sse":
            every += [Case(way, "interim", status) for status in INTERIM]
            every += [Case(way, "error", status) for status in (400, 404, 500)]
        every += [Case(way, "error of none", status) for status in (400, 404, 500)]
    return every
