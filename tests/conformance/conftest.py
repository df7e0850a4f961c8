"""Rows of a whole module, as the flows have them."""

from tests.flows.conftest import lasting_database

__all__ = ["lasting_database"]
