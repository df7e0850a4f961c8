"""Which rule decides a call, and which others covered it or came close."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from policies.decide import Explanation, RuleEvaluation
from policies.flow import Flow
from policies.limits.explained import LimitEvaluation
from policies.limits.words import measure
from policies.models import Effect
from policies.simulate import SimulationRefused, suppose
from policies.thresholds import DEFAULT


class Command(BaseCommand):
    help = "Say what rules make of a call, and why. Nothing is called and nothing recorded."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", help="its name")
        parser.add_argument("tool", help="as agents name it: mailer.send_mail")
        parser.add_argument("arguments", nargs="?", default="{}", help="JSON")
        parser.add_argument("--toolset", default="", help="for limits counted for each toolset")

        parser.add_argument(
            "--token-group",
            action="append",
            default=[],
            help="a group in the agent's token, as rules name it; may be repeated",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            explained = suppose(
                options["agent"],
                options["tool"],
                options["arguments"],
                toolset=options["toolset"],
                token_groups=options["token_group"],
            )
        except SimulationRefused as error:
            raise CommandError(str(error)) from error
        self.stdout.write("\n".join(_lines(explained)))


def _lines(explanation: Explanation) -> list[str]:
    decision = explanation.decision
    lines = [f"{decision.effect}: {decision.reason}"]
    if explanation.limit_effect:
        lines.append(f"A limit would make it {explanation.limit_effect}.")
    if decision.shadow_effect:
        would = decision.shadow_effect
        who = f": {would['who']}" if "who" in would else ""
        lines.append(f"Watched rule “{would['rule']}” would make it {would['effect']}{who}.")
    if decision.effect == Effect.ASK and decision.thresholds != DEFAULT:
        lines.append(f"Decided by: {decision.who}")
    if explanation.unmet:
        lines.append(f"Nobody can approve it. {explanation.unmet}")
    for heard in explanation.heard:
        lines.append(f"  {_line(heard)}")
        lines += [f"    {path} = {value}" for path, value in heard.shown]
        lines += [f"    demands: {sentence}" for sentence in heard.demands]
    lines += [f"  {_limit_line(found)}" for found in explanation.limits]
    lines += [f"  results: {sentence}" for sentence in explanation.results]
    return lines + list(_flow_lines(explanation))


def _flow_lines(explanation: Explanation) -> Iterator[str]:
    if explanation.labels:
        yield f"  labels: {', '.join(explanation.labels)}"
    flow = explanation.flow or Flow()
    for name, source in (("untrusted", flow.untrusted), ("sensitive", flow.sensitive)):
        if source:
            tool = source.tool or "more calls than are looked at"
            yield f"  {name} source at {source.at:%Y-%m-%d %H:%M:%S}: {tool}"


def _limit_line(found: LimitEvaluation) -> str:
    limit = found.limit
    name = f"limit “{limit.name}” ({measure(limit)})" + (" (only watched)" if limit.shadow else "")
    if found.lacks_cost:
        return f"{name}: {limit.lacks_cost}"
    if found.usage is None:
        return f"{name}: covers it; counted for each toolset"
    would = f"would be reached: {limit.effect}" if found.is_over else "leaves room"
    return f"{name}: {would}; {found.usage.label}: {found.usage.said}"


def _line(heard: RuleEvaluation) -> str:
    rule = heard.rule
    name = f"{rule.effect} “{rule.name}”" + (" (only watched)" if rule.shadow else "")
    if heard.verdict:
        return f"{name}: covers it; says {heard.verdict.effect}"
    if heard.gaps:
        return f"{name}: not for this, it is for {heard.gaps[0]}"
    return f"{name}: its condition does not hold"
