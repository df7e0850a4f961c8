"""Which rule decides a call, and which others covered it or came close."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Agent
from core import strict_json
from core.strict_json import Ambiguous
from policies import decide
from policies.decide import Explanation, Heard, Subject
from registry import published
from registry.models import Tool
from registry.published import PublishedTool


class Command(BaseCommand):
    help = "Say what rules make of a call, and why. Nothing is called and nothing recorded."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", help="its name")
        parser.add_argument("tool", help="as agents name it: mailer.send_mail")
        parser.add_argument("arguments", nargs="?", default="{}", help="JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        agent = _agent(options["agent"])
        tool = _tool(options["tool"])
        subject = _subject(agent, tool, options["arguments"].encode())
        self.stdout.write("\n".join(_lines(decide.explain(decide.load(), subject))))


def _agent(name: str) -> Agent:
    agent = Agent.objects.select_related("owner").filter(name=name).first()
    if agent is None:
        raise CommandError(f"There is no agent “{name}”.")
    return agent


def _tool(exposed_name: str) -> PublishedTool:
    row = Tool.objects.filter(exposed_name=exposed_name).first()
    tool = published.one(row.pk) if row else None
    if tool is None:
        raise CommandError(f"No tool is published as “{exposed_name}”.")
    return tool


def _subject(agent: Agent, tool: PublishedTool, text: bytes) -> Subject:
    try:
        arguments = strict_json.loads(text)
    except Ambiguous as error:
        raise CommandError(f"The arguments: {error}") from error
    return Subject(
        agent_id=agent.pk,
        agent=agent.name,
        groups=frozenset(agent.owner.groups.values_list("name", flat=True)),
        definition_id=tool.definition_id,
        server=tool.server_slug,
        tool=tool.name,
        hints=tool.hints,
        owner=agent.owner.username,
        arguments=arguments,
        size=len(text),
    )


def _lines(explanation: Explanation) -> list[str]:
    decision = explanation.decision
    lines = [f"{decision.effect}: {decision.reason}"]
    if decision.would:
        would = decision.would
        lines.append(f"Watched rule “{would['rule']}” would make it {would['effect']}.")
    return lines + [f"  {_line(heard)}" for heard in explanation.heard]


def _line(heard: Heard) -> str:
    rule = heard.rule
    name = f"{rule.effect} “{rule.name}”" + (" (only watched)" if rule.shadow else "")
    if heard.verdict:
        return f"{name}: covers it; says {heard.verdict.effect}"
    if heard.gaps:
        return f"{name}: not for this, it is for {heard.gaps[0]}"
    return f"{name}: its condition does not hold"
