"""Counts where calls moved to, as a worker does once a minute, all the time.

python -m tests.faults.tallying
"""

import time

import django
from django.db import DatabaseError, InterfaceError, connection

PAUSE_S = 0.5


def main() -> None:
    from calls.tally import advance

    while True:
        try:
            advance()
        except (DatabaseError, InterfaceError):
            # The database was killed, or its disk is full.
            connection.close()
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    django.setup()
    main()
