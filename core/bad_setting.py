"""The error of a setting that is wrong; apart from core/errors.py, which needs no Django."""

from django.core.exceptions import ImproperlyConfigured


class BadSetting(ImproperlyConfigured, ValueError):
    """Its words say which setting is wrong, and what it may be."""
