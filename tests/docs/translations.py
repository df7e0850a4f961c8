"""Chinese pages and their English originals: `python -m tests.docs.translations --mark [PAGE …]`.

A Chinese page begins with the digest of the English page that it translates. `--mark` writes that
digest, copies the English code blocks and generated tables into the Chinese page, and points its
links to Chinese pages and headings where these exist.
"""

import argparse
import re
from collections.abc import Iterator
from hashlib import sha256
from os.path import relpath
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENGLISH, CHINESE = ROOT / "docs" / "en", ROOT / "docs" / "zh-hans"
README, CHINESE_README = ROOT / "README.md", ROOT / "docs" / "README.zh-CN.md"
# Code, and tables that tests write or compare.
BLOCK = re.compile(
    r"^( *)```.*?^ *```$|^<!-- [\w ]+: begin -->$.*?^<!-- [\w ]+: end -->$",
    re.MULTILINE | re.DOTALL,
)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# The link to the English page stays what it is.
LINK = re.compile(r"(?<!\[English)\]\((?!https?:|mailto:)([^)\s]*)\)")
HEAD = re.compile(r"<!-- English: ([0-9a-f]{16}) -->\n")


def pages() -> list[Path]:
    """English pages for users; those for contributors are in English only."""
    found = (path for path in ENGLISH.rglob("*.md") if "contributing" not in path.parts)
    return [README, *sorted(found)]


def translated() -> list[Path]:
    return [CHINESE_README, *sorted(CHINESE.rglob("*.md"))]


def translation_of(page: Path) -> Path:
    return CHINESE_README if page == README else CHINESE / page.relative_to(ENGLISH)


def original_of(page: Path) -> Path:
    return README if page == CHINESE_README else ENGLISH / page.relative_to(CHINESE)


def digest(page: Path) -> str:
    return sha256(page.read_bytes()).hexdigest()[:16]


def blocks(text: str) -> list[str]:
    return [found[0] for found in BLOCK.finditer(text)]


def anchors(page: Path) -> list[str]:
    """As GitHub makes them of headings, in order."""
    headings = HEADING.findall(BLOCK.sub("", page.read_text()))
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return [heading.replace(" ", "-") for heading in plain]


def mark(page: Path) -> None:
    """Bring what is not prose in the Chinese page up to the English one."""
    chinese = translation_of(page)
    text = HEAD.sub("", chinese.read_text(), count=1)
    shared: Iterator[str] = iter(blocks(page.read_text()))
    text = BLOCK.sub(lambda found: next(shared, found[0]), text)
    text = LINK.sub(lambda found: f"]({_localised(found[1], page, chinese)})", text)
    chinese.write_text(f"<!-- English: {digest(page)} -->\n{text}")


def _localised(link: str, page: Path, chinese: Path) -> str:
    """Written as on the English page, or as found on the Chinese one: the Chinese target."""
    path, hash_, anchor = link.partition("#")
    target = _target(path, page, chinese)
    if target in translated():
        target = original_of(target)
    local = translation_of(target) if target in pages() and target != page else target
    if path == "" or target == page:
        local, path = chinese, ""
    if not local.exists():
        local = target
    if local != target and anchor in (known := anchors(target)):
        anchor = anchors(local)[known.index(anchor)]
    return (relpath(local, chinese.parent) if local != chinese else "") + hash_ + anchor


def _target(path: str, page: Path, chinese: Path) -> Path:
    if not path:
        return page
    written = [(base.parent / path).resolve() for base in (chinese, page)]
    return next((one for one in written if one.exists()), written[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mark", nargs="*", type=Path, help="English pages; all, if none is named")
    named = parser.parse_args().mark
    for page in [path.resolve() for path in named or ()] or pages():
        if translation_of(page).exists():
            mark(page)


if __name__ == "__main__":
    main()
