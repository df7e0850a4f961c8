"""Prices and refunds of the ferry tickets."""

from dataclasses import dataclass
from datetime import datetime, timedelta

RETURN_FEE = 10
GROUP_SIZE = 10
APPROVAL_NEEDED_ABOVE = 2_000


@dataclass(frozen=True)
class Ticket:
    route: str
    departs: datetime
    price: int
    used: bool = False


class NotRefundable(Exception):
    """Says why, in words for the passenger."""


def group_price(price: int, people: int) -> int:
    """Groups pay a fifth less."""
    total = price * people
    return total * 4 // 5 if people >= GROUP_SIZE else total


def refund(ticket: Ticket, now: datetime) -> int:
    """What a passenger gets back for a ticket that was not used."""
    if ticket.used:
        raise NotRefundable("This ticket was used.")
    if now >= ticket.departs:
        raise NotRefundable("This crossing has departed.")
    return max(0, ticket.price - RETURN_FEE)


def refund_for_delay(ticket: Ticket, delay: timedelta, weather_warning: bool) -> int:
    if weather_warning or delay <= timedelta(hours=1):
        return 0
    return ticket.price // 2


def needs_approval(amount: int) -> bool:
    return amount > APPROVAL_NEEDED_ABOVE
