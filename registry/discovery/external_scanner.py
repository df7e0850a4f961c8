"""A scanner of the operator's own, beside what this installation finds by itself.

It is a program, started for definitions that a discovery sees for the first time: they are its
input as JSON, and its output is SARIF. It gets no shell, nothing of this process's environment but
PATH and LANG, a folder of its own, and limits of time and size. Discovery goes on without it, and
says so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from django.conf import settings

from core import die_with_parent
from core.english import gettext as _
from core.errors import CountersignError
from core.text import revealed
from inspection.definitions import Finding
from inspection.sarif_report import BadReport, read_report
from registry.models import Definition, ItemVersion, Server
from registry.schemas import definitions

OUTPUT_MAX = 8 * 1024 * 1024
LOOKED_EVERY_S = 0.05
SAID_MAX = 300
NAMES = ("PATH", "LANG")
TOOL = "tool"


class ScannerFailed(CountersignError):
    """The scanner said nothing that can be used; says why."""


class ScannedDefinition(NamedTuple):
    """`kind`: tool, or a kind of item; `name`: what its server calls it."""

    kind: str
    name: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExternalScan:
    """`said`: sentences for whoever reads about the discovery."""

    findings: Mapping[tuple[str, str], tuple[Finding, ...]] = field(default_factory=dict)
    said: tuple[str, ...] = ()

    def of(self, kind: str, name: str) -> tuple[Finding, ...]:
        return self.findings.get((kind, name), ())


NOT_SCANNED = ExternalScan()


def scan_new(server: Server, listed: Iterable[ScannedDefinition]) -> ExternalScan:
    """Findings in those definitions that were not seen before. Never raises."""
    return scan_all(server, list(_unseen(server, listed)))


def scan_all(server: Server, scanned: Sequence[ScannedDefinition]) -> ExternalScan:
    """Findings in all of these definitions. Never raises."""
    if not (settings.SCANNER and scanned):
        return NOT_SCANNED
    try:
        report = _run(settings.SCANNER, _order(server, scanned), settings.SCANNER_TIMEOUT_S)
        found = read_report(report, {_label(one) for one in scanned})
    except (ScannerFailed, BadReport) as error:
        return _failed(scanned, revealed(str(error))[:SAID_MAX])
    said = []
    if found.unplaced:
        said.append(
            _("Findings of the external scanner that name no definition: %d.") % found.unplaced
        )
    by_label = {_label(one): (one.kind, one.name) for one in scanned}
    return ExternalScan(
        {by_label[label]: ones for label, ones in found.by_name.items()}, tuple(said)
    )


def _failed(new: Sequence[ScannedDefinition], why: str) -> ExternalScan:
    finding = (Finding("external-failed", "", why),)
    said = _("The external scanner failed: %s. The definitions stay marked as not scanned by it.")
    return ExternalScan({(one.kind, one.name): finding for one in new}, (said % why,))


def _unseen(server: Server, listed: Iterable[ScannedDefinition]) -> Iterator[ScannedDefinition]:
    tools = Definition.objects.filter(tool__server=server).values_list("tool__name", "digest")
    items = ItemVersion.objects.filter(item__server=server)
    seen = {(TOOL, name, digest) for name, digest in tools.order_by()}
    seen |= {*items.order_by().values_list("item__kind", "item__key", "digest")}
    identity = definitions.identity(transport=server.transport, url=server.url, argv=server.argv)
    for one in listed:
        try:
            digest = definitions.digest(identity, one.content)
        except definitions.Unreadable:
            # Discovery leaves it out.
            continue
        if (one.kind, one.name, digest) not in seen:
            yield one


def _label(one: ScannedDefinition) -> str:
    """Its name in SARIF. A tool and a prompt may have one name."""
    return one.name if one.kind == TOOL else f"{one.kind}:{one.name}"


def _order(server: Server, new: Iterable[ScannedDefinition]) -> bytes:
    scanned = [
        {"name": _label(one), "kind": one.kind, "definition": dict(one.content)} for one in new
    ]
    return orjson.dumps({"server": server.slug, "definitions": scanned})


def _run(argv: Sequence[str], given: bytes, timeout_s: float) -> bytes:
    """The program's output. Raises ScannerFailed."""
    with tempfile.TemporaryDirectory(prefix="countersign-scan-") as folder:
        paths = [Path(folder) / name for name in ("input", "output", "errors")]
        paths[0].write_bytes(given)
        with paths[0].open("rb") as source, paths[1].open("wb") as out, paths[2].open("wb") as err:
            streams = {"stdin": source, "stdout": out, "stderr": err}
            try:
                child = _start(argv, folder, streams)
            except OSError as error:
                said = _("it cannot be started: %s")
                raise ScannerFailed(said % (error.strerror or error)) from error
            _wait(child, paths[1:], timeout_s)
        if child.returncode:
            raise ScannerFailed(_with_words(child.returncode, paths[2]))
        return paths[1].read_bytes()


def _start(argv: Sequence[str], folder: str, streams: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    env = {name: os.environ[name] for name in NAMES if name in os.environ}
    return subprocess.Popen(  # noqa: S603 the host's own setting
        die_with_parent.command([*argv]),
        cwd=folder,
        env={**env, "HOME": folder, "TMPDIR": folder},
        pass_fds=die_with_parent.lifelines(),
        start_new_session=True,
        **streams,
    )


def _wait(child: subprocess.Popen[bytes], outputs: Sequence[Path], timeout_s: float) -> None:
    """Ends it, and what it started, when it takes too long or says too much."""
    ends_at = time.monotonic() + timeout_s
    try:
        while child.poll() is None:
            if time.monotonic() > ends_at:
                raise ScannerFailed(_("it took longer than %d s") % timeout_s)
            _check_size(outputs)
            time.sleep(LOOKED_EVERY_S)
        _check_size(outputs)
    finally:
        _end_group(child)


def _check_size(outputs: Sequence[Path]) -> None:
    if any(path.stat().st_size > OUTPUT_MAX for path in outputs):
        raise ScannerFailed(_("it wrote more than %d MB") % (OUTPUT_MAX // 1024 // 1024))


def _end_group(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _with_words(code: int, errors: Path) -> str:
    last = errors.read_bytes()[-SAID_MAX:].decode(errors="replace").strip()
    said = _("it ended with status %d") % code
    return f"{said}: {' '.join(last.split())}" if last else said
