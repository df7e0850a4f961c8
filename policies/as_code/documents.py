"""Policy files: exported, and read into what each of their objects would be."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, NamedTuple

import jsonschema_rs
from django.core.exceptions import ValidationError

from core.english import gettext as _
from core.errors import CountersignError
from policies.as_code import schemas
from policies.as_code.sections import (
    BadMember,
    Plain,
    Section,
    every_section,
    mistakes_of,
)
from policies.as_code.yaml_reader import BadPolicyFile, Path, YamlValue, read_yaml
from policies.as_code.yaml_writer import write_yaml
from registry.schemas import violations

VERSION = 1
SHOWN = 300
MISTAKES_MAX = 50
# Beside the file: editors have no token for the address of ours.
SCHEMA_ADDRESS = "./policy.schema.json"
# By section, the objects that a file has, in their order.
Objects = dict[str, dict[str, Plain]]


class FileMistake(NamedTuple):
    line: int
    path: Path
    sentence: str

    def __str__(self) -> str:
        said = _("Line %(line)d, %(path)s: %(why)s")
        return said % {"line": self.line, "path": dotted(self.path), "why": self.sentence}


class PolicyMistakes(BadPolicyFile):
    """All mistakes that were found in a file."""

    def __init__(self, mistakes: list[FileMistake]) -> None:
        self.mistakes = mistakes
        super().__init__("\n".join(map(str, mistakes)))


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A file that was read. `objects`: as it names them; `wanted`: each as it would be."""

    text: str
    managed_by: str
    wanted: Objects
    # What is there now of what it is about.
    present: Objects


def dotted(path: Path) -> str:
    """For people: rules[3].effect"""
    parts = (f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)
    return "".join(parts).removeprefix(".")[:200] or _("the file")


def schema() -> dict[str, Any]:
    """The JSON Schema of policy files (2020-12)."""
    sections = {one.key: _section_schema(one) for one in every_section()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Countersign policy",
        **schemas.members(
            ("version",),
            version={"const": VERSION},
            managed_by=schemas.text(
                500, "Where this file is. With it, the console shows what it manages read-only."
            ),
            **sections,
        ),
    }


def _section_schema(section: Section) -> dict[str, Any]:
    if section.is_whole:
        about = "All of them, in their order: what is left out is removed."
        return {"type": "array", "items": section.schema(), "description": about}
    about = "Those that it names; what is left out stays as it is."
    return {"type": "object", "additionalProperties": section.schema(), "description": about}


def export(keys: Collection[str] = ()) -> str:
    """A policy file of what is there now. Without credentials, headers and addresses."""
    value: dict[str, Any] = {"version": VERSION}
    for section in every_section():
        if not keys or section.key in keys:
            value[section.key] = _exported(section)
    return write_yaml(value, SCHEMA_ADDRESS)


def _exported(section: Section) -> Any:
    present = section.read(None)
    if section.is_whole:
        return [{"name": name, **section.shown(plain)} for name, plain in present.items()]
    return {name: section.shown(plain) for name, plain in present.items()}


def read_file(text: str) -> PolicyFile:
    """Raises BadPolicyFile."""
    read = read_yaml(text)
    _raise(list(islice(_schema_mistakes(read), MISTAKES_MAX)))
    given = {one.key: read.value[one.key] for one in every_section() if one.key in read.value}
    mistakes: list[FileMistake] = []
    wanted: Objects = {}
    present: Objects = {}
    for section in every_section():
        if section.key in given:
            named = _by_name(section, given[section.key], read, mistakes)
            here = section.read(None if section.is_whole else list(named))
            present[section.key] = here
            wanted[section.key] = _wanted(section, named, here, read, mistakes)
    _raise(mistakes)
    return PolicyFile(text, read.value.get("managed_by") or "", wanted, present)


def present_of(wanted: Mapping[str, Collection[str]]) -> Objects:
    """The present objects that a file is about."""
    return {
        one.key: one.read(None if one.is_whole else list(wanted[one.key]))
        for one in every_section()
        if one.key in wanted
    }


def _raise(mistakes: list[FileMistake]) -> None:
    if mistakes:
        raise PolicyMistakes(sorted(mistakes, key=lambda one: one.line)[:MISTAKES_MAX])


class NamedObject(NamedTuple):
    path: Path
    given: Plain


def _by_name(
    section: Section, given: Any, read: YamlValue, mistakes: list[FileMistake]
) -> dict[str, NamedObject]:
    if not section.is_whole:
        return {name: NamedObject((section.key, name), one or {}) for name, one in given.items()}
    named: dict[str, NamedObject] = {}
    for place, one in enumerate(given):
        path: Path = (section.key, place)
        if one["name"] in named:
            said = _("“%s” stands in the list twice: remove one of them.") % one["name"]
            mistakes.append(FileMistake(read.line(path), path, said))
        named[one["name"]] = NamedObject(path, one)
    return named


def _wanted(
    section: Section,
    named: Mapping[str, NamedObject],
    present: Mapping[str, Plain],
    read: YamlValue,
    mistakes: list[FileMistake],
) -> dict[str, Plain]:
    wanted: dict[str, Plain] = {}
    for name, (path, given) in named.items():
        try:
            wanted[name] = section.normal(name, given, present.get(name))
        except (BadMember, ValidationError, CountersignError) as error:
            for beyond, sentence in mistakes_of(error):
                place = (*path, *beyond)
                mistakes.append(FileMistake(read.line(place), place, sentence))
    return wanted


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema())


def _schema_mistakes(read: YamlValue) -> Iterator[FileMistake]:
    if not isinstance(read.value, dict):
        said = _("A policy file is a map that begins with “version: 1”.")
        yield FileMistake(1, (), said)
        return
    for error in _validator().iter_errors(read.value):
        for path, expected in violations.explain(error):
            yield FileMistake(read.line(path), path, _what_is_right(error, expected))


def _what_is_right(error: jsonschema_rs.ValidationError, expected: str) -> str:
    """Also the names that there are, where a name is unknown."""
    if expected != violations.UNKNOWN:
        return expected[:SHOWN]
    known = _properties(list(error.schema_path)[:-1])
    return _("%(why)s. There are: %(known)s.") % {"why": expected, "known": ", ".join(known)}


def _properties(path: list[str | int]) -> list[str]:
    found: Any = schema()
    for step in path:
        found = found[step]
    return list(found.get("properties", ()))
