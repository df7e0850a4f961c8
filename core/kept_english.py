"""Marks sentences that are kept in English, where Django is not imported (core/english.py)."""


def gettext(message: str) -> str:
    return message
