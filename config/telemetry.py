"""Traces and metrics for a collector, by OTLP over HTTP, where COUNTERSIGN_OTLP_URL names one."""

from __future__ import annotations

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


def start() -> None:
    """In a process that serves or runs calls, once. Raises ImproperlyConfigured."""
    if not settings.OTLP_URL:
        return
    try:
        # An extra of the package, and half a second of every start.
        from config.otlp import export_on
    except ImportError as error:
        raise ImproperlyConfigured(
            "COUNTERSIGN_OTLP_URL is set, and OpenTelemetry is not installed: install "
            f"countersign[telemetry]. {error}"
        ) from error
    export_on(settings.OTLP_URL)
