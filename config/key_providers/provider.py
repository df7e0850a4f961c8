"""The interface of key providers, and which there are."""

from __future__ import annotations

import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Protocol

from config.environment import networks
from config.key_providers.aws_kms import AwsKms
from config.key_providers.key_requests import KeyProviderFailed
from config.key_providers.local_keys import LocalKeys
from config.key_providers.vault_transit import VaultTransit

_MARK = "wrapped."


def _to_text(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def _from_text(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


class KeyProvider(Protocol):
    """Encrypts and decrypts a few hundred bytes under a key that it keeps. Both raise
    KeyProviderFailed with a sentence that repeats no secret. `unwrap` opens what any version of the
    key encrypted."""

    def wrap(self, secret: bytes) -> bytes: ...

    def unwrap(self, wrapped: bytes) -> bytes: ...


# By the word before the first colon; each is made of the text after it.
PROVIDERS: dict[str, Callable[[str, Sequence[str]], KeyProvider]] = {
    "local": LocalKeys,
    "vault": VaultTransit,
    "aws-kms": AwsKms,
}


def chosen() -> str:
    """The provider that secrets are wrapped with from now on; empty: they are kept as they are."""
    return os.environ.get("COUNTERSIGN_KEY_PROVIDER", "")


def is_wrapped(kept: str) -> bool:
    return kept.startswith(_MARK)


def wrap(secret: str, provider: str) -> str:
    """The secret as it is kept. Raises KeyProviderFailed."""
    sealed = _provider(provider).wrap(secret.encode())
    return f"{_MARK}{_to_text(provider.encode())}.{_to_text(sealed)}"


def unwrap(kept: str) -> str:
    """The secret that is kept so, also as it is. Raises KeyProviderFailed."""
    if not is_wrapped(kept):
        return kept
    try:
        provider, sealed = (_from_text(part) for part in kept.removeprefix(_MARK).split("."))
        return _provider(provider.decode()).unwrap(sealed).decode()
    except ValueError as error:
        raise KeyProviderFailed("The wrapped secret is damaged: put a copy of it back.") from error


def _provider(text: str) -> KeyProvider:
    kind, _colon, rest = text.partition(":")
    if kind not in PROVIDERS or not rest:
        known = ", ".join(f"{one}:…" for one in PROVIDERS)
        raise KeyProviderFailed(f"“{text[:100]}” is no provider of keys. There are {known}.")
    text = os.environ.get("COUNTERSIGN_KEY_NETWORKS", "")
    return PROVIDERS[kind](rest, networks("COUNTERSIGN_KEY_NETWORKS", text))
