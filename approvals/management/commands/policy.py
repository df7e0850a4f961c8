"""Policy as code: export, validate, diff, plan and apply a policy file.

Exit codes: 0 nothing to change, 2 changes, 1 an error.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

import orjson
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from accounts.relying_party import expected_origins
from approvals.policy_plans import applying, planning, summaries
from approvals.policy_plans.planning import NothingToPlan
from core.errors import CountersignError
from core.text import revealed
from policies.as_code import documents
from policies.as_code.differences import PolicyChange, all_changes
from policies.as_code.documents import PolicyFile
from policies.as_code.yaml_reader import MAX_BYTES
from policies.models import PolicyPlan

CHANGES = 2


class _Parser(CommandParser):
    def error(self, message: str) -> NoReturn:
        """2 says that there are changes."""
        if not self.called_from_command_line:
            super().error(message)
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {message}\n")


class Command(BaseCommand):
    help = (
        "Export, validate, compare, plan and apply a policy file. "
        "Exit code 0: nothing to change; 2: changes; 1: an error."
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.__class__ = _Parser
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        export = verbs.add_parser("export", help="write what is there now as a policy file")
        export.add_argument("--output", type=Path, help="a file in place of the output")
        verbs.add_parser("schema", help="write the JSON Schema of policy files")
        for verb, about in (
            ("validate", "check a file against its schema and what is there"),
            ("diff", "say what a file would change"),
        ):
            _file(verbs.add_parser(verb, help=about))
        plan = _file(
            verbs.add_parser("plan", help="say what it would have done, and keep the plan")
        )
        plan.add_argument("--origin", default="", help="the pull request or commit")
        plan.add_argument("--calls", type=int, default=planning.CALLS, help="replay about so many")
        plan.add_argument("--markdown", type=Path, help="write a summary here")
        plan.add_argument("--json", action="store_true", help="the plan as JSON")
        apply = verbs.add_parser("apply", help="apply a plan that was confirmed in the console")
        apply.add_argument("plan", help="its digest; with --as-owner, the file")
        apply.add_argument(
            "--as-owner", action="store_true", help="without confirmation: the audit log says so"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            code = getattr(self, f"_{options['verb']}")(options)
        except CountersignError as error:
            raise CommandError(str(error)) from error
        if code:
            sys.exit(code)

    def _export(self, options: dict[str, Any]) -> int:
        text = documents.export()
        if options["output"]:
            options["output"].write_text(text)
        else:
            self.stdout.write(text, ending="")
        return 0

    def _schema(self, options: dict[str, Any]) -> int:
        self.stdout.write(orjson.dumps(documents.schema(), option=orjson.OPT_INDENT_2).decode())
        return 0

    def _validate(self, options: dict[str, Any]) -> int:
        _read(options)
        self.stdout.write("The file is valid.")
        return 0

    def _diff(self, options: dict[str, Any]) -> int:
        found = all_changes(_read(options))
        for change in found:
            self._say(change)
        if not found:
            self.stdout.write("The file changes nothing.")
        return CHANGES if found else 0

    def _plan(self, options: dict[str, Any]) -> int:
        try:
            plan = planning.make_plan(
                _text(options["file"]),
                by=None,
                origin=options["origin"],
                calls=max(1, options["calls"]),
            )
        except NothingToPlan as nothing:
            self.stdout.write(str(nothing))
            return 0
        summary = summaries.markdown(plan, address_of(plan))
        if options["markdown"]:
            options["markdown"].write_text(summary)
        self.stdout.write(_json(plan) if options["json"] else summary)
        return CHANGES

    def _apply(self, options: dict[str, Any]) -> int:
        if options["as_owner"]:
            plan = applying.apply_as_owner(_text(Path(options["plan"])))
        else:
            plan = applying.apply_plan(options["plan"], by=None)
        changes = "1 change" if len(plan.changes) == 1 else f"{len(plan.changes):,} changes"
        self.stdout.write(f"Applied: {changes} of plan {plan.digest}.")
        return 0

    def _say(self, change: PolicyChange) -> None:
        members = f" ({', '.join(change.members)})" if change.kind == "changed" else ""
        self.stdout.write(f"{change.kind}: {change.section} “{revealed(change.name)}”{members}")


def _file(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("file", type=Path, help="policy.yaml")
    return parser


def _read(options: dict[str, Any]) -> PolicyFile:
    return documents.read_file(_text(options["file"]))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: {error}") from error


def _json(plan: PolicyPlan) -> str:
    shown = {"digest": plan.digest, "changes": plan.changes, "result": plan.result}
    return orjson.dumps(shown, option=orjson.OPT_INDENT_2).decode()


def address_of(plan: PolicyPlan) -> str:
    return expected_origins()[0] + reverse("approvals:policy_plan", args=[plan.digest])
