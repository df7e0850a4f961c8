"""The agents' endpoint as a process of its own: `uvicorn config.agents:app`."""

import gc
import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from gateway.endpoint import app  # noqa: E402

__all__ = ["app"]

gc.collect()
gc.freeze()
