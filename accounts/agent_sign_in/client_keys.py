"""Keys that clients declare, to sign what they ask for tokens with (private_key_jwt).

Source: RFC 7591, 2; draft-ietf-oauth-client-id-metadata-document, 6.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from accounts.oidc.metadata import ALGORITHMS
from accounts.workloads.public_keys import KeysRefused, read_keys
from core.english import gettext as _
from core.guarded_http import check_url
from core.outbound import AddressRefused

SIGNED = "private_key_jwt"
URL_MAX = 500


def declared_keys(said: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a client that are about its keys. Raises KeysRefused."""
    must_sign = said.get("token_endpoint_auth_method") == SIGNED
    offered = said.get("token_endpoint_auth_methods_supported")
    if not must_sign and not (isinstance(offered, list) and SIGNED in offered):
        return {"signs_requests": False, "signing_alg": "", "keys": [], "keys_url": ""}
    keys, url = said.get("jwks"), said.get("jwks_uri")
    if (keys is None) == (url is None):
        raise KeysRefused(_("A client that signs names “jwks” or “jwks_uri”, and not both."))
    return {
        "signs_requests": must_sign,
        "signing_alg": _algorithm(said.get("token_endpoint_auth_signing_alg")),
        "keys": [] if keys is None else _inline(keys),
        "keys_url": "" if url is None else _checked_url(url),
    }


def _algorithm(given: object) -> str:
    if given is None:
        return ""
    if not isinstance(given, str) or given not in ALGORITHMS:
        raise KeysRefused(_("The client signs in a way that is not taken here."))
    return given


def _inline(keys: object) -> list[dict[str, Any]]:
    """Those for signatures."""
    found = keys.get("keys") if isinstance(keys, dict) else None
    if not isinstance(found, list):
        raise KeysRefused(_("The text holds no public key that can be read."))
    signing = [one for one in found if not isinstance(one, dict) or one.get("use", "sig") == "sig"]
    return read_keys(json.dumps({"keys": signing}))


def _checked_url(url: object) -> str:
    if not isinstance(url, str) or not 0 < len(url) <= URL_MAX:
        raise KeysRefused(_("The address of the client's keys cannot be used."))
    try:
        check_url(url, settings.CLIENT_NETWORKS)
    except AddressRefused as error:
        raise KeysRefused(_("The client's keys: %s") % error) from error
    return url
