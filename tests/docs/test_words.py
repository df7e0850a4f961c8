"""One name for one thing, and states worded in one table."""

import ast
import builtins
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from approvals.models import Approval
from calls.record.states import State
from core.messages import files
from core.messages.catalogue import Catalogue
from tests.docs.words import WORDS, Word

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "accounts", "approvals", "audit", "calls", "config", "core", "gateway", "inspection",
    "notifications", "policies", "registry",
)  # fmt: skip
# Django finds these by their names.
FRAMEWORK = re.compile(r"^(Command|Migration|\w+Config)$")
# A bare participle, adverb or pronoun says nothing of what is inside.
BARE = re.compile(
    r"""(?x)^(
    again|alike|aside|asides|asked|asking|asks|beside|carried|come|cut|done|earlier|ears|
    fallen|fitted|found|given|gone|granting|hands|heard|hearing|held|here|it|kept|known|
    late|leave|left|listed|looks|made|opening|other|reached|reading|repeated|room|running|
    said|same|seen|sent|shown|silence|standing|stepping|supposing|taken|talk|talks|told|
    trying|turned|turns|unheard|used|usual|waiting|way|ways|wording|written
    )$"""
)

# How a docstring does not begin.
RIDDLE = re.compile(r"(What|Who|Whoever|Of|As|That|Nobody|Somebody)\b")

# What pages, answers and messages say in standard words instead (CONTRIBUTING.md).
REPLACED = re.compile(
    r"""(?xi)\b(
    froze|frozen|freez\w*|refus\w*|standing\ grants?|went\ wrong|waits?\ to\ be\ published|
    asks?\ a\ person|said\ (yes|no)|yeses|noes|may\ destroy|stands?\ still|what\ became\ of|
    safe\ to\ repeat|reaches\ outside|took\ too\ long|nobody\ knows|in\ your\ own\ words|
    wait\w*\ for\ approval|no\ comments\ yet|that\ would\ be\ sent|to\ be\ decided|no\ longer\ waits
    )\b"""
)
# The title of the page of an error of ours, and the words of an operating system.
AS_IT_IS = {"Something went wrong", "Connection refused"}
TRANSLATED = re.compile(
    r"""(?s){%\s*translate\s+(?:"([^"]*)"|'([^']*)')|{%\s*blocktranslate[^%]*%}(.*?){%\s*endblock"""
)
GETTEXT = {"_", "gettext", "gettext_lazy", "ngettext", "ngettext_lazy"}

RAISES = re.compile(r"\b[Rr]aises? ((?:[A-Z]\w+(?:, | and | or )?)+)")


def sources() -> list[Path]:
    found = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return sorted(path for path in found if "migrations" not in path.parts)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def catalogue() -> Catalogue:
    """What `manage.py messages` would write, which takes seconds to gather."""
    return files.updated()


def classes(path: Path) -> list[str]:
    body = parsed(path).body
    names = [node.name for node in body if isinstance(node, ast.ClassDef)]
    return [name for name in names if not FRAMEWORK.match(name)]


def test_no_two_classes_share_a_name() -> None:
    places = defaultdict(list)
    for path in sources():
        for name in classes(path):
            places[name].append(str(path.relative_to(ROOT)))

    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_no_class_and_no_module_is_named_by_a_bare_word() -> None:
    # `running` in calls is a state of calls; as a folder it holds what runs them.
    modules = [path for path in sources() if BARE.match(path.stem)]
    named = [
        (path, name) for path in sources() for name in classes(path) if BARE.match(name.lower())
    ]

    assert (modules, named) == ([], [])


def test_no_function_of_a_module_is_named_by_a_bare_word() -> None:
    named = [
        (path.relative_to(ROOT).as_posix(), node.name)
        for path in sources()
        if "inspection" not in path.parts
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and BARE.match(node.name.strip("_"))
    ]

    # What opens a commitment is called so.
    assert [one for one in named if one != ("audit/bodies.py", "opening")] == []


def test_docstrings_say_what_a_thing_is() -> None:
    """Subject, verb, object: "Of those that …" and "What becomes of …" are riddles."""
    riddles = []
    for path in sources():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                said = ast.get_docstring(node) or ""
                if RIDDLE.match(said):
                    riddles.append((path.relative_to(ROOT).as_posix(), said.splitlines()[0]))

    assert riddles == []


def test_states_are_worded_in_one_table_only() -> None:
    """Templates take the word from the state itself (calls/templatetags/call_states.py)."""
    labels = {str(state.label) for state in State} | {str(s.label) for s in Approval.State}
    quoted = re.compile(r"{%\s*translate\s+\"([^\"]+)\"\s*%}")
    pages = sorted((ROOT / "templates" / "ui").glob("state*.html"))

    assert pages
    assert [
        word for page in pages for word in quoted.findall(page.read_text()) if word in labels
    ] == []


def messages() -> Iterator[tuple[str, str]]:
    """With the file that has it, everything that can be translated."""
    for path in sorted((ROOT / "templates").rglob("*.html")):
        for found in TRANSLATED.finditer(path.read_text()):
            yield path.relative_to(ROOT).as_posix(), next(filter(None, found.groups()), "")
    for path in sources():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in GETTEXT:
                texts = (one.value for one in node.args if isinstance(one, ast.Constant))
                yield from ((path.relative_to(ROOT).as_posix(), str(text)) for text in texts)


def test_what_people_read_is_in_the_words_of_the_table() -> None:
    said = list(messages())

    assert len(said) > 1000
    assert [one for one in said if REPLACED.search(one[1]) and one[1] not in AS_IT_IS] == []


def test_exceptions_that_docstrings_name_exist() -> None:
    known = set(dir(builtins))
    named: list[tuple[str, str]] = []
    for path in sources():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                known.add(node.name)
            elif isinstance(node, ast.ImportFrom):
                known |= {alias.asname or alias.name for alias in node.names}
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                told = RAISES.search(ast.get_docstring(node) or "")
                names = re.findall(r"[A-Z]\w+", told[1]) if told else []
                named += [(path.relative_to(ROOT).as_posix(), name) for name in names]

    assert len(named) > 50
    assert [one for one in named if one[1] not in known] == []


@pytest.mark.parametrize("one", WORDS, ids=lambda one: one.word)
def test_no_message_uses_another_word_for_it(one: Word) -> None:
    unused = re.compile(one.unused, re.IGNORECASE)
    messages = (key.msgid for key in catalogue())
    found = [said for said in messages if unused.search(said)]

    assert [said for said in found if not any(but in said for but in one.but)] == []


def test_every_message_is_translated_and_none_is_doubtful() -> None:
    assert len(catalogue()) > 2_000
    assert [message.key.msgid for message in files.missing(catalogue())] == []
