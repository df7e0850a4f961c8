"""Large documents that packages ship, and a name for each of their operations."""

import subprocess
import tarfile
from pathlib import Path
from typing import NamedTuple

import pytest

from registry.openapi.document import base_urls, read
from registry.openapi.naming import name_operations
from registry.openapi.operations import list_operations
from tests.clients import find_npm

GUIDE = Path(__file__).parents[2] / "docs" / "en" / "guides" / "import-openapi.md"


class PackagedDocument(NamedTuple):
    package: str
    version: str
    file: str
    operations: int
    callable_ones: int
    described: int


DOCUMENTS = [
    PackagedDocument(
        "@octokit/openapi", "23.0.2", "generated/api.github.com.json", 1223, 1222, 888
    ),
    PackagedDocument("@directus/specs", "15.2.0", "dist/openapi.json", 136, 136, 92),
    PackagedDocument("@blockfrost/openapi", "0.1.93", "openapi.yaml", 129, 123, 123),
    PackagedDocument("rclone-openapi", "1.75.0", "openapi.yaml", 101, 101, 91),
    PackagedDocument("@digdir/dialogporten-schema", "1.40.0", "swagger.verified.json", 29, 29, 24),
]


def packed(one: PackagedDocument, there: Path) -> bytes:
    npm = find_npm()
    assert npm, "npm is needed"
    argv = [*npm, "pack", "--silent", f"{one.package}@{one.version}"]
    subprocess.run(argv, cwd=there, check=True, capture_output=True, timeout=300)
    (archive,) = there.glob("*.tgz")
    with tarfile.open(archive) as tar:
        file = tar.extractfile(f"package/{one.file}")
        assert file
        return file.read()


@pytest.mark.long
@pytest.mark.parametrize("one", DOCUMENTS, ids=lambda one: one.package)
def test_a_document_of_a_package_is_covered_as_the_guide_has_it(
    one: PackagedDocument, tmp_path: Path
) -> None:
    description = read(packed(one, tmp_path))
    base = next(iter(base_urls(description)), "https://api.example")

    found = list(list_operations(description, slug="s" * 20, base=base, known={}, effects={}))

    tools = [operation.tool for operation in found if operation.tool]
    described = sum("outputSchema" in tool for tool in tools)
    assert (len(found), len(tools), described) == one[3:]
    names = [operation.name for operation in found]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 64 - 21
    row = f"| {one.operations:,} | {one.callable_ones:,} | {one.described:,} |"
    assert row in GUIDE.read_text()
    assert all(operation.problem for operation in found if not operation.tool)


def test_names_that_clash_are_told_apart_and_stay() -> None:
    wanted = [("GET /a", "get.all"), ("GET /b", "get_all"), ("GET /c", "x" * 90), ("GET /{d}", "")]

    names = name_operations("api", wanted, {})

    assert names["GET /a"] == "get_all"
    assert names["GET /b"].startswith("get_all_")
    assert len(names["GET /c"]) <= 60
    assert names["GET /{d}"] == "get_by_d"
    assert len(set(names.values())) == 4
    assert name_operations("api", [*reversed(wanted), ("GET /e", "get_all")], names) | {
        "GET /e": ""
    } == names | {"GET /e": ""}
