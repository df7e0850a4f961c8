"""Keys that are derived from an installation's secret. Needs no settings: `up` reads none."""

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF


def derived(secret: str, purpose: str) -> bytes:
    kdf = HKDF(SHA256(), 32, salt=b"countersign/v1", info=purpose.encode())
    return kdf.derive(secret.encode())


def fingerprint_of(secret: str) -> str:
    """Tells one installation's secret from another's, and nothing of it."""
    return derived(secret, "fingerprint").hex()[:16]
