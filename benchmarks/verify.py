"""How long it takes to seal a record and to check it, whole and from a checkpoint on.

`python -m benchmarks.verify` fills a database of its own with 1,000,000 entries by bulk SQL, such
as agents' calls write, seals them and checks them, each in a process of its own.
`python -m benchmarks.verify DIRECTORY` seals and checks what `python -m benchmarks.crowd DIRECTORY`
filled.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import psycopg

from benchmarks.crowd import opened, superuser
from tests.database import manage, python

AGENTS = 100
NAMES = """
SELECT count(audit_name_number('agent', n, 'agent-' || n)),
    count(audit_name_number('person', n, 'person-' || n)),
    count(audit_name_number('tool', NULL, 'tool-' || n, 'server-' || n %% 9, md5(n::text)))
FROM generate_series(1, %s) n
"""
# Two of each call: it runs, and has succeeded.
ENTRIES = """
INSERT INTO audit_entryrow (
    call_id, action, agent, person, tool, seq, from_state, to_state, arguments, result)
SELECT c.id, s.seq, agent.id, person.id, tool.id, s.seq, s.source, s.target,
    sha256(convert_to(c.id::text, 'UTF8')), CASE WHEN s.seq = 2 THEN sha256('done') END
FROM (SELECT n, 1 + n %% %(agents)s AS place, gen_random_uuid() AS id
      FROM generate_series(1, %(calls)s) n) c
JOIN audit_name agent ON agent.kind = 'agent' AND agent.subject = c.place
JOIN audit_name person ON person.kind = 'person' AND person.subject = c.place
JOIN audit_name tool ON tool.kind = 'tool' AND tool.text = 'tool-' || c.place
CROSS JOIN (VALUES (1, 'received', 'running'), (2, 'running', 'succeeded')) s (seq, source, target)
ORDER BY c.n, s.seq
"""
CHECK = """
import django
django.setup()
from audit.live import check_live
found = check_live(since={since})
assert not found.wrong, found.wrong
print(found.entries)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--entries", type=int, default=1_000_000)
    options = parser.parse_args()
    if options.data:
        with opened(options.data):
            seal(options.data)
            verify(0)
        return
    with tempfile.TemporaryDirectory(prefix="countersign-") as folder:
        Path(folder).chmod(0o711)
        with opened(Path(folder) / "var"):
            measure(Path(folder) / "var", options.entries)


def measure(data: Path, entries: int) -> None:
    with superuser(data) as link:
        link.execute(NAMES, [AGENTS])
        fill(link, entries)
    seal(data)
    verify(0)
    with superuser(data) as link:
        fill(link, 1000)
    sealed = sealed_size(data)
    seal(data)
    verify(sealed)


def fill(link: psycopg.Connection, entries: int) -> None:
    link.execute(ENTRIES, {"agents": AGENTS, "calls": entries // 2})
    link.execute("ANALYZE")


def seal(data: Path) -> None:
    # By the owner, who may do what the sealer may.
    owner = {"DATABASE_URL": os.environ["DATABASE_OWNER_URL"]}
    before, began = sealed_size(data), time.monotonic()
    manage(["audit_seal"], env=owner | {"COUNTERSIGN_SEAL_KEY_FILE": str(data / "key")})
    seconds = time.monotonic() - began
    entries = sealed_size(data) - before
    print(
        f"{entries:,} entries sealed in {seconds:.1f} s, {entries / seconds:,.0f} a second",
        flush=True,
    )


def sealed_size(data: Path) -> int:
    with superuser(data) as link:
        (size,) = link.execute("SELECT max(size) FROM audit_checkpoint").fetchone() or (None,)
    return size or 0


def verify(since: int) -> None:
    began = time.monotonic()
    checked = int(python("-c", CHECK.format(since=since), env={}))
    seconds = time.monotonic() - began
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    begun = f" from {since:,} on" if since else ""
    print(
        f"{checked:,} entries checked{begun} in {seconds:.1f} s, {checked / seconds:,.0f} a second,"
        f" on {os.cpu_count()} cores; no process took more than {largest:.0f} MB"
    )


if __name__ == "__main__":
    main()
