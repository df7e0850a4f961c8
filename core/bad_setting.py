"""The error of a setting that is wrong; apart from core/errors.py, which needs no Django."""

import sys
from types import TracebackType

from django.core.exceptions import ImproperlyConfigured


class BadSetting(ImproperlyConfigured, ValueError):
    """Its words say which setting is wrong, and what it may be."""


def print_sentence_alone() -> None:
    """A process that ends by a wrong setting prints its sentence, and no traceback around it."""
    sys.excepthook = _print


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, ImproperlyConfigured):
        sys.stderr.write(f"{error}\n")
    else:
        sys.__excepthook__(kind, error, trace)
