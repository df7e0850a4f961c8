"""PostgreSQL and Valkey from PyPI wheels, run as our own children when no URL is given."""
