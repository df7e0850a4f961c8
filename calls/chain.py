"""The chain of authority behind a call, from its user to its server, for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from accounts.tokens import recorded_groups
from calls.models import Call

Facts = Mapping[str, Any]


class ChainLink(NamedTuple):
    """`proof`: by which issuer and token it is who it is; empty where there is none."""

    label: str
    name: str
    proof: str = ""


def chain_of(
    call: Call,
    signed_in: Facts | None,
    credential: Facts | None,
    approvers: Sequence[tuple[str, str]] = (),
) -> list[ChainLink]:
    """`signed_in` and `credential`: as the call's first entry has them; `approvers`: names, each
    with how it was confirmed."""
    links = [ChainLink(_("User"), call.person.shown_name, _subject(signed_in or {}))]
    if signed_in:
        name = signed_in.get("client") or signed_in.get("client_id", "")
        links.append(ChainLink(_("Client"), name, _proof(signed_in, signed_in.get("token"))))
    token = str(call.token) if call.token and not signed_in else ""
    links.append(ChainLink(_("Agent"), call.agent.name, token))
    links += [ChainLink(_("Approver"), name, proof) for name, proof in approvers]
    if credential:
        name = credential_name(credential.get("owner", ""))
        links.append(ChainLink(_("Credential"), name, _proof(credential, _number(credential))))
    if call.server:
        links.append(ChainLink(_("Server"), call.server.slug, call.server.url))
    return links


def credential_name(owner: str) -> str:
    """Whose credential it is, as CredentialOwner.label names it, for pages."""
    kind, colon, name = owner.partition(":")
    if colon:
        return (_("The agent %s's") if kind == "agent" else _("The team %s's")) % name
    return _("%s's own") % owner if owner else _("The installation's")


def _subject(signed_in: Facts) -> str:
    """With the groups that the token names, which rules may have looked at."""
    subject, groups = str(signed_in.get("subject", "")), recorded_groups(signed_in)
    return f"{subject} ({', '.join(groups)})" if groups else subject


def _number(credential: Facts) -> str:
    """The credential and how often it was renewed."""
    return f"#{credential['id']}.{credential['generation']}" if "id" in credential else ""


def _proof(said: Facts, token: str | None) -> str:
    return " ".join(filter(None, (said.get("issuer"), token)))
