"""Violations of a schema as sentences on pages, each with the name of its field."""

from __future__ import annotations

from django.utils.translation import gettext as _

from registry.schema_forms.violation_words import in_words
from registry.schemas.violations import Violation


def sentence(violation: Violation) -> str:
    """With the way to the field, where it is inside another one."""
    name = violation.path.removeprefix("$").removeprefix(".")
    said = _("“%(name)s” %(expected)s") if name else _("The arguments: %(expected)s")
    return said % {"name": name, "expected": in_words(violation)}
