"""Changes of users, agents and tokens. Each writes its audit entry in the same transaction."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from accounts import attempts, display_names, independence, role_changes, single_person, tokens
from accounts.actors import COMMAND_LINE as COMMAND_LINE
from accounts.actors import AccountRefused as AccountRefused
from accounts.actors import By, account_of
from accounts.actors import acting as acting
from accounts.models import (
    MAX_HOLD_S,
    Agent,
    AgentToken,
    Attempt,
    Proof,
    RoleChange,
    SignInLink,
    UsedName,
    User,
)
from accounts.roles import Role, ensure_roles
from accounts.teams import every_team, teams_of
from audit.services import SYSTEM, record
from core import seal
from core.client_address import host_network
from core.english import gettext as _
from core.english import ngettext
from core.errors import CountersignError
from core.text import lookalike_count

MAX_DAYS = 90
CLIENT_ID_MAX = 255
LINK_HOURS = 24
BY_LINK = _("By a sign-in link.")
# Until there are more people, the first one must be able to do everything that needs a person.
FIRST_ROLES = (Role.ADMINISTRATOR, Role.OPERATOR, Role.APPROVER, Role.AUDITOR)


class LinkRefused(CountersignError):
    """The sign-in link is unknown, used or expired; which one is not disclosed."""


@transaction.atomic
def create_agent(name: str, *, owner: User, by: By) -> Agent:
    agent = Agent(name=name, owner=owner, created_by=account_of(by))
    try:
        agent.full_clean()
    except ValidationError as error:
        raise AccountRefused(" ".join(error.messages)) from error
    agent.save()
    record("agent.created", actor=acting(by), agent=(agent.pk, name), owner=owner.username)
    return agent


@transaction.atomic
def set_agent_enabled(agent: Agent, enabled: bool, *, by: By, reason: str = "") -> None:
    """Enables or disables an agent; its tokens follow within a second in every process."""
    if not Agent.objects.filter(pk=agent.pk, enabled=not enabled).update(enabled=enabled):
        return
    agent.enabled = enabled
    action = "agent.enabled" if enabled else "agent.disabled"
    record(action, actor=acting(by), reason=reason, agent=(agent.pk, agent.name))


@transaction.atomic
def set_hold(agent: Agent, seconds: int | None, *, by: By) -> None:
    """How long a request of it waits for people to decide; None: as its toolset says."""
    if seconds is not None and not 1 <= seconds <= MAX_HOLD_S:
        raise AccountRefused(_("The first answer comes within 1 to %d seconds.") % MAX_HOLD_S)
    if seconds == agent.hold_s:
        return
    agent.hold_s = seconds
    agent.save(update_fields=["hold_s"])
    record("agent.hold_set", actor=acting(by), agent=(agent.pk, agent.name), seconds=seconds)


@transaction.atomic
def set_requires_dpop(agent: Agent, required: bool, *, by: By) -> None:
    """Whether its tokens open something only with proof of the key they are bound to (DPoP)."""
    if required == agent.requires_dpop:
        return
    agent.requires_dpop = required
    agent.save(update_fields=["requires_dpop"])
    record("agent.dpop_set", actor=acting(by), agent=(agent.pk, agent.name), required=required)


def team_named(name: str) -> Group:
    """Raises AccountRefused."""
    team = every_team().filter(name=name).first()
    if team is None:
        raise AccountRefused(_("There is no team “%s”.") % name[:150])
    return team


@transaction.atomic
def set_team(agent: Agent, team: Group | None, *, by: By) -> None:
    """For which of its owner's teams it acts; None: for the only one. Raises AccountRefused."""
    if team is not None and not teams_of(agent.owner).filter(pk=team.pk).exists():
        said = _("“%(team)s” is no team of %(person)s, who owns the agent.")
        raise AccountRefused(said % {"team": team.name, "person": agent.owner.username})
    if agent.team_id == (team.pk if team else None):
        return
    agent.team = team
    agent.save(update_fields=["team"])
    name = team.name if team else ""
    record("agent.team_set", actor=acting(by), agent=(agent.pk, agent.name), team=name)


@transaction.atomic
def issue_token(
    agent: Agent,
    *,
    by: By,
    days: int = 30,
    toolsets: Collection[str] = (),
    reads_only: bool = False,
) -> str:
    """Creates a token and returns its text, which is not stored: show it now or never. `toolsets`:
    those that it opens, by name; none: all of the agent's."""
    if not 1 <= days <= MAX_DAYS:
        raise AccountRefused(
            _("A token is valid for 1 to %(max)d days; %(days)d is not between them.")
            % {"max": MAX_DAYS, "days": days}
        )
    text = tokens.make()
    parts = tokens.parse(text)
    assert parts is not None
    token = AgentToken.objects.create(
        agent=agent,
        public_id=parts.public_id,
        digest=parts.digest,
        created_by=account_of(by),
        expires_at=timezone.now() + timedelta(days=days),
        toolsets=sorted(set(toolsets)),
        reads_only=reads_only,
    )
    record(
        "token.issued",
        actor=acting(by),
        reason=ngettext("Valid for %d day.", "Valid for %d days.", days) % days,
        agent=(agent.pk, agent.name),
        token=str(token),
        **({"toolsets": token.toolsets} if toolsets else {}),
        **({"reads_only": True} if reads_only else {}),
    )
    return text


# Until somebody revokes it: the provider's own tokens end soon.
NO_END = datetime(9999, 1, 1, tzinfo=UTC)


@transaction.atomic
def name_client(agent: Agent, *, issuer: str, client_id: str, by: User) -> AgentToken:
    """Takes the access tokens that `issuer` gives this client for the agent's owner as the agent's.
    Users who share a client have an agent each. Raises AccountRefused."""
    client_id = client_id.strip()
    if not 0 < len(client_id) <= CLIENT_ID_MAX or "\0" in client_id:
        raise AccountRefused(_("Give the client id that the identity provider shows."))
    taken = AgentToken.objects.filter(
        issuer=issuer, client_id=client_id, resource="", revoked_at=None, agent__owner=agent.owner
    ).exclude(agent=agent)
    if (other := taken.select_related("agent").first()) is not None:
        said = _(
            "This client is %(owner)s's agent “%(other)s”: each user has one agent on a client."
        )
        names = {"other": other.agent.name, "owner": agent.owner.username}
        raise AccountRefused(said % names)
    public_id = secrets.token_hex(4)
    try:
        with transaction.atomic():
            named = AgentToken.objects.create(
                agent=agent,
                public_id=public_id,
                # Of no token: nobody has its secret.
                digest=secrets.token_bytes(32),
                created_by=by,
                expires_at=NO_END,
                issuer=issuer,
                client_id=client_id,
            )
    except IntegrityError as error:
        raise AccountRefused(_("This client is named for this agent already.")) from error
    names = {"token": str(named), "issuer": issuer, "client_id": client_id}
    record("agent.client_named", actor=by.actor, agent=(agent.pk, agent.name), **names)
    return named


# Long enough to put the new token where the agent reads it.
OVERLAP = timedelta(hours=1)


@transaction.atomic
def rotate_token(token: AgentToken, *, by: By) -> str:
    """Creates a token with the same lifetime and scope; the old one expires within the hour."""
    ends = timezone.now() + OVERLAP
    days = round((token.expires_at - token.created_at) / timedelta(days=1))
    text = issue_token(
        token.agent,
        by=by,
        days=min(MAX_DAYS, max(1, days)),
        toolsets=token.toolsets,
        reads_only=token.reads_only,
    )
    if token.expires_at > ends:
        AgentToken.objects.filter(pk=token.pk).update(expires_at=ends)
    record(
        "token.rotated",
        actor=acting(by),
        reason=str(_("A new token takes its place; this one ends within the hour.")),
        agent=(token.agent_id, token.agent.name),
        token=str(token),
    )
    return text


@transaction.atomic
def revoke_token(token: AgentToken, *, by: By, reason: str = "") -> bool:
    """False if it was revoked before."""
    at = timezone.now()
    if not AgentToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=at):
        return False
    token.revoked_at = at
    agent = (token.agent_id, token.agent.name)
    record("token.revoked", actor=acting(by), reason=reason, agent=agent, token=str(token))
    return True


_NOTE_USED = """
    UPDATE accounts_agenttoken t SET last_used_at = now(), last_address = u.address
    FROM unnest(%s::bigint[], %s::text[]) AS u (id, address)
    WHERE t.id = u.id AND (t.last_used_at IS NULL OR t.last_used_at < now() - interval '1 minute')
"""


def note_used(addresses: Mapping[int, str]) -> None:
    """Updates when these tokens were last used and from where, at most once a minute."""
    places = [host_network(one) if one else "" for one in addresses.values()]
    with connection.cursor() as cursor:
        cursor.execute(_NOTE_USED, [list(addresses), places])


@transaction.atomic
def create_person(username: str, *, roles: Collection[str], by: User | None) -> User:
    """Creates a user, who can sign in only by a link until a password is set."""
    ensure_roles()
    person = User.objects.create_user(
        username, invited_by=by, unconfirmed_until=_unconfirmed_until() if by else None
    )
    groups = list(Group.objects.filter(name__in=roles))
    waiting = _names(role_changes.give(person, groups, by=by))
    given = [role for role in roles if role not in waiting]
    record("person.created", actor=acting(by), person=username, roles=given, requested=waiting)
    display_names.give_way(person, actor=acting(by))
    return person


@transaction.atomic
def rename(person: User, name: str, *, by: User) -> None:
    """Renames a user. Entries keep the name that they were written with, and `person:` rules
    still match this user by it: a name is never reassigned. Raises AccountRefused."""
    role_changes.refuse_beyond(person, by)
    before = person.username
    if why := why_not_named(name):
        raise AccountRefused(why)
    names = {"person": name, "person_id": person.pk, "before": before, "after": name}
    record("person.renamed", actor=by.actor, **names)
    person.username = name
    display_names.give_way(person, actor=by.actor)
    try:
        with transaction.atomic():
            person.save(update_fields=["username"])
    except IntegrityError as error:
        person.username = before
        raise AccountRefused(_("“%s” has just been taken.") % name) from error


def why_not_named(name: str) -> str:
    """Why nobody may take this name, as a sentence; empty if somebody may."""
    try:
        User._meta.get_field("username").run_validators(name)
    except ValidationError as error:
        return " ".join(error.messages)
    if not name or name != name.strip():
        return _("Give a name.")
    if name != User.normalize_username(name):
        said = _("Write “%s”, in usual letters: it is the same name for whoever signs in.")
        return said % User.normalize_username(name)
    if lookalike_count(name):
        return _("“%s” mixes alphabets whose letters look alike. Write it in one of them.") % name
    if UsedName.objects.filter(name__iexact=name).exists():
        return _("“%s” is or was another user's name: no name is used twice.") % name
    return ""


def _unconfirmed_until() -> datetime:
    return timezone.now() + timedelta(days=settings.INVITE_DAYS)


@transaction.atomic
def set_groups(person: User, groups: Collection[Group], *, by: User) -> list[str]:
    """Sets the user's groups from the next request on; returns the groups that wait for a second
    administrator's confirmation."""
    had, wanted = list(person.groups.all()), list(groups)
    before = _names(had)
    if Role.ADMINISTRATOR not in _names(wanted):
        keep_an_administrator(person)
    role_changes.take(person, [group for group in had if group not in wanted], by=by)
    gained = [group for group in wanted if group not in had]
    waiting = _names(role_changes.give(person, gained, by=by))
    after = sorted(set(_names(wanted)) - set(waiting))
    if before != after:
        names = {"person": person.username, "before": before, "after": after}
        record("person.groups_set", actor=by.actor, **names)
    return waiting


@transaction.atomic
def set_active(person: User, active: bool, *, by: By, reason: str = "") -> None:
    """Enables or disables a user. Disabling ends their sessions and links for ever, and suspends
    their agents' tokens. Pages and providers go by approvals/disabling.py, which ends the rest."""
    author = account_of(by)
    if not active and person == author:
        raise AccountRefused(_("You cannot disable your own account: ask another administrator."))
    role_changes.refuse_beyond(person, author)
    if not active:
        keep_an_administrator(person)
    if not User.objects.filter(pk=person.pk, is_active=not active).update(is_active=active):
        return
    person.is_active = active
    if not active:
        unused = SignInLink.objects.filter(person=person, used_at=None)
        unused.filter(expires_at__gt=timezone.now()).update(expires_at=timezone.now())
    note = role_changes.note_granted if active else role_changes.note_removed
    for group in role_changes.deciding_groups(person.groups.all()):
        note(person, group.name, by=by)
    action = "person.enabled" if active else "person.disabled"
    record(action, actor=acting(by), reason=reason, person=person.username)


def is_password_of(person: User, password: str) -> bool:
    """Verifies the password again before a change that outlives the session. Raises
    TooManyAttempts."""
    attempt = attempts.begin(Attempt.Kind.PASSWORD, person)
    if person.check_password(password):
        attempts.right(attempt)
        return True
    attempts.wrong(attempt, person.username)
    return False


@transaction.atomic
def set_password(person: User, password: str, proof: Proof | None = None) -> None:
    """Sets a password that the forms have validated; ends the user's other sessions. `proof`: by
    which a first one was confirmed."""
    person.set_password(password)
    person.save(update_fields=["password"])
    let_in_by = person.let_in_by.username if person.let_in_by else ""
    details = {"proof": proof.statement_digest} if proof else {}
    record(
        "person.password_set",
        actor=person.actor,
        person=person.username,
        let_in_by=let_in_by,
        **details,
    )


@transaction.atomic
def set_password_at_host(person: User, password: str) -> None:
    """Sets a password from the command line, where somebody other than the user may know it."""
    person.set_password(password)
    person.save(update_fields=["password"])
    role_changes.note_of_host(person, RoleChange.State.ENTERED)
    record("person.password_set", actor=COMMAND_LINE, person=person.username)


@transaction.atomic
def confirm_at_host(person: User) -> None:
    """Confirms an account from the command line. Raises AccountRefused."""
    independence.confirm(person, by=None)
    role_changes.note_of_host(person, RoleChange.State.CONFIRMED)


@transaction.atomic
def set_time_zone(person: User, time_zone: str) -> None:
    """Sets in which zone times are shown to this user and their quiet hours are."""
    person.time_zone = time_zone
    if User.objects.filter(pk=person.pk).exclude(time_zone=time_zone).update(time_zone=time_zone):
        record("person.time_zone_set", actor=person.actor, time_zone=time_zone)


def keep_an_administrator(person: User) -> None:
    # Held until the transaction ends: two administrators must not take the role from each other.
    administrators = User.objects.filter(groups__name=Role.ADMINISTRATOR, is_active=True)
    # Without the key: whoever votes meanwhile needs it, and holds what disabling waits for.
    locked = administrators.select_for_update(of=("self",), no_key=True)
    held = set(locked.values_list("pk", flat=True))
    if held == {person.pk}:
        raise AccountRefused(
            _("“%s” is the last administrator. Add another one first.") % person.username
        )


def _names(groups: Iterable[Group]) -> list[str]:
    return sorted(group.name for group in groups)


@transaction.atomic
def first_administrator() -> User:
    """Returns a new installation's administrator, and creates them if there is none.

    They have no password until one is set: `sign_in_link` signs them in.
    """
    ensure_roles()
    administrators = User.objects.filter(groups__name=Role.ADMINISTRATOR, is_active=True)
    return administrators.order_by("pk").first() or _make_administrator()


def _make_administrator() -> User:
    person, created = User.objects.get_or_create(
        username="admin", defaults={"password": "", "is_staff": True}
    )
    if created:
        person.set_unusable_password()
    person.is_staff = person.is_active = True
    person.save()
    roles = Group.objects.filter(name__in=FIRST_ROLES)
    is_alone = created and User.objects.count() == 1
    if is_alone:
        person.groups.add(*roles)
    else:
        # Others, who decide, see it on their cards.
        role_changes.give(person, list(roles), by=None)
    record(
        "person.created" if created else "person.promoted",
        actor=SYSTEM,
        reason=_("Made the first administrator, who may also operate, approve and audit."),
        person=person.username,
        roles=list(FIRST_ROLES),
    )
    if is_alone:
        single_person.begin()
    return person


def why_no_link(person: User) -> str:
    """Why no user may create a sign-in link for this one, as a sentence; empty if one may.

    Whoever has a link can act as that user: so links are only for users who never signed in.
    """
    if person.has_usable_password() or person.passkeys.exists() or person.has_identity:
        return _("“%s” has a way in of their own. A link would let others act in their name.") % (
            person.username
        )
    if person.last_login and not person.let_in_by_id:
        return _("“%s” was here before. A link would let others act in their name.") % (
            person.username
        )
    return ""


@transaction.atomic
def sign_in_link(person: User, *, by: User | None = None) -> str:
    """Creates a URL that signs `person` in once, within a day. Raises AccountRefused."""
    obstacle = why_no_link(person)
    if obstacle and by:
        raise AccountRefused(obstacle)
    # Whoever has the link acts with their roles.
    role_changes.refuse_beyond_own(person.groups.all(), by)
    if by:
        User.objects.select_for_update(of=("self",)).get(pk=person.pk)
        role_changes.refuse_link(person, by)
    if obstacle:
        role_changes.note_of_host(person, RoleChange.State.ENTERED)
    text = secrets.token_urlsafe(32)
    SignInLink.objects.create(
        person=person,
        made_by=by,
        digest=_link_digest(text),
        expires_at=timezone.now() + timedelta(hours=LINK_HOURS),
    )
    record("sign_in_link.made", actor=acting(by), person=person.username)
    return f"{settings.PUBLIC_URL}/sign-in/{text}/"


@transaction.atomic
def redeem_sign_in_link(text: str, *, at_provider: bool = False) -> User:
    """The person, whom the link, used up by it, signs in: by itself, or by connecting an account
    at an identity provider. Raises LinkRefused."""
    link = _use_sign_in_link(text)
    if link.made_by_id and not at_provider and not settings.LOCAL_SIGN_IN:
        raise LinkRefused(_("Open this invitation and sign in at the identity provider."))
    if link.made_by_id:
        # Until a way in is theirs alone, this may be whoever made the link.
        _let_in(link.person, link.made_by_id)
        _void_links(link.person)
    if link.made_by_id and at_provider:
        _end_sessions(link.person)
    # Whoever has a second factor, or comes by a provider, is not signed in yet.
    is_first = at_provider or link.person.has_second_factor
    action = "sign_in_link.used" if is_first else "person.signed_in"
    made_by = link.made_by.username if link.made_by else ""
    record(action, actor=link.person.actor, reason=BY_LINK, link_made_by=made_by)
    return link.person


def _use_sign_in_link(text: str) -> SignInLink:
    refused = LinkRefused(_("This link is unknown, was used before, or is too old."))
    link = SignInLink.objects.filter(digest=_link_digest(text)).select_related("made_by").first()
    if link is None:
        raise refused
    # Held, so that of two links of one person the second sees what the first gave.
    link.person = User.objects.select_for_update().get(pk=link.person_id)
    if not link.person.is_active or not _use(link):
        raise refused
    if link.made_by_id and why_no_link(link.person):
        # They have a way in of their own since.
        raise refused
    return link


def _let_in(person: User, link_made_by: int) -> None:
    person.let_in_by_id = link_made_by
    # Whoever was confirmed before may not be the one who comes by this link.
    person.unconfirmed_until = _unconfirmed_until()
    person.confirmed_by = person.confirmed_at = None
    person.save(update_fields=["let_in_by", "unconfirmed_until", "confirmed_by", "confirmed_at"])


def _void_links(person: User) -> None:
    now = timezone.now()
    unused = SignInLink.objects.filter(person=person, used_at=None, expires_at__gt=now)
    unused.update(expires_at=now)


def _end_sessions(person: User) -> None:
    """Ends those that links began: an account at a provider is a way in of their own."""
    person.set_unusable_password()
    person.save(update_fields=["password"])


def _use(link: SignInLink) -> bool:
    # The update decides: of two who follow the link at once, one gets in. It must look at this
    # table alone: joined, PostgreSQL would not look again at what the other has just written.
    now = timezone.now()
    unused = SignInLink.objects.filter(pk=link.pk, used_at=None, expires_at__gt=now)
    return bool(unused.update(used_at=now))


def _link_digest(text: str) -> bytes:
    return seal.sign("sign-in link", text.encode())
