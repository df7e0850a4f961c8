"""Certificates of an authority that only a test knows."""

import datetime
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Gives papers to servers; `file` is what those who trust it are given."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("An authority")
        paper = self._paper(self._name, self._key, x509.BasicConstraints(ca=True, path_length=None))
        self.file = directory / "authority.pem"
        self.file.write_bytes(_pem(paper))

    def server(self, host: str) -> ssl.SSLContext:
        """For a server that is called so, whatever its address."""
        key = ec.generate_private_key(ec.SECP256R1())
        paper = self._paper(
            _named(host), key, x509.SubjectAlternativeName([x509.DNSName(host)]), by=self._key
        )
        both = self._directory / f"{host}.pem"
        both.write_bytes(_pem(paper) + _secret(key))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(both)
        return context

    def _paper(
        self,
        name: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        extension: x509.ExtensionType,
        *,
        by: ec.EllipticCurvePrivateKey | None = None,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        day = datetime.timedelta(days=1)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - day)
            .not_valid_after(now + day)
            .add_extension(extension, critical=False)
            .sign(by or key, hashes.SHA256())
        )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(paper: x509.Certificate) -> bytes:
    return paper.public_bytes(serialization.Encoding.PEM)


def _secret(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
