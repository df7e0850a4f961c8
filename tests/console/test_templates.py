"""What no template may hold, and what each must have."""

import re
from pathlib import Path

from django.template.loader import get_template

from calls.record.states import State
from registry.models import Server, Tool

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
FORBIDDEN = {
    "an inline style": r"\sstyle=|<style",
    "an inline handler": r"\son[a-z]+=",
    "an inline script": r"<script(?![^>]*\bsrc=)",
    "unescaped text": r"\|\s*safe|autoescape off|mark_safe|safeseq",
    "something from elsewhere": r"(?:src|href)=[\"']https?:",
}
# Mails have no address to take a style sheet from, and no Content-Security-Policy.
STYLED = "notifications/mail/message.html"
ICONS = set(re.findall(r'symbol id="(\w+)"', (ROOT / "static/img/icons.svg").read_text()))


def names(path: Path) -> str:
    return str(path.relative_to(ROOT / "templates"))


def test_each_compiles_and_holds_nothing_forbidden() -> None:
    assert TEMPLATES
    for path in TEMPLATES:
        text = path.read_text()

        get_template(names(path))
        for what, pattern in FORBIDDEN.items():
            is_mail = names(path) == STYLED and what == "an inline style"
            assert is_mail or not re.search(pattern, text), f"{names(path)} has {what}"


def test_no_code_calls_text_safe() -> None:
    code = [p for p in ROOT.glob("*/**/*.py") if p.relative_to(ROOT).parts[0] not in ("tests",)]
    ours = [
        p for p in code if not {".venv", "var", "node_modules"} & set(p.relative_to(ROOT).parts)
    ]

    assert [str(p) for p in ours if "mark_safe" in p.read_text()] == []


def test_every_state_and_every_named_icon_is_drawn() -> None:
    named = {
        name
        for path in TEMPLATES
        for name in re.findall(r'ui/icon.html" with name="(\w+)"', path.read_text())
    }
    states = {*State.values, *Tool.State.values, "ok", "down", "unreached", "disabled"}

    assert named | states <= ICONS
    assert {*Server.Health.values} - {"unknown"} <= ICONS


def test_no_script_runs_text() -> None:
    for path in (ROOT / "static" / "js").glob("*.js"):
        assert not re.search(
            r"\beval\(|innerHTML|insertAdjacentHTML|new Function", path.read_text()
        )
