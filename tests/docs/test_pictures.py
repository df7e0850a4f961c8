"""The pictures that `python -m tests.docs.pictures` takes are there, small, and in documents."""

import re

import pytest

from tests.docs import pictures
from tests.docs.translations import ROOT

SOURCE = re.compile(r'(?:srcset|src)="([^"]*docs/images/[^"]+|(?:\.\./)*images/[^"]+)"')
READMES = {"README.md": "", "docs/README.zh-CN.md": "-zh"}


def shown_in(document: str) -> set[str]:
    return {source.rpartition("/")[2] for source in SOURCE.findall((ROOT / document).read_text())}


@pytest.mark.parametrize("file", pictures.files())
def test_it_is_small_and_webp(file: str) -> None:
    content = (pictures.IMAGES / file).read_bytes()

    assert content[:4] == b"RIFF"
    assert content[8:12] == b"WEBP"
    assert len(content) <= pictures.LARGEST


@pytest.mark.parametrize(("readme", "infix"), READMES.items())
def test_a_readme_shows_card_and_overview_in_light_and_dark(readme: str, infix: str) -> None:
    wanted = {f"{page}{infix}-{theme}.webp" for page in pictures.PAGES for theme in pictures.THEMES}

    assert wanted <= shown_in(readme)


def test_every_shown_picture_is_there() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for source in SOURCE.findall(document.read_text()):
            assert (document.parent / source).exists(), (document, source)
