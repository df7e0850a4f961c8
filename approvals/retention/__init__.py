"""Retention periods: changing them, and erasing what is due."""
