"""The requests of the demo's agents: arguments that the example servers take, and results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

Arguments = dict[str, Any]
PORTS = ("Bergen", "Edinburgh", "Lisbon", "Reykjavík")
SAILINGS = ("07:15", "09:30", "12:10", "15:45", "18:20")
ROUTES = ("Skarv - Holm", "Skarv - Ytre Lunde", "Holm - Grind")
PASSENGERS = ("ana", "bram", "chidi", "dewi", "elif", "farid", "greta", "haruto", "ines", "jun")
DOCUMENTS = ("bad-weather", "refunds", "ticket-prices", "timetable", "lost-property")
QUESTIONS = (
    "When is a sailing cancelled?",
    "How do passengers get their money back?",
    "May a dog travel in the lounge?",
    "What does a bicycle cost?",
    "Where is lost property kept?",
)
NAMES = ("submit", "departures", "refund", "seats_left", "ticket", "price_of", "next_sailing")
# By subject, what the mail says.
MAILS = {
    "Your refund for the {sailing} sailing": (
        "the {sailing} sailing from Skarv was cancelled because of wind. Your {sum} crowns are on "
        "their way back and arrive within five days."
    ),
    "The {sailing} sailing is delayed": (
        "the {sailing} sailing will leave about 40 minutes late. Your ticket stays valid, also on "
        "the next one."
    ),
    "Your umbrella was found": (
        "it is green, has a wooden handle and is kept at the desk in Holm until the end of the "
        "month."
    ),
    "Group booking for {sum} people": (
        "we can take your group on the {sailing} sailing. Please confirm by Friday."
    ),
}


@dataclass(frozen=True)
class Job:
    """One kind of request. `hours` names a profile of config/demo/month.py; `seconds` is the
    median duration."""

    agent: str
    tool: str
    per_day: float
    hours: str
    seconds: float
    make: Callable[[Random], Arguments]
    answer: Callable[[Random, Arguments], str]


def _forecast(dice: Random) -> Arguments:
    return {"city": dice.choice(PORTS), "days": dice.choice((1, 2, 3))}


def _weather(dice: Random, asked: Arguments) -> str:
    sky = dice.choice(("clear", "cloudy", "rain", "rain at first, then cloudy"))
    return f"{asked['city']}: {sky}, {dice.randint(-1, 14)} °C, wind {dice.randint(6, 48)} km/h."


def _sum(dice: Random) -> Arguments:
    return {"expression": f"{dice.randint(20, 480)} * {dice.choice((38.5, 52, 19.25, 77))}"}


def _mail(dice: Random) -> Arguments:
    subject, text = dice.choice(list(MAILS.items()))
    who, said = dice.choice(PASSENGERS), {"sailing": dice.choice(SAILINGS)}
    said["sum"] = str(dice.choice((77, 96, 154, 231, 38)))
    host = "rival.example" if dice.random() < 0.04 else "passenger.example"
    return {
        "to": [f"{who}@{host}"],
        "subject": subject.format(**said),
        "body": f"Dear {who.capitalize()},\n\n{text.format(**said)}\n\nKystlinje, harbour desk\n",
    }


def _sailing_file(dice: Random) -> Arguments:
    sailing = dice.choice(SAILINGS)
    count = dice.randint(40, 310)
    return {
        "path": f"sailings/{sailing.replace(':', '-')}.txt",
        "text": f"Sailing {sailing}: {count} passengers, {dice.randint(0, 40)} cars.\n",
        "overwrite": True,
    }


def _old_file(dice: Random) -> Arguments:
    return {"path": f"drafts/{dice.choice(ROUTES).lower().replace(' ', '')}.txt"}


def _words(dice: Random) -> Arguments:
    subject, text = dice.choice(list(MAILS.items()))
    return {"text": f"{subject}. {text}".format(sailing=dice.choice(SAILINGS), sum=77)}


def _answer(text: str) -> Callable[[Random, Arguments], str]:
    return lambda _dice, asked: text.format(**asked)


def _product(_dice: Random, asked: Arguments) -> str:
    left, _times, right = asked["expression"].split()
    return f"{asked['expression']} = {int(left) * float(right):g}"


JOBS = (
    Job("night-watch", "weather.forecast", 96, "always", 0.05, _forecast, _weather),
    Job(
        "night-watch",
        "weather.climate_normals",
        6,
        "always",
        0.04,
        lambda dice: {"city": dice.choice(PORTS)},
        _answer("{city}: twelve monthly means."),
    ),
    Job(
        "scout",
        "documents.search_documents",
        70,
        "office",
        0.12,
        lambda dice: {"query": dice.choice(QUESTIONS), "limit": 3},
        _answer("3 documents answer “{query}”."),
    ),
    Job(
        "scout",
        "documents.read_document",
        45,
        "office",
        0.06,
        lambda dice: {"name": dice.choice(DOCUMENTS)},
        _answer("{name}: the whole text."),
    ),
    Job("scout", "weather.forecast", 18, "office", 0.06, _forecast, _weather),
    Job(
        "harbour-desk",
        "documents.search_documents",
        40,
        "desk",
        0.13,
        lambda dice: {"query": dice.choice(QUESTIONS)},
        _answer("5 documents answer “{query}”."),
    ),
    Job(
        "harbour-desk",
        "text-analyser.measure_readability",
        22,
        "desk",
        0.03,
        _words,
        _answer("Easy to read."),
    ),
    Job("harbour-desk", "mailer.send_mail", 26, "desk", 0.4, _mail, _answer("Sent to {to[0]}.")),
    Job("ledger-clerk", "calculator.evaluate", 80, "morning", 0.02, _sum, _product),
    Job(
        "ledger-clerk",
        "reports.write_report",
        4,
        "morning",
        26.0,
        lambda dice: {"year": dice.choice((2025, 2026))},
        _answer("Passengers, revenue and cancellations of {year}, by route."),
    ),
    Job(
        "ledger-clerk",
        "file-writer.write_file",
        9,
        "morning",
        0.05,
        _sailing_file,
        _answer("{path} written."),
    ),
    Job(
        "ledger-clerk",
        "file-writer.delete_file",
        2.2,
        "morning",
        0.05,
        _old_file,
        _answer("{path} deleted."),
    ),
    Job(
        "code-reviewer",
        "code-search.search_code",
        64,
        "late",
        0.22,
        lambda dice: {"query": dice.choice(NAMES), "languages": ["python"]},
        _answer("Lines that contain “{query}”, with their file and number."),
    ),
    Job(
        "code-reviewer",
        "code-search.read_source",
        30,
        "late",
        0.07,
        lambda dice: {"path": dice.choice(("sailing.py", "tickets.py")), "lines": 60},
        _answer("60 lines of {path}."),
    ),
)
