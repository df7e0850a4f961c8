"""Codes, grants and tokens of clients that users allowed something, and their end.

A grant is an AgentToken that has a `resource`: disabling the user, the agent or the token ends it
in every process within a second, with all access tokens of it.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.text import slugify

from accounts import services
from accounts.agent_sign_in import access_tokens, clients
from accounts.models import (
    Agent,
    AgentToken,
    AuthorizationCode,
    RefreshToken,
    SignInClient,
    User,
)
from audit.services import SYSTEM, record
from core import seal
from core.english import gettext as _
from core.errors import CountersignError

# In the name of an agent whose client registered itself.
UNCONFIRMED = "registered"
CODE_LASTS = timedelta(seconds=60)
# A refresh token that is not used, and the whole grant, however often it is refreshed.
REFRESH_LASTS, GRANT_LASTS = timedelta(days=30), timedelta(days=90)
# The grant of a client that asks an identity provider for each access token.
ALLOWED_LASTS = timedelta(days=1)
# A client that did not get the answer may ask once more and gets the same refresh token.
GRACE = timedelta(seconds=10)
_CODE, _REFRESH, _SUCCESSOR = "authorization code", "refresh token", "next refresh token"
_CODE_OF_PAGE = "authorization code of a consent page"
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}", re.ASCII)
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
# Whether the toolset at this address still lets this agent's owner sign it in.
IsOpen = Callable[[str, Agent], bool]


class TokenRefused(CountersignError):
    """No token is given for this; says why. `person`: whose grant it would be, if that is known."""

    def __init__(self, why: str, person: User | None = None) -> None:
        super().__init__(why)
        self.person = person


class Issued(NamedTuple):
    access_token: str
    refresh_token: str
    token_type: str


def agent_of(person: User, client: SignInClient) -> Agent | None:
    """The agent that this client is for this user; None: there was none yet."""
    ids = clients.registrations_of(client)
    grants = AgentToken.objects.exclude(resource="").filter(client_id__in=ids, created_by=person)
    codes = AuthorizationCode.objects.filter(client__client_id__in=ids, person=person)
    known = Q(pk__in=grants.values("agent")) | Q(pk__in=codes.values("agent"))
    return Agent.objects.filter(known, owner=person).order_by("pk").first()


@transaction.atomic
def find_or_make_agent(person: User, client: SignInClient) -> Agent:
    """An agent of this user for this client alone: what others ask for, they neither see nor
    withdraw."""
    # One consent of a user at a time: two at once would make two agents.
    User.objects.select_for_update(no_key=True).get(pk=person.pk)
    return agent_of(person, client) or _make_agent(person, client)


def _make_agent(person: User, client: SignInClient) -> Agent:
    """Its name begins with the user, and has a mark where the client chose the rest: it takes no
    name that rules know, nor that of a client for which a host vouches."""
    label = clients.host_of(client).partition(":")[0].removeprefix("www.").replace(".", "-")
    who = slugify(person.username) or f"user-{person.pk}"
    rest = slugify(label) or f"{UNCONFIRMED}-{slugify(client.name) or 'agent'}"
    base = f"{who}-{rest}"[:90].strip("-")
    taken = set(Agent.objects.filter(name__startswith=base).values_list("name", flat=True))
    names = (base if n == 1 else f"{base}-{n}" for n in range(1, len(taken) + 2))
    return services.create_agent(
        next(name for name in names if name not in taken), owner=person, by=person
    )


@transaction.atomic
def allow(
    *,
    client: SignInClient,
    person: User,
    agent: Agent,
    resource: str,
    redirect_uri: str,
    challenge: str,
    jkt: str = "",
    page: str = "",
) -> str:
    """Writes the user's consent down and returns the code for the client. A page has one code: a
    second press gives the same one; raises TokenRefused if that was used or has expired."""
    code = _code_of(page) if page else secrets.token_urlsafe(32)
    # Two presses at once wait for each other here, whoever made their agent.
    User.objects.select_for_update(no_key=True).get(pk=person.pk)
    given = AuthorizationCode.objects.filter(digest=seal.sign(_CODE, code.encode())).first()
    if given is not None:
        if given.used_at or given.expires_at <= timezone.now():
            raise TokenRefused(_("The consent page was answered before. Start again."))
        return code
    AuthorizationCode.objects.create(
        digest=seal.sign(_CODE, code.encode()),
        client=client,
        person=person,
        agent=agent,
        resource=resource,
        redirect_uri=redirect_uri,
        challenge=challenge,
        jkt=jkt,
        page=page,
        expires_at=timezone.now() + CODE_LASTS,
    )
    SignInClient.objects.filter(pk=client.pk).update(used_at=timezone.now())
    record(
        "agent_sign_in.allowed",
        actor=person.actor,
        agent=(agent.pk, agent.name),
        client=client.name,
        client_id=client.client_id,
        resource=resource,
        redirect_uri=redirect_uri,
        **look_alike_details(client),
    )
    return code


def _code_of(page: str) -> str:
    """Computed, not kept: so it can be given once more, and is stored nowhere."""
    return seal.to_text(seal.sign(_CODE_OF_PAGE, page.encode()))


def look_alike_details(client: SignInClient) -> dict[str, str]:
    """Which client of a name that reads like this one's was allowed before, or which well-known
    product has it, for the record: the page warned of it."""
    other = clients.look_alike(client)
    said = other.client_id if other else clients.product_named(client)
    return {"reads_like": said} if said else {}


def redeem(
    code: str,
    *,
    client_id: str,
    redirect_uri: str,
    verifier: str,
    resource: str,
    is_open: IsOpen,
    jkt: str = "",
) -> Issued:
    """Raises TokenRefused. A code is used up by whatever it is shown with. `jkt`: of the key that
    the client proved to have."""
    with transaction.atomic():
        row = (
            AuthorizationCode.objects.select_for_update(of=("self",))
            # Not `token`: a request that waited for the lock would see none.
            .select_related("client", "person", "agent")
            .filter(digest=seal.sign(_CODE, code.encode(errors="replace")))
            .first()
        )
        if row is None:
            raise TokenRefused(_("The authorization code is not known."))
        why = _why_unusable(row, client_id, redirect_uri, verifier, resource)
        why = why or why_unbound(row.agent, jkt, row.jkt)
        if not why and not (is_active(row.person, row.agent) and is_open(row.resource, row.agent)):
            why = _("Agents are no longer signed in there.")
        is_first = row.used_at is None
        if is_first:
            row.used_at = timezone.now()
            if not why:
                row.token = make_grant(row.client, row.person, row.agent, row.resource, jkt)
            row.save(update_fields=["used_at", "token"])
        elif row.token is not None:
            revoke_grant(row.token, _("Its authorization code was shown twice."))
        issued = issue(row.token) if row.token and is_first else None
    if issued is None:
        raise TokenRefused(
            why if is_first else _("The authorization code was used before."), row.person
        )
    return issued


def refresh(token: str, *, client_id: str, resource: str, is_open: IsOpen, jkt: str = "") -> Issued:
    """Raises TokenRefused. A refresh token that is shown again after a while, or whose successor
    was used, was stolen: the grant ends. Within the grace it gets the same successor."""
    with transaction.atomic():
        row = _refresh_token(token, locked=True)
        if row is None:
            raise TokenRefused(_("The refresh token is not known."))
        grant = row.token
        why = _why_not_refreshed(row, client_id, resource)
        why = why or why_unbound(grant.agent, jkt if grant.jkt else "", grant.jkt)
        if not why and not is_open(grant.resource, grant.agent):
            why = _("Agents are no longer signed in there.")
        is_repeated = row.used_at is not None and not why and _is_in_grace(row, token)
        if row.used_at is not None and not is_repeated:
            why = _("The refresh token was used before.")
            revoke_grant(grant, _("Its refresh token was shown twice."))
        if is_repeated:
            issued = _issued(grant, _successor_of(token))
        elif not why:
            row.used_at = timezone.now()
            row.save(update_fields=["used_at"])
            issued = issue(grant, _successor_of(token))
    if why:
        raise TokenRefused(why, grant.agent.owner)
    return issued


def revoke(token: str, *, client_id: str) -> None:
    """Ends the grant of a refresh or access token of this client (RFC 7009); nothing else."""
    with transaction.atomic():
        grant = grant_of(token)
        # A workload has no sign-in to end: who bound its agent ends that.
        if grant is not None and grant.resource and grant.client_id == client_id:
            services.revoke_token(
                grant, by=grant.agent.actor, reason=_("The client signed itself out.")
            )


def grant_of(token: str) -> AgentToken | None:
    """The grant that a refresh or access token is of, whether they are valid or not."""
    if read := access_tokens.read(token):
        is_ours = ~Q(resource="") | Q(workload__isnull=False)
        grants = AgentToken.objects.filter(is_ours).select_related("agent__owner")
        return grants.filter(public_id=read.grant).first()
    row = _refresh_token(token)
    return row.token if row else None


def is_usable(token: str) -> float | None:
    """When a refresh or access token ends, if it still opens something."""
    grant, known = grant_of(token), AgentToken.objects
    among = known.sign_ins() if grant and grant.resource else known.workloads()
    if grant is None or not among.filter(pk=grant.pk).exists():
        return None
    if read := access_tokens.read(token):
        ends = min(read.expires_at, grant.expires_at.timestamp())
    else:
        row = _refresh_token(token)
        ends = row.expires_at.timestamp() if row and row.used_at is None else 0.0
    return ends if ends > timezone.now().timestamp() else None


def _refresh_token(token: str, *, locked: bool = False) -> RefreshToken | None:
    shown = token.encode(errors="replace")
    digests = [seal.sign(_REFRESH, shown), *seal.old_signatures(_REFRESH, shown)]
    rows = RefreshToken.objects.select_related("token__agent__owner").filter(digest__in=digests)
    if locked:
        rows = rows.select_for_update(of=("self",))
    return rows.first()


def _why_unusable(
    row: AuthorizationCode, client_id: str, redirect_uri: str, verifier: str, resource: str
) -> str:
    if row.expires_at <= timezone.now():
        return _("The authorization code has expired.")
    if row.client.client_id != client_id:
        return _("The authorization code is for another client.")
    if row.redirect_uri != redirect_uri:
        return _("The redirect address is another one than the code was given for.")
    if resource not in ("", row.resource):
        return _("The authorization code is for another address.")
    if not _VERIFIER.fullmatch(verifier) or challenge_of(verifier) != row.challenge:
        return _("The PKCE verifier does not fit.")
    return ""


def why_unbound(agent: Agent, jkt: str, wanted: str = "") -> str:
    """Why there is no token for who proved to have this key; `wanted`: the key that it has to
    be."""
    if wanted and jkt != wanted:
        return _("It is bound to a key, and the request has no proof of that key.")
    if agent.requires_dpop and not jkt:
        return _("This agent's tokens must be bound to a key: sign in with DPoP.")
    return ""


def challenge_of(verifier: str) -> str:
    """Source: RFC 7636, 4.2."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def _why_not_refreshed(row: RefreshToken, client_id: str, resource: str) -> str:
    grant = row.token
    if row.expires_at <= timezone.now():
        return _("The refresh token has expired.")
    if grant.client_id != client_id:
        return _("The refresh token is of another client.")
    if resource not in ("", grant.resource):
        return _("The refresh token is for another address.")
    if not AgentToken.objects.sign_ins().filter(pk=grant.pk).exists():
        return _("The sign-in was revoked, has expired, or its agent or user is disabled.")
    return ""


def is_active(person: User, agent: Agent) -> bool:
    return person.is_active and agent.enabled and agent.owner_id == person.pk


@transaction.atomic
def issue_allowed(
    client: SignInClient,
    agent: Agent,
    resource: str,
    *,
    jkt: str,
    issuer: str,
    subject: str,
    id_jag: str,
) -> str:
    """An access token for a client that an identity provider allowed to act for the agent's owner,
    without a refresh token: the client asks the provider each time. Raises TokenRefused."""
    if why := why_unbound(agent, jkt):
        raise TokenRefused(why, agent.owner)
    lasting = AgentToken.objects.sign_ins().filter(
        agent=agent,
        client_id=client.client_id,
        resource=resource,
        jkt=jkt,
        expires_at__gt=timezone.now() + timedelta(seconds=access_tokens.LIFETIME_S),
    )
    grant = lasting.first() or make_grant(
        client, agent.owner, agent, resource, jkt, lasts=ALLOWED_LASTS
    )
    SignInClient.objects.filter(pk=client.pk).update(used_at=timezone.now())
    text = access_tokens.issue(grant.public_id, jkt=jkt)
    issued = access_tokens.read(text)
    assert issued is not None
    record(
        "agent_sign_in.allowed_by_provider",
        actor=agent.owner.actor,
        agent=(agent.pk, agent.name),
        token=str(grant),
        client=client.name,
        client_id=client.client_id,
        issuer=issuer,
        subject=subject,
        assertion=id_jag,
        access_token=issued.token_id,
        resource=resource,
    )
    return text


def make_grant(
    client: SignInClient,
    person: User,
    agent: Agent,
    resource: str,
    jkt: str = "",
    *,
    lasts: timedelta = GRANT_LASTS,
) -> AgentToken:
    grant = AgentToken.objects.create(
        agent=agent,
        public_id=secrets.token_hex(4),
        # Of no token: nobody has its secret.
        digest=secrets.token_bytes(32),
        created_by=person,
        expires_at=timezone.now() + lasts,
        issuer=settings.PUBLIC_URL,
        client_id=client.client_id,
        resource=resource,
        jkt=jkt,
    )
    record(
        "agent_sign_in.completed",
        actor=person.actor,
        agent=(agent.pk, agent.name),
        token=str(grant),
        client=client.name,
        client_id=client.client_id,
        resource=resource,
    )
    return grant


def _is_in_grace(row: RefreshToken, token: str) -> bool:
    """Whether the client may not have got the answer: it came a moment ago, and nobody has used
    what was in it."""
    if row.used_at is None or row.used_at <= timezone.now() - GRACE:
        return False
    following = _refresh_token(_successor_of(token), locked=True)
    return following is not None and following.used_at is None


def _successor_of(token: str) -> str:
    """Computed, not kept: so it can be given once more, and is stored nowhere."""
    return f"csf_{seal.to_text(seal.sign(_SUCCESSOR, token.encode(errors='replace')))}"


def issue(grant: AgentToken, text: str = "") -> Issued:
    """`text`: of the refresh token, where it is not a new one."""
    now, text = timezone.now(), text or f"csf_{secrets.token_urlsafe(32)}"
    grant.refreshing.filter(expires_at__lt=now).delete()
    RefreshToken.objects.create(
        token=grant,
        digest=seal.sign(_REFRESH, text.encode()),
        expires_at=min(now + REFRESH_LASTS, grant.expires_at),
    )
    return _issued(grant, text)


def _issued(grant: AgentToken, refresh_token: str) -> Issued:
    access_token = access_tokens.issue(grant.public_id, jkt=grant.jkt)
    return Issued(access_token, refresh_token, "DPoP" if grant.jkt else "Bearer")


def revoke_grant(grant: AgentToken, why: str) -> None:
    services.revoke_token(grant, by=SYSTEM, reason=why)
