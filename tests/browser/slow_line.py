"""What the first visit to a page costs on a slow line: bytes, round trips and seconds."""

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

# A telephone at the edge of its cell.
LATENCY_MS, BYTES_PER_S = 400, 50_000
TIMES = """() => [
  performance.getEntriesByName("first-contentful-paint")[0].startTime / 1000,
  performance.getEntriesByType("navigation")[0].loadEventEnd / 1000,
]"""


@dataclass
class Transfer:
    address: str
    asked_at: float
    ended_at: float = float("inf")
    bytes: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    is_cached: bool = False
    # Of which the first opens its connection.
    round_trips: int = 1


@dataclass
class Visit:
    transfers: list[Transfer]
    # Until something is to be read, and until everything is there.
    painted_s: float
    loaded_s: float

    @property
    def bytes(self) -> int:
        """With headers, as they went over the line."""
        return sum(one.bytes for one in self.transfers)

    @property
    def round_trips(self) -> int:
        """Of the longest chain of requests of which each had to wait for another's answer, be it
        for its connection; with those that opened connections."""
        depths: list[tuple[float, int]] = []
        for one in sorted(self.transfers, key=lambda one: one.asked_at):
            before = [depth for ended_at, depth in depths if ended_at <= one.asked_at]
            depths.append((one.ended_at, one.round_trips + max(before, default=0)))
        return max((depth for _ended_at, depth in depths), default=0)


def visit(page: Page, address: str) -> Visit:
    """Goes there by a slow line; what the browser has in its cache stays there."""
    line = page.context.new_cdp_session(page)
    seen: dict[str, Transfer] = {}

    def asked(event: dict[str, Any]) -> None:
        seen[event["requestId"]] = Transfer(event["request"]["url"], event["timestamp"])

    def answered(event: dict[str, Any]) -> None:
        one, response = seen[event["requestId"]], event["response"]
        one.headers = {name.lower(): value for name, value in response["headers"].items()}
        one.is_cached = response.get("fromDiskCache", False) or event["requestId"] in cached
        if timing := response.get("timing"):
            one.asked_at = timing["requestTime"] + timing["sendStart"] / 1000
            one.round_trips = 1 + (timing["connectStart"] >= 0)

    def ended(event: dict[str, Any]) -> None:
        if one := seen.get(event["requestId"]):
            one.ended_at, one.bytes = event["timestamp"], event["encodedDataLength"]

    cached: set[str] = set()
    line.on("Network.requestWillBeSent", asked)
    line.on("Network.requestServedFromCache", lambda event: cached.add(event["requestId"]))
    line.on("Network.responseReceived", answered)
    line.on("Network.loadingFinished", ended)
    line.send("Network.enable")
    conditions = {"offline": False, "latency": LATENCY_MS}
    conditions |= {"downloadThroughput": BYTES_PER_S, "uploadThroughput": BYTES_PER_S}
    line.send("Network.emulateNetworkConditions", conditions)
    page.goto(address, wait_until="load")
    page.wait_for_load_state("networkidle")
    painted_s, loaded_s = page.evaluate(TIMES)
    line.detach()
    return Visit(
        [one for one in seen.values() if not one.address.startswith("data:")], painted_s, loaded_s
    )
