"""What is signed here, read by others: the libraries of Go's checksum database."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from audit import origins
from audit.leaves import places
from audit.models import Checkpoint, Entry
from audit.services import SYSTEM, record
from audit.signing import keys
from audit.tree import Tree
from tests.sealing import seal_all, sealer

# Where Debian's packages put what has no module.
GOPATH = Path(os.environ.get("GOPATH", "/usr/share/gocode"))
GO = shutil.which("go")

pytestmark = [
    pytest.mark.long,
    pytest.mark.alone,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        GO is None or not (GOPATH / "src/golang.org/x/mod/sumdb/tlog").is_dir(),
        reason="needs Go and golang.org/x/mod: apt install golang-go golang-golang-x-mod-dev",
    ),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("go") / "checkpoint"
    env = {**os.environ, "GO111MODULE": "off", "GOPATH": str(GOPATH), "CGO_ENABLED": "0"}
    env["GOCACHE"] = str(built.parent / "cache")
    source = Path(__file__).with_name("checkpoint.go")
    subprocess.run([str(GO), "build", "-o", built, source], env=env, check=True)
    return built


def ask(program: Path, **given: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program], input=json.dumps(given), capture_output=True, text=True, check=False
    )


def test_go_opens_a_checkpoint_and_finds_the_leaf_in_it(program: Path) -> None:
    for _ in range(300):
        record("note.made", actor=SYSTEM)
    seal_all()
    with sealer():
        call_command("audit_rotate_key")
    newest = Checkpoint.objects.latest("pk")
    tree = Tree(newest.size)

    for pk in (Entry.objects.earliest("pk").pk, Entry.objects.latest("pk").pk):
        index = places([pk])[pk]
        given: dict[str, Any] = {
            "Keys": [str(one.key) for one in keys()],
            "Note": newest.note,
            "Index": index,
            "Leaf": tree.leaf(index).hex(),
            "Path": [sibling.hex() for sibling in tree.path(index)],
        }
        # Both keys signed the first checkpoint after the rotation.
        assert ask(program, **given).stdout == f"{origins.name()} 2\n"
        assert (
            ask(program, **{**given, "Keys": given["Keys"][:1]}).stdout == f"{origins.name()} 1\n"
        )
        wrong = ask(program, **{**given, "Leaf": tree.leaf(7).hex()})
        assert (wrong.returncode, "invalid" in wrong.stderr) == (1, True)
