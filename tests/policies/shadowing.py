"""What the list of rules says of those that never matter."""

from collections.abc import Iterable

from policies.coverage import covered_tools, shadows
from policies.models import Rule


def shadowed(rules: Iterable[Rule]) -> dict[int, Rule]:
    """By rule: another that decides wherever it would, whatever will be published."""
    known = list(rules)
    found = zip(known, shadows(known, covered_tools(known)), strict=True)
    return {
        rule.pk: of_rule.whole.other
        for rule, of_rule in found
        if of_rule.whole and of_rule.whole.always
    }
