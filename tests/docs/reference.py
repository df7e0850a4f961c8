"""Reference pages made from the code: `python -m tests.docs.reference --write`."""

import argparse
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

# Its tables are read after Django is ready.
from django.core.management import get_commands, load_command_class  # noqa: E402
from django.core.management.base import BaseCommand  # noqa: E402
from django.utils.translation import gettext, override  # noqa: E402

from accounts.roles import PERMISSIONS, Role  # noqa: E402
from calls.record.refusal import RefusalDetails, of_policy, of_state  # noqa: E402
from calls.record.states import FIRST, LIVE, MOVES, Executed, State  # noqa: E402
from client import generate  # noqa: E402
from core import actions  # noqa: E402
from gateway.protocol import revisions  # noqa: E402
from gateway.rest.v1 import urls  # noqa: E402
from tests.docs import reference_words as words  # noqa: E402
from tests.docs.translations import CHINESE, ENGLISH, ROOT, mark  # noqa: E402

PACKAGES = (
    "accounts", "approvals", "audit", "calls", "config", "core", "gateway", "notifications",
    "policies", "registry",
)  # fmt: skip
LITERAL = re.compile(r"[\"']([a-z_]+\.[a-z_]+)[\"']")
NOTE = "<!-- Written by: python -m tests.docs.reference --write -->\n"
# Django's own options, and commands for developers or for other commands.
API_TABLE = re.compile(
    r"(?<=<!-- service api: begin -->\n).*?(?=<!-- service api: end -->)", re.DOTALL
)
COMMON = {option.dest for option in BaseCommand().create_parser("manage.py", "x")._actions}
LEFT_OUT = {"messages", "createsuperuser", "pgtrigger", "runworker"}


def table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def page(name: str, language: str, *sections: str) -> str:
    title, introduction = words.PAGES[name][language]
    return "\n".join((f"# {title}\n", NOTE, f"{introduction}\n", *sections))


def commands() -> dict[str, BaseCommand]:
    found = {
        name: load_command_class(app, name)
        for name, app in get_commands().items()
        if str(app) in PACKAGES and name not in LEFT_OUT
    }
    return dict(sorted(found.items()))


def cli(language: str) -> str:
    known = commands()
    told = words.COMMANDS if language == "zh-hans" else {}
    column = {"en": ("command", "effect"), "zh-hans": ("命令", "作用")}[language]
    rows = ((f"[`{n}`](#{n})", told.get(n, _plain(c.help))) for n, c in known.items())
    return page("cli", language, table(column, rows), *map(_usage, known.items()))


def _usage(named: tuple[str, BaseCommand]) -> str:
    name, command = named
    parser = command.create_parser("manage.py", name)
    rows = [
        (f"`{', '.join(one.option_strings) or one.metavar or one.dest}`", _plain(_told(one)))
        for one in parser._actions
        if one.dest not in COMMON
    ]
    listed = "\n".join(f"- {label}{': ' if text else ''}{text}" for label, text in rows)
    return f"## {name}\n\n{_plain(command.help)}\n" + (f"\n{listed}\n" if listed else "")


def _told(option: argparse.Action) -> str:
    """Its help with the default, of which a path is the one that no environment changed."""
    default = "var" if isinstance(option.default, Path) else option.default
    return (option.help or "") % {**vars(option), "default": default}


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "\\<").split())


def entries(language: str) -> str:
    column = {"en": ("action", "on pages"), "zh-hans": ("操作", "页面上的文字")}[language]
    with override(language):
        rows = [(f"`{action}`", str(actions.words(action))) for action in known_actions()]
    return page("entries", language, table(column, iter(rows)))


def known_actions() -> list[str]:
    """The literals of the code that have words for people."""
    found = {
        name
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.suffix in (".py", ".sql") and "migrations" not in path.parts
        for name in LITERAL.findall(path.read_text())
    }
    found |= {f"call.{state.value}" for state in State} | words.COMPOSED
    return sorted(name for name in found if _has_words(name))


def _has_words(action: str) -> bool:
    return action in actions._SAID or actions.plain(action) in actions.OTHERS


def errors(language: str) -> str:
    kinds = {
        "en": ("`kind`", "`try_again`", "meaning"),
        "zh-hans": ("`kind`", "`try_again`", "含义"),
    }[language]
    codes = {"en": ("code", "meaning"), "zh-hans": ("代码", "含义")}[language]
    advice = {name: told[language] for name, told in words.ADVICE.items()}
    rows = (
        (f"`{kind}`", ", ".join(f"`{one}`" for one in again), words.KINDS[kind][language])
        for kind, again in known_kinds().items()
    )
    numbers = (
        (f"`{getattr(revisions, name)}`", told[language]) for name, told in words.CODES.items()
    )
    return page(
        "errors",
        language,
        table(kinds, rows),
        "\n".join(f"- `{name}`: {told}" for name, told in advice.items()) + "\n",
        f"## {words.CODES_TITLE[language]}\n",
        table(codes, numbers),
    )


def known_kinds() -> dict[str, list[str]]:
    """Each kind of refusal, and what the code advises for it."""
    made = [of_policy("", "", conditional=conditional) for conditional in (True, False)]
    made += [
        of_state(state, executed.value)
        for state in State
        if state not in (*LIVE, *FIRST, State.SUCCEEDED, State.TOOL_ERROR, State.RESOLVED)
        for executed in _endings(state)
    ]
    found: dict[str, list[str]] = {kind: [] for kind in words.KINDS}
    for one in [*made, *words.FIXED]:
        _add(found.setdefault(one.kind, []), one)
    return found


def _endings(state: State) -> list[Executed]:
    if state == State.FAILED:
        return [Executed.NO, Executed.REPORTED, Executed.YES]
    return [Executed.UNKNOWN if state in (State.UNKNOWN, State.TIMED_OUT) else Executed.NO]


def _add(advised: list[str], refusal: RefusalDetails) -> None:
    if refusal.again.value not in advised:
        advised.append(refusal.again.value)


def states(language: str) -> str:
    column = {
        "en": ("state", "on pages", "next states"),
        "zh-hans": ("状态", "页面上的文字", "后续状态"),
    }[language]
    with override(language):
        rows = [(f"`{state.value}`", str(state.label), _next_states(state)) for state in State]
        done = [(f"`{one.value}`", str(one.label)) for one in Executed]
    executed = {"en": ("`executed`", "on pages"), "zh-hans": ("`executed`", "页面上的文字")}
    return page(
        "call-states",
        language,
        table(column, iter(rows)),
        f"## {words.EXECUTED_TITLE[language]}\n",
        table(executed[language], iter(done)),
    )


def _next_states(state: State) -> str:
    return ", ".join(f"`{one.value}`" for one in MOVES.get(state, ())) or "–"


def roles(language: str) -> str:
    with override(language):
        head = tuple(gettext(role) for role in Role)
    column = {"en": "permission", "zh-hans": "权限"}[language]
    rows = (
        (
            words.PERMISSIONS.get(permission, {}).get(language, f"`{permission}`"),
            *("✓" if permission in PERMISSIONS[role] else "" for role in Role),
        )
        for permission in known_permissions()
    )
    return page("roles", language, table((column, *head), rows), words.ROLES_END[language])


def known_permissions() -> list[str]:
    every = set().union(*PERMISSIONS.values())
    return [one for one in words.PERMISSIONS if one in every] + sorted(
        every - words.PERMISSIONS.keys() - words.IMPLIED
    )


def api(language: str) -> str:
    """The page as it is, with the table of requests."""
    rows = (
        (f"`{method} /api/v1/{_address(route)}`", ", ".join(f"`{one}`" for one in scopes))
        for route, view, _name in urls.ROUTES
        for method, scopes in view.scopes.items()
    )
    made = table(("API", "`x-permissions`"), rows)
    return API_TABLE.sub(lambda _found: made, path("api", language).read_text())


def _address(route: str) -> str:
    numbers = ("pk", "call_id", "public_id")
    return re.sub(r"<\w+:(\w+)>", lambda part: "ID" if part[1] in numbers else "NAME", route)


WRITERS: dict[str, Callable[[str], str]] = {
    "cli": cli,
    "entries": entries,
    "errors": errors,
    "call-states": states,
    "roles": roles,
    "api": api,
}


def path(name: str, language: str) -> Path:
    return (CHINESE if language == "zh-hans" else ENGLISH) / "reference" / f"{name}.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", required=True)
    parser.parse_args()
    for name, write in WRITERS.items():
        for language in ("en", "zh-hans"):
            path(name, language).write_text(write(language))
        mark(path(name, "en"))
    generate.CLIENT.write_text(generate.write())


if __name__ == "__main__":
    main()
