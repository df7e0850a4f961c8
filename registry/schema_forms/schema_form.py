"""Arguments of a tool as a form to fill in: fields where the schema allows, raw JSON where not.

A page includes ui/schema_form.html with a SchemaForm inside its own <form>, reads what comes back
with `posted`, and draws it again as long as `redraw` says so or `document` is None.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from django.utils.translation import gettext as _

from core import exact_json, strict_json
from core.exact_json import ABSENT
from registry.schema_forms.building import Builder, TooMany
from registry.schema_forms.fields import Field
from registry.schema_forms.shapes import GROUP
from registry.schema_forms.sources import FormValue, PostedForm, Source
from registry.schema_forms.violation_sentences import sentence
from registry.schemas.violations import Violation

Schema = dict[str, Any]

FORM, JSON = "form", "json"
# Buttons that change the form alone.
REDRAWN = ("add", "remove", "vary")


@dataclass(slots=True)
class SchemaForm:
    """`document`: the arguments as they would be sent; None while they cannot be read."""

    schema: Schema
    # None in raw mode.
    root: Field | None = None
    raw: str = "{}"
    # Why there are no fields, for people; empty when raw JSON was chosen.
    why_raw: str = ""
    document: bytes | None = None
    errors: list[str] = field(default_factory=list)
    # A button was pressed that only changes the form: nothing is to be done yet.
    redraw: bool = False

    @property
    def mode(self) -> str:
        return JSON if self.root is None else FORM

    @property
    def tag(self) -> str:
        """Fields are named by their places in the schema: another schema is another form."""
        return _tag(self.schema)

    @property
    def value(self) -> Any:
        """The arguments as every other part of the house reads them."""
        return strict_json.loads(self.document) if self.document is not None else None

    @property
    def ok(self) -> bool:
        every = self.root.every() if self.root else ()
        return not self.errors and not any(found.errors for found in every)

    def show(self, violations: Iterable[Violation]) -> None:
        """Each at its field, or at the nearest one around it."""
        fields = {found.json_path: found for found in self.root.every()} if self.root else {}
        for violation in violations:
            near = _nearest(fields, violation.path)
            errors = near.errors if near and near.path else self.errors
            errors.append(sentence(violation))


def filled(schema: Schema, document: bytes = b"{}") -> SchemaForm:
    """A form that holds `document`, which parsed before."""
    value = exact_json.loads(document)
    root, why = _drawn(schema, FormValue(value))
    return SchemaForm(schema, root, exact_json.pretty(value), why, document)


def posted(schema: Schema, data: Mapping[str, str]) -> SchemaForm:
    """Reads the form as the browser posted it."""
    verb, _space, key = data.get("do", "").partition(" ")
    if data.get("schema", "") != _tag(schema):
        form = filled(schema)
        form.errors.append(_("The tool's definition changed. Fill in the form again."))
        form.document = None
        return form
    if data.get("mode") == JSON:
        return _from_json(schema, data.get("raw", ""), leave=verb == FORM)
    return _from_fields(schema, data, verb, key)


def _from_json(schema: Schema, raw: str, *, leave: bool) -> SchemaForm:
    # A line break can only stand between tokens: inside strings JSON forbids it.
    written = raw.replace("\r\n", "\n")
    form = SchemaForm(schema, None, written, redraw=leave)
    try:
        value = exact_json.loads(written.strip().encode())
    except strict_json.Ambiguous as error:
        form.errors.append(str(error))
        return form
    form.document = written.strip().encode()
    if leave:
        form.root, form.why_raw = _drawn(schema, FormValue(value))
    return form


def _from_fields(schema: Schema, data: Mapping[str, str], verb: str, key: str) -> SchemaForm:
    root, why = _drawn(schema, PostedForm({name: data[name] for name in data}, "f", (verb, key)))
    if root is None:
        return SchemaForm(schema, None, "{}", why, errors=[why])
    form = SchemaForm(schema, root, redraw=verb in (*REDRAWN, JSON))
    if verb == "add":
        _mark_new(root, key)
    if verb in REDRAWN:
        return form
    value = root.value()
    if value is not ABSENT and form.ok:
        form.document = exact_json.dumps(value).encode()
        form.raw = exact_json.pretty(value)
        if verb == JSON:
            form.root = None
    return form


def _drawn(schema: Schema, source: Source) -> tuple[Field | None, str]:
    try:
        root = Builder(schema).whole(source)
    except TooMany:
        return None, _("There are too many arguments for a form.")
    if root.kind != GROUP:
        return None, _("The schema names no arguments that a form could ask for.")
    return root, ""


def _mark_new(root: Field, key: str) -> None:
    of = next((found for found in root.every() if found.key == key), None)
    if of is not None and of.children:
        first = next(
            (f for f in of.children[-1].every() if f.kind not in ("group", "list", "variant")), None
        )
        (first or of.children[-1]).is_new = True


def _nearest(fields: Mapping[str, Field], path: str) -> Field | None:
    around = [at for at in fields if path == at or path.startswith((f"{at}.", f"{at}["))]
    return fields[max(around, key=len)] if around else None


def _tag(schema: Schema) -> str:
    return hashlib.sha256(orjson.dumps(schema)).hexdigest()[:16]
