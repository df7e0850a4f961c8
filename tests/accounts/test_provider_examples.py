"""The examples of the set-up pages are read by what reads the host's file."""

import re
from pathlib import Path
from typing import Any

import pytest

from accounts.oidc.providers import IdentityProvider, providers
from accounts.roles import Role

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / f"docs/{language}/guides/identity-providers.md" for language in ("en", "zh-hans")]
TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples(page: Path) -> list[str]:
    return TOML.findall(page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=["en", "zh-hans"])
def test_each_example_is_taken(page: Path, settings: Any, tmp_path: Path) -> None:
    found = [
        read(text, settings, tmp_path / f"{number}.toml")
        for number, text in enumerate(examples(page))
    ]

    assert [one.issuer.split("/")[2] for one in found] == [
        "login.example.com",
        "login.microsoftonline.com",
        "example.okta.com",
        "accounts.google.com",
        "dex.example.com",
    ]
    for one in found:
        assert set(one.groups.values()) <= set(Role)
        assert one.client_secret_file


def read(text: str, settings: Any, path: Path) -> IdentityProvider:
    path.write_text(text)
    settings.OIDC_FILE = path
    (one,) = providers()
    return one


def test_both_pages_have_the_same_examples() -> None:
    assert examples(PAGES[0]) == examples(PAGES[1])


@pytest.mark.parametrize(
    ("page", "limits"), [(PAGES[0], "Known not to work"), (PAGES[1], "已知不可用")]
)
def test_each_of_five_has_steps_and_what_is_known_not_to_work(page: Path, limits: str) -> None:
    parts = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page.read_text(), re.M | re.S))

    for name in ("Keycloak", "Entra ID", "Okta", "Google", "GitHub"):
        assert TOML.search(parts[name]), name
        told = parts[name].partition(limits)[2]
        assert re.search(r"^- .+", told, re.M), name
