"""May this ship sail in this weather?"""

from typing import NamedTuple


class Ship(NamedTuple):
    name: str
    open_deck: bool
    places: int


class Sea(NamedTuple):
    wind: float  # metres a second
    waves: float  # metres
    sight: int  # metres


FLEET = [Ship("Ternen", False, 299), Ship("Lomvi", True, 148), Ship("Alken", True, 97)]


def may_sail(ship: Ship, sea: Sea) -> bool:
    """What the rules allow. The master may still say no."""
    if ship.open_deck:
        return sea.wind < 15 and sea.waves <= 2
    return sea.wind < 20


def reduced_speed(sea: Sea) -> bool:
    return sea.sight < 500


def ships_for(passengers: int, sea: Sea) -> list[Ship]:
    """The smallest ships first: they burn less."""
    ready = [ship for ship in FLEET if may_sail(ship, sea) and ship.places >= passengers]
    return sorted(ready, key=lambda ship: ship.places)
