"""Strangers' JSON Schemas: which we are willing to check arguments against, and with what.

Regular expressions run in linear time, nothing is fetched, and what a schema unfolds to is
measured before it is ever compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, NoReturn

import jsonschema_rs
import orjson

from core.english import gettext as _
from core.schema_keywords import MANY, NAMED, ONE
from registry.schemas import patterns, recursion

Schema = dict[str, Any]
Where = tuple[Schema, str]

MAX_BYTES = 64 * 1024
MAX_DEPTH = 16
MAX_SUBSCHEMAS = 1_000
MAX_UNFOLDED = 10_000
MAX_PATTERN = 512
# What nobody writes by hand: shorter bounds are worth a note.
LONG_TEXT = 20_000
DIALECTS = {
    "http://json-schema.org/draft-04/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
}
# References that are resolved while validating: their unfolding cannot be measured before.
_DYNAMIC = ("$dynamicRef", "$recursiveRef")
_LINEAR = jsonschema_rs.RegexOptions(size_limit=4 << 20, dfa_size_limit=1 << 20)


class SchemaRejected(Exception):
    """One reason why a schema is not accepted, for people."""


def problem(schema: object) -> str:
    """Why this schema cannot be published, or nothing."""
    try:
        _check(schema)
    except SchemaRejected as unfit:
        return str(unfit)
    return ""


def compiled(schema: Schema) -> jsonschema_rs.Validator:
    """Compiles a schema without problems. Patterns that no linear engine can run are left out, long
    texts are not checked, and members with a default may be missing."""
    schema = _bounded(_with_defaults(schema), keep=True)
    if not any(len(pattern) > MAX_PATTERN for pattern in _all_patterns(schema)):
        with suppress(jsonschema_rs.ValidationError):
            return _compile(schema)
    return _compile(_without(schema, set(unenforced(schema))))


def lengths(schema: Schema) -> tuple[jsonschema_rs.Validator, set[int]] | None:
    """The same without patterns, to be asked first what is wrong; and which limits are ours."""
    limits = {patterns.longest(pattern) for pattern in _own_patterns(schema)}
    bounded = _bounded(_with_defaults(schema), keep=False)
    return (_compile(bounded), limits) if limits else None


def levels(schema: Schema) -> int | None:
    """How deep arguments may nest to be checked against it; None if as deep as any."""
    return recursion.Recursion(schema).levels(MAX_UNFOLDED)


def bounds(schema: Schema) -> dict[str, int]:
    """The longest text for each pattern that is not fit for every text."""
    most = {pattern: patterns.longest(pattern) for pattern in _own_patterns(schema)}
    return {pattern: n for pattern, n in most.items() if n < LONG_TEXT}


def unenforced(schema: Schema) -> list[str]:
    """Patterns that are not checked here, because only a backtracking engine could."""
    return sorted({pattern for pattern in _all_patterns(schema) if not _runs(pattern)})


def subschemas(schema: Schema, path: str = "#") -> Iterator[Where]:
    """Every subschema with its place, the schema itself first. Raises SchemaRejected if endless."""
    waiting: list[tuple[Schema, str, int]] = [(schema, path, 1)]
    seen = 0
    while waiting:
        node, at, depth = waiting.pop()
        seen += 1
        if seen > MAX_SUBSCHEMAS:
            raise SchemaRejected(_("It has more than %d subschemas.") % MAX_SUBSCHEMAS)
        if depth > MAX_DEPTH:
            raise SchemaRejected(
                _("At %(at)s it is nested deeper than %(n)d.") % _at(at, n=MAX_DEPTH)
            )
        yield node, at
        inner = recursion.children(node, at)
        waiting += [(child, place, depth + 1) for _word, _name, child, place in inner]


def _check(schema: object) -> None:
    if not isinstance(schema, dict):
        raise SchemaRejected(_("It is not a JSON object."))
    size = len(orjson.dumps(schema))
    if size > MAX_BYTES:
        raise SchemaRejected(
            _("It has %(size)d bytes; at most %(max)d are accepted.")
            % {"size": size, "max": MAX_BYTES}
        )
    _check_dialect(schema)
    for node, at in subschemas(schema):
        _check_references(node, at)
        _check_names(node, at)
    unfolded = _Unfolding(schema).size(schema, "#")
    try:
        found = recursion.Recursion(schema)
    except recursion.Endless as error:
        raise SchemaRejected(
            _("At %(at)s it refers to itself without going deeper into the value: that has no end.")
            % _at(str(error))
        ) from error
    if found.levels(MAX_UNFOLDED) == 0 if found.is_found else unfolded > MAX_UNFOLDED:
        raise SchemaRejected(_("Its references unfold to more than %d subschemas.") % MAX_UNFOLDED)
    _check_compiles(schema)


def _check_dialect(schema: Schema) -> None:
    dialect = schema.get("$schema")
    if dialect is not None and str(dialect).removesuffix("#") not in DIALECTS:
        raise SchemaRejected(_("Its $schema, %s, is not one that we know.") % str(dialect)[:200])


def _check_references(node: Schema, at: str) -> None:
    for keyword in _DYNAMIC:
        if keyword in node:
            raise SchemaRejected(_("At %(at)s it uses %(keyword)s.") % _at(at, keyword=keyword))
    if at != "#" and isinstance(node.get("$id", node.get("id")), str):
        raise SchemaRejected(_("At %(at)s it changes the base of its references ($id).") % _at(at))
    reference = node.get("$ref", "#")
    if not isinstance(reference, str) or (reference != "#" and not reference.startswith("#/")):
        raise SchemaRejected(
            _("At %(at)s it refers to %(ref)s; only references within it (#/…) are followed.")
            % _at(at, ref=str(reference)[:200])
        )


def _check_names(node: Schema, at: str) -> None:
    named = node.get("patternProperties")
    for pattern in named if isinstance(named, dict) else ():
        if patterns.weight(pattern) > patterns.MOST_OF_NAMES and _runs(pattern):
            raise SchemaRejected(
                _("At %(at)s the pattern %(pattern)s of names counts too far to be checked.")
                % _at(at, pattern=pattern[:200])
            )


def _check_compiles(schema: Schema) -> None:
    try:
        compiled(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        said = getattr(error, "message", None) or str(error)
        place = "/".join(["#", *map(str, getattr(error, "instance_path", []))])
        raise SchemaRejected(_("At %(at)s: %(said)s") % _at(place, said=said[:300])) from error


class _Unfolding:
    """How many schemas there are once every reference is replaced by what it points to, but for
    those that lead back to where they stand (registry/schemas/recursion.py)."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()

    def size(self, node: Schema, at: str, depth: int = 1) -> int:
        known = self._sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in self._open:
            return 0
        if depth > 4 * MAX_DEPTH:
            raise SchemaRejected(_("At %(at)s its references are nested too deeply.") % _at(at))
        self._open.add(id(node))
        own = [(child, place) for _word, _name, child, place in recursion.children(node, at)]
        inner = [*own, *self._target(node, at)]
        total = 1 + sum(self.size(child, place, depth + 1) for child, place in inner)
        self._open.remove(id(node))
        self._sizes[id(node)] = total
        return total

    def _target(self, node: Schema, at: str) -> list[Where]:
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return []
        found = recursion.resolve(self._root, reference)
        if isinstance(found, bool):
            return []
        if not isinstance(found, dict):
            raise SchemaRejected(
                _("At %(at)s it refers to %(ref)s, which is not in it.")
                % _at(at, ref=reference[:200])
            )
        # What a reference points to may stand where no schema was looked for.
        _check_references(found, reference)
        return [(found, reference)]


def _all_patterns(schema: Schema) -> Iterator[str]:
    return (pattern for node, _at in subschemas(schema) for pattern in _patterns(node))


def _own_patterns(schema: Schema) -> Iterator[str]:
    """Patterns for texts, not for names."""
    for node, _at in subschemas(schema):
        if isinstance(pattern := node.get("pattern"), str):
            yield pattern


def _patterns(node: Schema) -> Iterator[str]:
    if isinstance(pattern := node.get("pattern"), str):
        yield pattern
    if isinstance(properties := node.get("patternProperties"), dict):
        yield from properties


def _runs(pattern: str) -> bool:
    if len(pattern) > MAX_PATTERN:
        return False
    try:
        _compile({"pattern": pattern})
    except jsonschema_rs.ValidationError:
        return False
    return True


def without_keyword(schema: Schema, keyword: str) -> Any:
    return _copy(schema, lambda node: {k: v for k, v in node.items() if k != keyword})


def _without(schema: Schema, left_out: set[str]) -> Any:
    def own(node: Schema) -> Schema:
        names = node.get("patternProperties")
        kept = {k: v for k, v in node.items() if k != "pattern" or v not in left_out}
        if isinstance(names, dict):
            kept["patternProperties"] = {n: v for n, v in names.items() if n not in left_out}
        return kept

    return _copy(schema, own)


def _bounded(schema: Schema, *, keep: bool) -> Any:
    """Adds a maxLength beside every pattern: the engine checks lengths before patterns."""

    def own(node: Schema) -> Schema:
        if not isinstance(pattern := node.get("pattern"), str):
            return node
        most, limit = node.get("maxLength"), patterns.longest(pattern)
        if isinstance(most, int):
            limit = min(most, limit)
        return {k: v for k, v in node.items() if keep or k != "pattern"} | {"maxLength": limit}

    return _copy(schema, own)


def _with_defaults(schema: Schema) -> Any:
    """Drops properties with a default from `required`: servers fill them in (the TypeScript SDK
    lists the schema after filling in, where they are always there)."""

    def own(node: Schema) -> Schema:
        required = node.get("required")
        if not isinstance(required, list):
            return node
        return node | {
            "required": [name for name in required if not has_default(node, name, schema)]
        }

    # There, requiring less would refuse more.
    return _copy(schema, own, but={"if", "not"})


def has_default(node: Schema, name: object, root: Schema) -> bool:
    """Whether this property of the node has a default of its own or by its reference."""
    properties = node.get("properties")
    part = properties.get(name) if isinstance(properties, dict) else None
    if not isinstance(part, dict):
        return False
    referred = recursion.target(root, part)
    return "default" in part or (isinstance(referred, dict) and "default" in referred)


def _copy(node: Any, own: Callable[[Schema], Schema], but: Collection[str] = frozenset()) -> Any:
    """A copy with every subschema mapped by `own`, except in the keywords `but`; data inside (enum,
    default) stays as it is."""
    if isinstance(node, list):
        return [_copy(child, own, but) for child in node]
    if not isinstance(node, dict):
        return node
    made = own(node)
    for keyword, value in made.items():
        if keyword in NAMED and isinstance(value, dict):
            made = made | {keyword: {name: _copy(part, own, but) for name, part in value.items()}}
        elif (keyword in ONE or keyword in MANY) and keyword not in but:
            made = made | {keyword: _copy(value, own, but)}
    return made


def _compile(schema: Schema) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(schema, retriever=_refuse, pattern_options=_LINEAR)


def _refuse(uri: str) -> NoReturn:
    raise ValueError("nothing is fetched")


def _at(at: str, **more: object) -> Mapping[str, object]:
    return {"at": at[:200], **more}
