"""The messages of the YAML parser, which pages show in the reader's language
(core/messages/localizing.py)."""

import yaml

from core.kept_english import gettext as _

_MESSAGES = frozenset(
    (
        _("block sequence entries are not allowed in this context"),
        _("control characters are not allowed"),
        _("could not find expected ':'"),
        _("could not find expected directive name"),
        _("did not find expected ',' or ']'"),
        _("did not find expected ',' or '}'"),
        _("did not find expected '-' indicator"),
        _("did not find expected <document start>"),
        _("did not find expected alphabetic or numeric character"),
        _("did not find expected comment or line break"),
        _("did not find expected hexdecimal number"),
        _("did not find expected key"),
        _("did not find expected node content"),
        _("did not find expected whitespace or line break"),
        _("found a tab character that violates indentation"),
        _("found a tab character where an indentation space is expected"),
        _("found an indentation indicator equal to 0"),
        _("found character that cannot start any token"),
        _("found undefined tag handle"),
        _("found unexpected ':'"),
        _("found unexpected document indicator"),
        _("found unexpected end of stream"),
        _("found unknown directive name"),
        _("found unknown escape character"),
        _("mapping keys are not allowed in this context"),
        _("mapping values are not allowed in this context"),
    )
)


def line_of(error: yaml.YAMLError) -> int:
    mark = getattr(error, "problem_mark", None)
    return int(mark.line) + 1 if mark else 1


def describe(error: yaml.YAMLError) -> str:
    """A clause without a dot."""
    said = getattr(error, "problem", None) or getattr(error, "reason", None)
    # The parser's own limit, which some of its versions reach before ours.
    if said == "exceeded maximum nesting depth":
        return _("it is nested too deeply")
    return said if said in _MESSAGES else _("it cannot be parsed")
