"""Verifies Sigstore bundles about a server.json or about a package that it pins.

Nothing is asked for over the network: the trusted root is the one that the library ships, or a
file's. A bundle may sign the very bytes of the document, or be an in-toto statement (as GitHub's
attestations are) that has the document or the pinned package among its subjects.
"""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import orjson
from django.conf import settings

from core import die_with_parent
from core.english import gettext as _
from registry.server_json.document import Json, ServerJsonRefused

READER = Path(__file__).with_name("bundle_reader.py")
MAX_BYTES = 256 * 1024
READ_WITHIN_S = 60
LONGEST = 2000
REASONS = {
    "broken": _("This is no Sigstore bundle (JSON, .sigstore.json)."),
    "late": _("The signature takes too long to verify."),
    "root": _("The file of COUNTERSIGN_SIGSTORE_TRUSTED_ROOT is no trusted root."),
    "file": _("It signs a file. Give the server.json as the file that was signed."),
    "statement": _("It signs something that is no in-toto statement."),
    "subject": _("It verifies, but names neither the document nor a digest that it pins."),
    "identity": _("Its certificate names no signer."),
}


class SignatureRefused(ServerJsonRefused):
    """The bundle does not verify, or is about something else; says why."""


class Signature(NamedTuple):
    """A verified one. `digest`: of what was signed, with its kind."""

    digest: str
    identity: str
    issuer: str
    # The log's time, or else when the certificate was issued.
    at: str
    is_log_time: bool
    log_index: str
    predicate: str = ""


def digest_of(text: bytes) -> str:
    return f"sha256:{sha256(text).hexdigest()}"


def verify(bundle: bytes, *, document: str = "", pinned: tuple[str, ...] = ()) -> Signature:
    """`document`: the digest of the very bytes, "" where they are not known; `pinned`: digests that
    it pins. Raises SignatureRefused."""
    if len(bundle) > MAX_BYTES:
        raise SignatureRefused(_("This is longer than any bundle: 256 KiB are read."))
    order = {
        "bundle": bundle.decode(errors="replace"),
        "trusted_root": settings.SIGSTORE_TRUSTED_ROOT,
        "sha256": document.removeprefix("sha256:"),
        "digests": [one for one in (document, *pinned) if one],
    }
    answer = _run(order)
    if why := answer.get("error"):
        if detail := answer.get("detail"):
            raise SignatureRefused(_("The signature does not verify: %s") % detail)
        raise SignatureRefused(REASONS[why])
    return _bounded(Signature(**answer["signature"]))


def _bounded(signature: Signature) -> Signature:
    if any(len(str(one)) > LONGEST or "\0" in str(one) for one in signature):
        raise SignatureRefused(REASONS["identity"])
    return signature


def _run(order: Json) -> Json:
    try:
        done = subprocess.run(  # noqa: S603 our own module
            die_with_parent.command([sys.executable, "-I", str(READER)]),
            input=orjson.dumps(order),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=die_with_parent.lifelines(),
            timeout=READ_WITHIN_S,
            check=True,
            env={},
        )
        answer: Json = orjson.loads(done.stdout)
    except (subprocess.SubprocessError, orjson.JSONDecodeError):
        return {"error": "late"}
    return answer
