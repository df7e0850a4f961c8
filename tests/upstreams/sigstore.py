"""A Sigstore of the tests' own: an authority for certificates, a log of certificates and a log of
signatures, whose keys are in its trusted root.

Sources: RFC 6962 (3.2, 2.1); sigstore protobuf-specs, Bundle v0.3 and TrustedRoot v0.1; rekor,
hashedrekord 0.0.1 and dsse 0.0.1; C2SP tlog-checkpoint; fulcio, docs/certificate-specification.md.
"""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import rfc8785
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Json = dict[str, Any]
GITHUB = "https://token.actions.githubusercontent.com"
WORKFLOW = "https://github.com/ana/weather/.github/workflows/release.yml@refs/tags/v1.2.3"
IN_TOTO = "application/vnd.in-toto+json"
SLSA = "https://slsa.dev/provenance/v1"
SIGNED_AT = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
_SCTS = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_ISSUER = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
_NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Sigstore of the tests")])


class TestSigstore:
    """Signs as `identity`; `since` is when its log says that it got the entry."""

    __test__ = False

    def __init__(self) -> None:
        self.authority_key, self.ct_key, self.log_key = (_new_key() for _ in range(3))
        self.authority = self._make_authority()

    def trusted_root(self) -> bytes:
        start = (SIGNED_AT - timedelta(days=30)).isoformat()
        valid = {"start": start}
        root = {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [_log_instance(self.log_key, valid)],
            "ctlogs": [_log_instance(self.ct_key, valid)],
            "certificateAuthorities": [
                {
                    "subject": {"organization": "tests", "commonName": "tests"},
                    "uri": "https://fulcio.example.com",
                    "certChain": {"certificates": [{"rawBytes": _text(_der(self.authority))}]},
                    "validFor": valid,
                }
            ],
            "timestampAuthorities": [],
        }
        return json.dumps(root).encode()

    def sign(self, file: bytes, **who: Any) -> bytes:
        """A bundle that signs the file itself."""
        key, certificate = self._certify(**who)
        signature, digest = key.sign(file, ec.ECDSA(hashes.SHA256())), sha256(file)
        data = {"hash": {"algorithm": "sha256", "value": digest.hexdigest()}}
        verifier = {"content": _text(_pem(certificate))}
        spec = {"data": data, "signature": {"content": _text(signature), "publicKey": verifier}}
        content = {
            "messageDigest": {"algorithm": "SHA2_256", "digest": _text(digest.digest())},
            "signature": _text(signature),
        }
        return self._bundle(certificate, "hashedrekord", spec, {"messageSignature": content}, who)

    def attest(self, *subjects: str, kind: str = IN_TOTO, **who: Any) -> bytes:
        """A bundle with a statement about digests, as "sha256:…"."""
        named = [
            {"name": "package", "digest": {one.partition(":")[0]: one.partition(":")[2]}}
            for one in subjects
        ]
        about = {"_type": "https://in-toto.io/Statement/v1", "predicateType": SLSA}
        payload = json.dumps({**about, "subject": named, "predicate": {}}).encode()
        key, certificate = self._certify(**who)
        signature = _text(key.sign(_pae(kind, payload), ec.ECDSA(hashes.SHA256())))
        envelope = {
            "payload": _text(payload),
            "payloadType": kind,
            "signatures": [{"sig": signature}],
        }
        digests = {"envelopeHash": _hash(json.dumps(envelope).encode())}
        digests["payloadHash"] = _hash(payload)
        listed = [{"signature": signature, "verifier": _text(_pem(certificate))}]
        spec = {**digests, "signatures": listed}
        return self._bundle(certificate, "dsse", spec, {"dsseEnvelope": envelope}, who)

    def _make_authority(self) -> x509.Certificate:
        key = self.authority_key.public_key()
        usage = _usage(key_cert_sign=True, crl_sign=True)
        return (
            _certificate(_NAME, key, SIGNED_AT - timedelta(days=30), timedelta(days=3650))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .sign(self.authority_key, hashes.SHA256())
        )

    def _certify(
        self, identity: str = WORKFLOW, issuer: str = GITHUB, **_other: Any
    ) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        """Of ten minutes, with the log's timestamp in it."""
        key = _new_key()
        names: list[x509.GeneralName] = (
            [x509.RFC822Name(identity)]
            if "://" not in identity
            else [x509.UniformResourceIdentifier(identity)]
        )
        by = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.authority_key.public_key())
        said = b"\x0c" + bytes([len(issuer)]) + issuer.encode()
        builder = (
            _certificate(x509.Name([]), key.public_key(), SIGNED_AT, timedelta(minutes=10))
            .add_extension(x509.SubjectAlternativeName(names), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False
            )
            .add_extension(by, critical=False)
            .add_extension(x509.UnrecognizedExtension(_ISSUER, said), critical=False)
        )
        before = builder.sign(self.authority_key, hashes.SHA256())
        stamps = self._timestamp(before.tbs_certificate_bytes)
        whole = builder.add_extension(x509.UnrecognizedExtension(_SCTS, stamps), critical=False)
        return key, whole.sign(self.authority_key, hashes.SHA256())

    def _timestamp(self, tbs: bytes) -> bytes:
        """A list of one signed timestamp about a precertificate."""
        at = struct.pack("!Q", int(SIGNED_AT.timestamp() * 1000))
        issuer = sha256(_spki(self.authority_key)).digest()
        about = issuer + struct.pack("!I", len(tbs))[1:] + tbs
        signed = b"\x00\x00" + at + struct.pack("!H", 1) + about + struct.pack("!H", 0)
        signature = self.ct_key.sign(signed, ec.ECDSA(hashes.SHA256()))
        stamp = b"\x00" + sha256(_spki(self.ct_key)).digest() + at + b"\x00\x00"
        stamp += b"\x04\x03" + struct.pack("!H", len(signature)) + signature
        listed = struct.pack("!H", len(stamp)) + stamp
        listed = struct.pack("!H", len(listed)) + listed
        assert len(listed) < 0x80
        return b"\x04" + bytes([len(listed)]) + listed

    def _bundle(
        self, certificate: x509.Certificate, kind: str, spec: Json, content: Json, who: Json
    ) -> bytes:
        body = json.dumps({"apiVersion": "0.0.1", "kind": kind, "spec": spec}).encode()
        material = {
            "certificate": {"rawBytes": _text(_der(certificate))},
            "tlogEntries": [self._log(kind, body, who.get("since", SIGNED_AT))],
        }
        version = "application/vnd.dev.sigstore.bundle.v0.3+json"
        return json.dumps(
            {"mediaType": version, "verificationMaterial": material, **content}
        ).encode()

    def _log(self, kind: str, body: bytes, since: datetime) -> Json:
        """The second of two entries, with its proof and the log's promise."""
        other, leaf = sha256(b"\x00other").digest(), sha256(b"\x00" + body).digest()
        root = sha256(b"\x01" + other + leaf).digest()
        log_id, at = sha256(_spki(self.log_key)).digest(), int(since.timestamp())
        promised: Json = {"integratedTime": at, "logID": log_id.hex(), "logIndex": 1}
        promise = rfc8785.dumps({"body": _text(body), **promised})
        note = f"rekor.example.com\n2\n{_text(root)}\n"
        signature = _text(log_id[:4] + self._sign(note.encode()))
        checkpoint = f"{note}\n— rekor.example.com {signature}\n"
        return {
            "logIndex": "1",
            "logId": {"keyId": _text(log_id)},
            "kindVersion": {"kind": kind, "version": "0.0.1"},
            "integratedTime": str(at),
            "inclusionPromise": {"signedEntryTimestamp": _text(self._sign(promise))},
            "inclusionProof": {
                "logIndex": "1",
                "rootHash": _text(root),
                "treeSize": "2",
                "hashes": [_text(other)],
                "checkpoint": {"envelope": checkpoint},
            },
            "canonicalizedBody": _text(body),
        }

    def _sign(self, data: bytes) -> bytes:
        return self.log_key.sign(data, ec.ECDSA(hashes.SHA256()))


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _certificate(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, start: datetime, lasts: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(_NAME)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + lasts)
    )


def _usage(**given: bool) -> x509.KeyUsage:
    names = (
        "digital_signature content_commitment key_encipherment data_encipherment key_agreement "
        "key_cert_sign crl_sign encipher_only decipher_only"
    )
    return x509.KeyUsage(**{name: given.get(name, False) for name in names.split()})


def _log_instance(key: ec.EllipticCurvePrivateKey, valid: Json) -> Json:
    public = {"rawBytes": _text(_spki(key)), "keyDetails": "PKIX_ECDSA_P256_SHA_256"}
    return {
        "baseUrl": "https://log.example.com",
        "hashAlgorithm": "SHA2_256",
        "publicKey": {**public, "validFor": valid},
        "logId": {"keyId": _text(sha256(_spki(key)).digest())},
    }


def _pae(kind: str, payload: bytes) -> bytes:
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def _hash(data: bytes) -> Json:
    return {"algorithm": "sha256", "value": sha256(data).hexdigest()}


def _spki(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _text(data: bytes) -> str:
    return b64encode(data).decode()
