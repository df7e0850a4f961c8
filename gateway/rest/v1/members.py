"""Members of JSON bodies, taken only in the type that the schema says: REST framework's own fields
would also read numbers from texts, and truth from numbers."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.english import gettext as _

_RFC_3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


class Members(serializers.Serializer[Any]):
    """A JSON object without other members than these."""

    # In JSON Schema: which members go together.
    together: dict[str, Any] = {}

    def to_internal_value(self, data: Any) -> Any:
        unknown = sorted(set(data) - set(self.fields)) if isinstance(data, dict) else []
        mistakes = {name: [_("There is no such member here.")] for name in unknown}
        try:
            given = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if not isinstance(error.detail, dict):
                raise
            raise serializers.ValidationError({**error.detail, **mistakes}) from None
        if mistakes:
            raise serializers.ValidationError(mistakes)
        return given


class Text(serializers.CharField):
    def __init__(self, **named: Any) -> None:
        super().__init__(trim_whitespace=False, **named)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictChoice(serializers.ChoiceField):
    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid_choice", input=str(data)[:40])
        return super().to_internal_value(data)


class Whole(serializers.IntegerField):
    def to_internal_value(self, data: Any) -> int:
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class Flag(serializers.BooleanField):
    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=str(data)[:40])
        return data


class PatternText(serializers.RegexField):
    def __init__(self, regex: str, **named: Any) -> None:
        super().__init__(regex, trim_whitespace=False, **named)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Amount(PatternText):
    """A decimal number as a text, so that none of its digits is lost."""

    def __init__(self, **named: Any) -> None:
        super().__init__(r"^[0-9]{1,14}(\.[0-9]{1,6})?\Z", **named)


@extend_schema_field(OpenApiTypes.DATETIME)
class Moment(serializers.Field[datetime, Any, str, Any]):
    """A time with its offset. Source: RFC 3339."""

    default_error_messages = {"invalid": _("It must be an RFC 3339 time with its offset.")}

    def to_internal_value(self, data: Any) -> datetime:
        if not isinstance(data, str) or not _RFC_3339.fullmatch(data):
            self.fail("invalid")
        try:
            return datetime.fromisoformat(data.upper())
        except ValueError:
            # No such day or hour.
            self.fail("invalid")

    def to_representation(self, value: datetime) -> str:
        return value.isoformat()


class NameList(serializers.ListField):
    """Different names, in any order."""

    child = Text(min_length=1, max_length=200)

    def __init__(self, **named: Any) -> None:
        super().__init__(max_length=1_000, **named)
