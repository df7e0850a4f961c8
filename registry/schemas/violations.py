"""Violations of a schema, in words that an agent can act upon."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import jsonschema_rs
import orjson
from jsonschema_rs import ValidationError, ValidationErrorKind

MAX_VIOLATIONS = 20
# All violations are found at once or only the first: a million would hold up everybody else.
MAX_WORK = 20_000
MAX_NODES = 2_000
UNKNOWN = "is not a known property"
_plain = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch

Path = Sequence[str | int]


@dataclass(frozen=True, slots=True)
class Violation:
    """`path` is a JSONPath; `expected` says what would be right there."""

    path: str
    expected: str

    def __str__(self) -> str:
        return f"{self.path}: {self.expected}"


def violations(
    validator: jsonschema_rs.Validator,
    arguments: Any,
    *,
    subschemas: int,
    lengths: tuple[jsonschema_rs.Validator, set[int]] | None = None,
) -> list[Violation]:
    """`lengths`: the same without its patterns, which are not tried on what is too long for them,
    and with limits of ours."""
    if validator.is_valid(arguments):
        return []
    if lengths is not None and not lengths[0].is_valid(arguments):
        without = violations(lengths[0], arguments, subschemas=subschemas)
        return [_ours(violation, lengths[1]) for violation in without]
    errors = _errors(validator, arguments, nodes=min(MAX_NODES, MAX_WORK // max(subschemas, 1)))
    found = (violation for error in errors for violation in _violations(error))
    # The same may be found along several branches.
    return list(islice(dict.fromkeys(found), MAX_VIOLATIONS))


def _ours(violation: Violation, limits: set[int]) -> Violation:
    limit = next((n for n in limits if violation.expected == _limited("maxLength", n)), None)
    if limit is None:
        return violation
    said = f"is too long to be checked against its pattern: give at most {limit} characters"
    return Violation(violation.path, said)


def _errors(
    validator: jsonschema_rs.Validator, arguments: Any, *, nodes: int
) -> Iterator[ValidationError]:
    if _larger(arguments, nodes):
        try:
            validator.validate(arguments)
        except ValidationError as error:
            return iter([error])
    return validator.iter_errors(arguments)


def _larger(value: Any, nodes: int) -> bool:
    level = [value]
    while level:
        nodes -= len(level)
        if nodes < 0:
            return True
        level = [child for v in level for child in _children(v)]
    return False


def _children(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def _violations(error: ValidationError) -> list[Violation]:
    return [Violation(json_path(path), expected) for path, expected in explain(error)]


def explain(error: ValidationError) -> list[tuple[tuple[str | int, ...], str]]:
    """Where, and what would be right there: a sentence without its subject."""
    at = tuple(error.instance_path)
    match error.kind:
        case ValidationErrorKind.Required(property=name):
            return [((*at, name), "is required")]
        case ValidationErrorKind.AdditionalProperties(unexpected=names):
            return [((*at, name), UNKNOWN) for name in names]
        case ValidationErrorKind.UnevaluatedProperties(unexpected=names):
            return [((*at, name), UNKNOWN) for name in names]
        case _:
            return [(at, _expected(error))]


def _expected(error: ValidationError) -> str:
    """A sentence without its subject. Never repeats what was given: it may be a secret."""
    match error.kind:
        case ValidationErrorKind.Type(types=types):
            return f"must be of type {' or '.join(types)}"
        case ValidationErrorKind.Enum(options=options):
            return f"must be one of {_json(options)}"
        case ValidationErrorKind.Constant(expected_value=value):
            return f"must be {_json(value)}"
        case ValidationErrorKind.Pattern(pattern=pattern):
            return f"must match the pattern {pattern[:200]}"
        case ValidationErrorKind.Format(format=name):
            return f"must have the format {name}"
        case ValidationErrorKind.AnyOf(context=context):
            return _alternatives("must fit at least one of", context)
        case ValidationErrorKind.OneOfNotValid(context=context):
            return _alternatives("must fit one of", context)
        case ValidationErrorKind.OneOfMultipleValid():
            return "fits more than one alternative, where it must fit exactly one"
        case ValidationErrorKind.PropertyNames(error=inner):
            return f"has a property whose name does not fit: it {_expected(inner)}"
        case ValidationErrorKind.FalseSchema():
            return "must not be there"
        case ValidationErrorKind.UniqueItems():
            return "must not have the same item twice"
        case ValidationErrorKind.Not():
            return "must not fit the schema under “not”"
        case kind:
            return _limit(kind)


_LIMITS = {
    "minimum": "must be at least",
    "maximum": "must be at most",
    "exclusiveMinimum": "must be greater than",
    "exclusiveMaximum": "must be less than",
    "multipleOf": "must be a multiple of",
    "minLength": "must have at least",
    "maxLength": "must have at most",
    "minItems": "must have at least",
    "maxItems": "must have at most",
    "minProperties": "must have at least",
    "maxProperties": "must have at most",
    "additionalItems": "must have at most",
}
# Of what: one, and any other number.
_COUNTED = {
    "minLength": ("character", "characters"),
    "maxLength": ("character", "characters"),
    "minItems": ("item", "items"),
    "maxItems": ("item", "items"),
    "minProperties": ("property", "properties"),
    "maxProperties": ("property", "properties"),
    "additionalItems": ("item", "items"),
}


def _limit(kind: ValidationErrorKind) -> str:
    if kind.name not in _LIMITS:
        return f"does not fit the schema's “{kind.name}”"
    limit = kind.multiple_of if isinstance(kind, ValidationErrorKind.MultipleOf) else kind.value
    return _limited(kind.name, limit)


def _limited(name: str, limit: Any) -> str:
    said = f"{_LIMITS[name]} {limit}"
    counted = _COUNTED.get(name)
    return f"{said} {counted[limit != 1]}" if counted else said


def _alternatives(words: str, context: list[list[ValidationError]]) -> str:
    branches = [branch[0] for branch in context if branch]
    said = dict.fromkeys(_relative(error) for error in branches)
    return f"{words}: {'; '.join(islice(said, 5))}"[:1000]


def _relative(error: ValidationError) -> str:
    violation = _violations(error)[0]
    return f"{violation.path} {violation.expected}"


def json_path(steps: Path) -> str:
    return "$" + "".join(_step(step) for step in steps)


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _plain(step) else f"[{_json(step)}]"


def _json(value: Any) -> str:
    text = orjson.dumps(value, default=str).decode()
    return text if len(text) <= 500 else f"{text[:499]}…"
