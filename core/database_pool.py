"""The pool of database connections, which all threads of a process share."""

from django.db import connection


def release_connection() -> None:
    """Gives this thread's connection back: for who waits for another host, which may hang. It gets
    one again with its next query. A transaction keeps its own."""
    if not connection.in_atomic_block:
        connection.close()
