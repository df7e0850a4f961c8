import json
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import Model

from accounts.models import Agent
from core.errors import CountersignError
from registry import services
from registry.models import OwnTool, RegistryReaders, Separator, Server, Tool, Toolset
from registry.publishing import override_service, published_catalogue
from registry.publishing.tool_lists import FORMATS, tool_list

Verb = Callable[..., None]
# Option, what it names and by which column, and what is done with it.
PARTS: list[tuple[str, type[Model], str, Verb]] = [
    ("server", Server, "slug", services.add_server),
    ("tool", Tool, "exposed_name", services.add_tool),
    ("agent", Agent, "name", services.assign),
    ("without_server", Server, "slug", services.remove_server),
    ("without_tool", Tool, "exposed_name", services.remove_tool),
    ("without_agent", Agent, "name", services.unassign),
]
# Option, and which word of a tool it sets for this toolset's agents.
SHOWN = {"rename": "name", "entitle": "title", "describe": "description", "fix": "pinned"}


class Command(BaseCommand):
    help = "Make a toolset, say what is in it and which agents may use it; then show it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--title", default="")
        told = "until an agent that waits for people is answered; 0: as everywhere"
        parser.add_argument("--hold", type=int, metavar="SECONDS", help=told)
        told = "agents search for its tools (yes), or get the list of them (no)"
        parser.add_argument("--search", choices=("yes", "no"), help=told)
        told = "users may sign in their own agents (yes), or agents come with tokens only (no)"
        parser.add_argument("--sign-in", choices=("yes", "no"), help=told)
        told = "who reads its servers as an MCP registry"
        parser.add_argument("--registry", choices=RegistryReaders.values, help=told)
        told = "in agents' names, between server and tool (default: _)"
        parser.add_argument("--separator", choices=Separator.values, help=told)
        for option, *_ in PARTS:
            flag = f"--{option.replace('_', '-')}"
            parser.add_argument(flag, action="append", default=[], metavar="NAME")
        for flag in ("--own-tool", "--without-own-tool"):
            told = "for own calls: " + ", ".join(OwnTool.values)
            parser.add_argument(flag, action="append", default=[], metavar="NAME", help=told)
        told = "write its tools as a model's API takes them, and change nothing"
        parser.add_argument("--format", choices=FORMATS, help=told)
        for option, field in SHOWN.items():
            told = f"the tool's {field} for agents of this toolset; empty: as its server has it"
            parser.add_argument(
                f"--{option}", action="append", default=[], metavar="TOOL=…", help=told
            )

    def handle(self, **options: Any) -> None:
        if options["format"]:
            self._write_tools(options["name"], options["format"])
            return
        with transaction.atomic():
            toolset = self._set(options)
        # Whoever reads only the beginning of it (`| head`) has changed all the same.
        self._show(toolset)

    def _write_tools(self, slug: str, form: str) -> None:
        toolset = published_catalogue.load().toolset(slug)
        if toolset is None:
            raise CommandError(f"There is no toolset named {slug}.")
        found = tool_list(toolset, form)
        self.stdout.write(json.dumps(found.tools, indent=2, ensure_ascii=False))
        for lost in found.losses:
            self.stderr.write(": ".join(text for text in lost.values() if text))

    def _set(self, options: dict[str, Any]) -> Toolset:
        toolset = self._toolset(options["name"], options["title"])
        for option, model, column, verb in PARTS:
            for name in options[option]:
                verb(toolset, _named(model, column, name), by=None)
        if options["hold"] is not None:
            self._set_hold(toolset, options["hold"] or None)
        if options["search"]:
            services.set_search_mode(toolset, options["search"] == "yes", by=None)
        if options["sign_in"]:
            services.set_agent_sign_in(toolset, options["sign_in"] == "yes", by=None)
        if options["registry"]:
            services.set_registry_readers(toolset, options["registry"], by=None)
        if options["separator"]:
            services.set_separator(toolset, options["separator"], by=None)
        self._set_own_tools(toolset, set(options["own_tool"]), set(options["without_own_tool"]))
        for option, field in SHOWN.items():
            for given in options[option]:
                _say(toolset, field, given)
        return toolset

    def _set_hold(self, toolset: Toolset, seconds: int | None) -> None:
        try:
            services.set_hold(toolset, seconds, by=None)
        except CountersignError as error:
            raise CommandError(str(error)) from error

    def _set_own_tools(self, toolset: Toolset, more: set[str], without: set[str]) -> None:
        try:
            if unknown := without - set(OwnTool.values):
                services.set_own_tools(toolset, unknown, by=None)
            wanted = (set(toolset.own_tools) | more) - without
            services.set_own_tools(toolset, wanted, by=None)
        except CountersignError as error:
            raise CommandError(str(error)) from error

    def _toolset(self, name: str, title: str) -> Toolset:
        known = Toolset.objects.filter(slug=name).first()
        try:
            return known or services.create_toolset(name, title=title, by=None)
        except CountersignError as error:
            raise CommandError(str(error)) from error

    def _show(self, toolset: Toolset) -> None:
        for kind in ("servers", "tools", "agents"):
            names = ", ".join(map(str, getattr(toolset, kind).all()))
            self.stdout.write(f"{kind}: {names or '-'}")
        self.stdout.write(f"own tools: {', '.join(toolset.own_tools) or '-'}")
        self.stdout.write(f"separator: {toolset.separator}")
        self.stdout.write(f"search: {'yes' if toolset.search_mode else 'no'}")
        self.stdout.write(f"sign-in of agents: {'yes' if toolset.agent_sign_in else 'no'}")
        self.stdout.write(f"readers of the registry: {toolset.registry_readers}")
        if toolset.hold_s:
            self.stdout.write(f"hold: {toolset.hold_s} s")
        self._show_doubled(toolset)
        for said in toolset.shown_tools.select_related("tool").order_by("tool__exposed_name"):
            words = {field: getattr(said, field) for field in SHOWN.values()}
            told = ", ".join(f"{field} {text}" for field, text in words.items() if text)
            self.stdout.write(f"{said.tool.exposed_name}: {told}")

    def _show_doubled(self, toolset: Toolset) -> None:
        names = override_service.names_of(toolset)
        for tool in override_service.offered_of(toolset).filter(pk__in=names.doubled):
            told = names.names[tool.pk] or "left out"
            self.stdout.write(f"{tool}: another tool would have the same name; agents see {told}")


def _say(toolset: Toolset, field: str, given: str) -> None:
    name, equals, text = given.partition("=")
    if not equals:
        raise CommandError(f"Write TOOL=…, not {given}.")
    tool = _named(Tool, "exposed_name", name)
    assert isinstance(tool, Tool)
    said = toolset.shown_tools.filter(tool=tool).values(*SHOWN.values()).first() or {}
    try:
        override_service.show(toolset, tool, by=None, **{**said, field: text})
    except override_service.OverrideRefused as error:
        raise CommandError(f"{name}: {error}") from error


def _named(model: type[Model], column: str, name: str) -> Model:
    found = model._default_manager.filter(**{column: name}).first()
    if found is None:
        raise CommandError(f"There is no {model._meta.verbose_name} named {name}.")
    return found
