"""Commands where no database is: a sentence with what to do, and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_a_command_without_a_data_directory_says_what_to_start(tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    env |= {"COUNTERSIGN_DATA": str(tmp_path / "none"), "COUNTERSIGN_NO_BOOTSTRAP": "1"}

    done = subprocess.run(
        [sys.executable, "manage.py", "audit_verify"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "Commands work while `python3 manage.py up` runs" in done.stderr
