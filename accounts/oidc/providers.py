"""The identity providers of the host's file (COUNTERSIGN_OIDC_FILE, TOML or JSON).

Only the host's administrator writes it: it says who may come in, and with which roles.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tomllib
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from audit.services import Actor
from core.english import gettext as _
from core.errors import CountersignError

log = logging.getLogger(__name__)

_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
# Source: RFC 6749, 3.3.
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]*")
FIRST_SIGN_IN = ("invited", "domain", "group")
EXTERNAL_IDS = ("", "sub", "oid")
# They are written with each call.
TOKEN_GROUPS_MAX, GROUP_NAME_MAX = 100, 100
AUTH_METHODS = ("", "client_secret_basic", "client_secret_post", "none")


# Whoever is not signed in reads it; the log says more.
_NO_SECRET = _("This identity provider is not set up here to the end: ask whoever runs the host.")


class BadConfiguration(CountersignError):
    """The file cannot be used; says why, in English for the log."""


class UnknownProvider(CountersignError):
    """The file names no provider with this id."""


@dataclass(frozen=True, slots=True)
class IdentityProvider:
    """One provider: where it is, who we are there, and whom its word lets in."""

    slug: str
    issuer: str
    client_id: str
    name: str = ""
    # One of the two, or neither for a public client.
    client_secret_env: str = ""
    client_secret_file: str = ""
    token_endpoint_auth_method: str = ""
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    # Who may come in that is not linked yet: invited people, a verified mail domain, a group.
    first_sign_in: str = "invited"
    domains: tuple[str, ...] = ()
    allowed_groups: tuple[str, ...] = ()
    # Of an account that is made at a first sign-in, besides those by `groups`.
    roles: tuple[str, ...] = ("Viewer",)
    groups_claim: str = "groups"
    # The provider's group, and ours.
    groups: dict[str, str] = field(default_factory=dict)
    # The claim that is the `externalId` of a user whom the provider made here by SCIM. No address
    # and no name: those go from one person to another.
    scim_external_id: str = ""
    # Asked for at each sign-in, and refused without one of them.
    acr_values: tuple[str, ...] = ()
    # Whether one of `acr_values` replaces the second factor at sign-in.
    replaces_second_factor: bool = False
    # So old may the sign-in at the provider be, in seconds; None: as old as the provider likes.
    max_age_s: int | None = None
    # Approvals may be confirmed there by a new sign-in with one of these; none: they may not.
    step_up_acr_values: tuple[str, ...] = ()
    # The claim that says how strong a sign-in was; Entra ID has “acrs”.
    acr_claim: str = "acr"
    # Its access tokens are taken of agents' clients that an administrator named; the scope that
    # each needs, if any, and groups of the provider, of which each needs one.
    agent_tokens: bool = False
    agent_scope: str = ""
    agent_groups: tuple[str, ...] = ()
    # Groups of the provider that rules see in those tokens, each with its name in rules.
    token_groups: dict[str, str] = field(default_factory=dict)
    # Clients that it allows to act for its users without asking them (ID-JAG).
    id_jag_clients: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return self.name or self.slug

    @property
    def actor(self) -> Actor:
        return Actor("system", None, self.label)

    @property
    def callback_url(self) -> str:
        return f"{settings.PUBLIC_URL}/sign-in/with/{self.slug}/callback/"

    @property
    def client_secret(self) -> str:
        """Read each time: a file may be renewed. Raises BadConfiguration."""
        if self.client_secret_env:
            return _from_environment(self.client_secret_env)
        return _from_file(self.client_secret_file) if self.client_secret_file else ""


def providers() -> list[IdentityProvider]:
    """In the file's order; none without a file. Raises BadConfiguration."""
    path = settings.OIDC_FILE
    try:
        changed = path.stat().st_mtime_ns
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadConfiguration(f"{path} cannot be read.") from error
    return list(_read(path, changed))


def provider_of(issuer: str) -> IdentityProvider:
    """Raises UnknownProvider, as `provider`."""
    for one in usable_providers():
        if one.issuer == issuer:
            return one
    raise UnknownProvider(_("There is no such identity provider."))


def usable_providers() -> list[IdentityProvider]:
    """For pages: a file that cannot be used is written to the log, and shows none."""
    try:
        return providers()
    except BadConfiguration as error:
        log.error("no provider can be used: %s", error)
        return []


def provider(slug: str) -> IdentityProvider:
    """Raises UnknownProvider, also where the file cannot be used: the log says why."""
    for one in usable_providers():
        if one.slug == slug:
            return one
    raise UnknownProvider(_("There is no such identity provider."))


@lru_cache(maxsize=4)
def _read(path: Path, changed: int) -> tuple[IdentityProvider, ...]:
    try:
        text = path.read_text()
        loaded = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise BadConfiguration(f"{path} cannot be read: {error}.") from error
    found = loaded.get("providers") if isinstance(loaded, dict) else None
    if not isinstance(found, dict):
        raise BadConfiguration(f"{path} has no table “providers”.")
    made = tuple(_provider(slug, values) for slug, values in found.items())
    _check_issuers(made)
    return made


def _provider(slug: str, values: Any) -> IdentityProvider:
    if not _SLUG.fullmatch(slug):
        _refuse(slug, "its name in the file may have small letters, digits and hyphens only")
    if not isinstance(values, dict):
        _refuse(slug, "it is no table")
    known = {one.name for one in fields(IdentityProvider)} - {"slug"}
    if unknown := sorted(set(values) - known):
        _refuse(slug, f"“{unknown[0]}” is no setting")
    for name in ("issuer", "client_id"):
        if not values.get(name):
            _refuse(slug, f"“{name}” is missing")
    made = IdentityProvider(slug=slug, **{name: _value(values[name]) for name in values})
    _check(made)
    return made


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _check(one: IdentityProvider) -> None:
    for item in fields(IdentityProvider):
        value, wanted = getattr(one, item.name), str(item.type)
        if not _is_of(value, wanted):
            _refuse(one.slug, f"“{item.name}” has another type")
    if one.first_sign_in not in FIRST_SIGN_IN:
        _refuse(one.slug, "“first_sign_in” is invited, domain or group")
    if one.first_sign_in == "domain" and not one.domains:
        _refuse(one.slug, "“domains” is missing")
    if one.first_sign_in == "group" and not one.allowed_groups:
        _refuse(one.slug, "“allowed_groups” is missing")
    if one.replaces_second_factor and not one.acr_values:
        _refuse(one.slug, "“acr_values” is missing")
    if not _SCOPE.fullmatch(one.agent_scope):
        _refuse(one.slug, "“agent_scope” is one scope, without spaces")
    if len(one.token_groups) > TOKEN_GROUPS_MAX:
        _refuse(one.slug, f"“token_groups” names more than {TOKEN_GROUPS_MAX} groups")
    if not all(0 < len(name) <= GROUP_NAME_MAX for name in one.token_groups.values()):
        _refuse(one.slug, f"names in “token_groups” have 1 to {GROUP_NAME_MAX} characters")
    if one.scim_external_id not in EXTERNAL_IDS:
        _refuse(one.slug, "“scim_external_id” is sub or oid")
    if one.token_endpoint_auth_method not in AUTH_METHODS:
        _refuse(one.slug, "“token_endpoint_auth_method” is not one that is known here")


def _is_of(value: Any, wanted: str) -> bool:
    match wanted:
        case "str":
            return isinstance(value, str)
        case "bool":
            return isinstance(value, bool)
        case "int | None":
            return value is None or (isinstance(value, int) and not isinstance(value, bool))
        case "dict[str, str]":
            return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
    return isinstance(value, tuple) and all(isinstance(one, str) for one in value)


def _check_issuers(made: tuple[IdentityProvider, ...]) -> None:
    """People are known by issuer and subject: two providers with one issuer would be one."""
    issuers = [one.issuer for one in made]
    for one in made:
        if issuers.count(one.issuer) > 1:
            _refuse(one.slug, "another one has the same issuer")


def _refuse(slug: str, why: str) -> None:
    raise BadConfiguration(f"The provider “{slug}” cannot be used: {why}.")


def _from_environment(name: str) -> str:
    if value := os.environ.get(name, ""):
        return value
    log.error("the variable %s, which holds a client secret, is not set", name)
    raise BadConfiguration(_NO_SECRET)


def _from_file(name: str) -> str:
    try:
        return Path(name).read_text().strip()
    except OSError as error:
        log.error("the file %s, which holds a client secret, cannot be read", name)
        raise BadConfiguration(_NO_SECRET) from error
