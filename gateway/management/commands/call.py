"""Ask for a call in an agent's name, from the host's command line."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import Agent
from accounts.tokens import Bearer
from calls.content.answers import Answer
from calls.models import Call
from calls.record.states import State
from core import strict_json
from core.errors import CountersignError
from core.strict_json import Ambiguous
from gateway.call_request import SubmitResult
from gateway.submit import idempotency, messages, sync
from gateway.submit.bearers import speaking_for
from gateway.submit.sync import SyncCallRequest

EXITS = """\
exit codes:
  0  the tool answered
  1  the call could not be asked for, or did not succeed
  2  the arguments of this command are wrong
  3  refused: by policy, by the tool's schema, or because there is no such tool
  4  no outcome yet: it waits for a person or for a worker, and goes on
"""


class Command(BaseCommand):
    help = "Call a tool in an agent's name; a worker runs it, so one must be running."

    def create_parser(self, *args: Any, **options: Any) -> CommandParser:
        parser = super().create_parser(*args, **options)
        parser.epilog = EXITS
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("agent", help="the agent's name")
        parser.add_argument("toolset")
        parser.add_argument("tool", help="as agents see it: server_tool, or server.tool")
        parser.add_argument("arguments", nargs="?", default="{}", help="a JSON object")
        parser.add_argument("--key", default="", help="names this one call, however often asked")
        parser.add_argument("--again", action="store_true", help="meant, although the same ran")
        parser.add_argument("--wait", type=float, default=30, help="seconds (default: 30)")

    def handle(
        self, *, agent: str, toolset: str, tool: str, arguments: str, wait: float, **options: Any
    ) -> None:
        question = SyncCallRequest(
            bearer=_bearer(agent),
            toolset=toolset,
            tool=tool,
            arguments=strict_json.one_line(arguments),
            parsed=_parsed(arguments),
            origin=Call.Origin.COMMAND,
            background=True,
            key=_key(options["key"]),
            allow_duplicate=options["again"],
        )
        try:
            submitted = sync.ask(question, seconds=wait)
        except CountersignError as error:
            raise CommandError(str(error)) from error
        sys.exit(self._report(submitted))

    def _report(self, submitted: SubmitResult) -> int:
        self.stderr.write(f"call {submitted.call_id}")
        if submitted.refusal:
            lines = [submitted.reason, *map(str, submitted.violations)]
            self.stderr.write("\n".join(lines))
            return 3
        for passed in submitted.warnings:
            self.stderr.write(passed.sentence)
        if submitted.answer is None:
            call = Call.objects.get(pk=submitted.call_id)
            self.stderr.write(messages.stands(submitted.state, call.pk, call.fingerprint))
            return 4
        return self._print_answer(submitted.answer)

    def _print_answer(self, answer: Answer) -> int:
        written = answer.result or answer.error
        if written is None:
            self.stderr.write(answer.text)
        else:
            self.stdout.write(written.decode())
        return 0 if answer.state == State.SUCCEEDED else 1


def _key(given: str) -> str:
    try:
        return given and idempotency.checked(given)
    except idempotency.InvalidOption as error:
        raise CommandError(str(error), returncode=2) from error


def _bearer(name: str) -> Bearer:
    """The agent's bearer without a token, for people on the host."""
    agent = Agent.objects.select_related("owner").filter(name=name).first()
    bearer = speaking_for(agent) if agent else None
    if bearer is None:
        raise CommandError(f"There is no enabled agent “{name}”.")
    return bearer


def _parsed(arguments: str) -> Any:
    try:
        return strict_json.loads(arguments.encode())
    except Ambiguous as error:
        raise CommandError(f"The arguments: {error}", returncode=2) from error
