"""Whether the outcome of a call is what a saved case expects, in sentences that never repeat the
result: more people read them than may read results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson
import rfc8785
from jsonpath import JSONPath, JSONPathEnvironment, JSONPathError

from calls.content.large_results import body_of
from calls.models import Call, Result
from calls.record.states import State
from core import strict_json
from core.english import gettext as _
from core.errors import CountersignError
from gateway.models import SavedCase
from registry.publishing.published_tools import ParsedDefinition

VALUES_MAX, PATH_MAX = 20, 300
# RFC 9535 and none of the library's own extensions.
_paths = JSONPathEnvironment(strict=True)


class InvalidExpectation(CountersignError):
    """A line that expects nothing that could be looked at; says which and why."""


class ExpectedValue(NamedTuple):
    written: str
    path: JSONPath
    value: Any


class CheckedExpectation(NamedTuple):
    """One expectation as a sentence; `problem`: why it is not met, "" where it is."""

    expected: str
    problem: str = ""


def parse_values(text: str) -> list[ExpectedValue]:
    """Lines such as `$.items[0].name = "Ada"`. Raises InvalidExpectation."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > VALUES_MAX:
        raise InvalidExpectation(_("Give at most %d values.") % VALUES_MAX)
    return [_parse_line(line) for line in lines]


def _parse_line(line: str) -> ExpectedValue:
    """At the first "=" that has a JSONPath before it: names in brackets may hold one."""
    at = line.find("=")
    problem = _("there is no “=”")
    while at >= 0:
        try:
            written = line[:at].strip()
            path = _parse_path(written)
        except (JSONPathError, ValueError) as error:
            problem = str(error).partition("\n")[0]
            at = line.find("=", at + 1)
            continue
        return ExpectedValue(written, path, _parse_value(line, line[at + 1 :]))
    raise InvalidExpectation(_("“%(line)s”: %(problem)s.") % {"line": line, "problem": problem})


def _parse_path(written: str) -> JSONPath:
    if len(written) > PATH_MAX:
        raise ValueError(_("the path is too long"))
    path = _paths.compile(written)
    if not isinstance(path, JSONPath) or not path.singular_query():
        # One place, so that "equals" means one thing; and no filter of anybody's runs for long.
        raise ValueError(_("the path has to lead to one place, by names and numbers alone"))
    return path


def _parse_value(line: str, written: str) -> Any:
    try:
        return strict_json.loads(written.strip().encode())
    except strict_json.Ambiguous as error:
        said = _("“%(line)s”: after “=” stands no JSON value (%(problem)s)")
        raise InvalidExpectation(said % {"line": line, "problem": error}) from error


def check(case: SavedCase, call: Call) -> list[CheckedExpectation]:
    """`call` has ended, after it was sent."""
    found = Result.objects.filter(pk=call.pk).first()
    body = body_of(found) if found else None
    result = _read(body) if found and found.kind == "result" else None
    checks = [_check_outcome(case, call, found)]
    if case.fits_schema:
        checks.append(_check_schema(call, result))
    if case.contains:
        checks.append(_check_text(case.contains, result, body or b""))
    if case.values:
        checks += _check_values(case.values, result)
    if case.within_ms is not None:
        checks.append(_check_duration(case.within_ms, call))
    return checks


def _read(body: bytes | None) -> Any:
    try:
        return orjson.loads(body or b"")
    except orjson.JSONDecodeError:
        return None


def _check_outcome(case: SavedCase, call: Call, found: Result | None) -> CheckedExpectation:
    if case.outcome == SavedCase.Outcome.ERROR:
        # Or with an error of the protocol, which is an answer of the server too.
        met = call.state == State.TOOL_ERROR or (found is not None and found.kind == "error")
        expected = _("It ends with a tool error.")
    else:
        met, expected = call.state == State.SUCCEEDED, _("It ends with a result.")
    return CheckedExpectation(expected, "" if met else call.outcome or _ended(call))


def _ended(call: Call) -> str:
    if call.state == State.SUCCEEDED:
        return _("It ended with a result.")
    if call.state == State.TOOL_ERROR:
        return _("It ended with a tool error.")
    return _("Its outcome is another one.")


def _check_schema(call: Call, result: Any) -> CheckedExpectation:
    expected = _("The result fits the output schema.")
    content = call.definition.content if call.definition else {}
    if "outputSchema" not in content:
        return CheckedExpectation(expected, _("The tool has no output schema."))
    violations = ParsedDefinition(orjson.dumps(content)).result_violations(result)
    return CheckedExpectation(expected, "; ".join(map(str, violations[:5])))


def _check_text(text: str, result: Any, body: bytes) -> CheckedExpectation:
    expected = _("The result contains “%s”.") % text
    texts = [*_texts(result), body.decode(errors="replace")]
    met = any(text in one for one in texts)
    return CheckedExpectation(expected, "" if met else _("It does not stand there."))


def _texts(result: Any) -> Iterator[str]:
    """The strings of a result, as a reader sees them and not as JSON escapes them."""
    if isinstance(result, str):
        yield result
    elif isinstance(result, dict | list):
        for member in result.values() if isinstance(result, dict) else result:
            yield from _texts(member)


def _check_values(lines: str, result: Any) -> Iterator[CheckedExpectation]:
    document = document_of(result)
    for written, path, value in parse_values(lines):
        shown = orjson.dumps(value).decode()
        expected = _("Expected at %(path)s: %(value)s.") % {"path": written, "value": shown}
        found = path.match(document) if isinstance(document, dict | list) else None
        if found is None:
            yield CheckedExpectation(expected, _("There is nothing at this path."))
        else:
            yield CheckedExpectation(
                expected, "" if _is_equal(found.obj, value) else _("Found: another value.")
            )


def document_of(result: Any) -> Any:
    """The root of paths: the structured content, else JSON in the only text, else all of it."""
    if not isinstance(result, dict) or "structuredContent" in result:
        return result.get("structuredContent") if isinstance(result, dict) else result
    match result.get("content"):
        case [{"type": "text", "text": str(text)}]:
            parsed = _read(text.encode(errors="replace"))
            return result if parsed is None else parsed
    return result


def _is_equal(found: Any, value: Any) -> bool:
    """Whether two JSON values are one: 1 and 1.0 are, 1 and true are not."""
    canonical: Callable[[Any], bytes] = rfc8785.dumps
    try:
        return canonical(found) == canonical(value)
    except rfc8785.CanonicalizationError:
        return False


def _check_duration(within_ms: int, call: Call) -> CheckedExpectation:
    expected = _("It takes at most %d ms.") % within_ms
    took = call.duration_s
    if took is None:
        return CheckedExpectation(expected, _("It was not measured."))
    met = took * 1000 <= within_ms
    return CheckedExpectation(expected, "" if met else _("It took %d ms.") % round(took * 1000))
