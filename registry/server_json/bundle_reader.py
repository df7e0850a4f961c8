"""Verifies a Sigstore bundle in a process of its own, which may be ended at any time.

Standard input has a JSON object (`bundle`, `trusted_root`, `sha256`, `digests`), standard output
gets `signature` or `error`. Nothing of the product is imported, the environment holds no secret,
and no connection can be opened. Loading the library takes a second and 30 MB.
Sources: sigstore protobuf-specs, Bundle v0.3; in-toto attestation framework, Statement v1; fulcio,
docs/oid-info.md.
"""

from __future__ import annotations

import json
import resource
import sys
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

CPU_S = 20
MEMORY_BYTES = 1 << 30
IN_TOTO = "application/vnd.in-toto+json"
STATEMENTS = ("https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1")
SHIPPED_ROOT = "https%3A%2F%2Ftuf-repo-cdn.sigstore.dev"
ISSUER, ISSUER_V1 = "1.3.6.1.4.1.57264.1.8", "1.3.6.1.4.1.57264.1.1"
LONGEST_REASON = 300

Json = dict[str, Any]


class BundleRejected(Exception):
    """Its text is a key of `registry.server_json.signatures.REASONS`."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    sys.addaudithook(deny_connections)
    json.dump(answer(json.load(sys.stdin)), sys.stdout)


def deny_connections(event: str, _details: tuple[Any, ...]) -> None:
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto", "socket.sendmsg"):
        raise PermissionError(event)


def answer(given: Json) -> Json:
    from sigstore.errors import Error
    from sigstore.models import InvalidBundle

    try:
        return {"signature": verify(given)}
    except BundleRejected as error:
        return {"error": str(error)}
    except InvalidBundle:
        return {"error": "broken"}
    except Error as error:
        return {"error": "invalid", "detail": str(error)[:LONGEST_REASON]}
    except Exception:
        # The library has many ways to say so.
        return {"error": "broken"}


def verify(given: Json) -> Json:
    """Raises BundleRejected and the library's errors."""
    from sigstore.models import Bundle

    trusted = read_trusted_root(given["trusted_root"])
    bundle = Bundle.from_json(given["bundle"])
    if "dsseEnvelope" in json.loads(given["bundle"]):
        signed = _verify_statement(trusted, bundle, given["digests"])
    else:
        signed = _verify_file(trusted, bundle, given["sha256"])
    return signed | _describe(bundle.signing_certificate, json.loads(given["bundle"]))


def read_trusted_root(path: str) -> Any:
    """The file's, or else the one that the library ships. Raises BundleRejected."""
    from sigstore.models import TrustedRoot

    shipped = files("sigstore._store").joinpath(SHIPPED_ROOT, "trusted_root.json")
    try:
        return TrustedRoot.from_file(path or str(shipped))
    except Exception as error:
        raise BundleRejected("root") from error


def _verify_file(trusted: Any, bundle: Any, sha256: str) -> Json:
    from sigstore.hashes import Hashed
    from sigstore.verify import Verifier
    from sigstore.verify.policy import UnsafeNoOp

    if not sha256:
        raise BundleRejected("file")
    about = {"algorithm": "SHA2_256", "digest": bytes.fromhex(sha256)}
    hashed = Hashed.model_validate(about)
    # Any identity: it is shown, and people judge it.
    Verifier(trusted_root=trusted).verify_artifact(hashed, bundle, UnsafeNoOp())
    return {"digest": f"sha256:{sha256}"}


def _verify_statement(trusted: Any, bundle: Any, wanted: list[str]) -> Json:
    from sigstore.verify import Verifier
    from sigstore.verify.policy import UnsafeNoOp

    kind, payload = Verifier(trusted_root=trusted).verify_dsse(bundle, UnsafeNoOp())
    statement = json.loads(payload) if kind == IN_TOTO else {}
    if statement.get("_type") not in STATEMENTS:
        raise BundleRejected("statement")
    named = {
        f"{kind}:{digest}"
        for subject in statement.get("subject", [])
        for kind, digest in subject.get("digest", {}).items()
    }
    if not (matching := [digest for digest in wanted if digest in named]):
        raise BundleRejected("subject")
    return {"digest": matching[0], "predicate": str(statement.get("predicateType", ""))}


def _describe(certificate: Any, bundle: Json) -> Json:
    logged = bundle["verificationMaterial"]["tlogEntries"][0]
    # A log's time counts where the log has signed it.
    since = int(logged.get("integratedTime") or 0) if logged.get("inclusionPromise") else 0
    at = datetime.fromtimestamp(since, UTC) if since else certificate.not_valid_before_utc
    return {
        "identity": _identity(certificate),
        "issuer": _issuer(certificate),
        "at": at.isoformat(),
        "is_log_time": bool(since),
        "log_index": str(logged.get("logIndex", "")),
    }


def _identity(certificate: Any) -> str:
    from cryptography.x509 import RFC822Name, SubjectAlternativeName, UniformResourceIdentifier

    names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    for kind in (UniformResourceIdentifier, RFC822Name):
        if found := names.get_values_for_type(kind):
            return str(found[0])
    raise BundleRejected("identity")


def _issuer(certificate: Any) -> str:
    """A DER string (v2), or its bare bytes (v1)."""
    held = {one.oid.dotted_string: one.value for one in certificate.extensions}
    if ISSUER in held:
        # One string of less than 128 bytes: a tag, a length, the text.
        tag, length, *text = held[ISSUER].value
        if tag == 0x0C and length == len(text) < 0x80:
            return bytes(text).decode()
        raise BundleRejected("identity")
    if ISSUER_V1 in held:
        return str(held[ISSUER_V1].value.decode())
    raise BundleRejected("identity")


if __name__ == "__main__":
    main()
