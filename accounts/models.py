"""Users, the agents that they own, and the tokens of agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import pgtrigger
from django.contrib.auth.models import AbstractUser, Group
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from accounts.agent_sign_in_models import AuthorizationCode as AuthorizationCode
from accounts.agent_sign_in_models import DeviceCode as DeviceCode
from accounts.agent_sign_in_models import RefreshToken as RefreshToken
from accounts.agent_sign_in_models import SignInClient as SignInClient
from accounts.custom_role_models import CustomRole as CustomRole
from accounts.custom_role_models import tags
from accounts.relying_party import rp_id
from accounts.scim_models import ScimGroup as ScimGroup
from accounts.scim_models import ScimToken as ScimToken
from accounts.scim_models import ScimUser as ScimUser
from accounts.scopes import ScopedRole, ScopeTarget, scoped_role
from accounts.service_account_models import ServiceAccount as ServiceAccount
from accounts.service_account_models import ServiceToken as ServiceToken
from accounts.user_agents import device
from accounts.workload_models import UsedAssertion as UsedAssertion
from accounts.workload_models import UsedProof as UsedProof
from accounts.workload_models import WorkloadIdentity as WorkloadIdentity
from audit.models import ClockTime
from audit.services import Actor
from core.triggers import Keep, Refuse, StrictTrigger, append_only, configuration


class SessionEpoch(StrictTrigger):
    """Ends all sessions of a disabled account, also where an older copy of the row is saved
    later."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.UpdateOf("is_active", "session_epoch")  # type: ignore[no-untyped-call]
    func = """
        NEW.session_epoch = OLD.session_epoch
            + (CASE WHEN OLD.is_active AND NOT NEW.is_active THEN 1 ELSE 0 END);
        RETURN NEW;
    """


class NamedForGood(StrictTrigger):
    """A name belongs to one user for ever: it is stored when assigned, and changed with an audit
    entry."""

    level = pgtrigger.Row
    when = pgtrigger.After
    operation = pgtrigger.Insert | pgtrigger.UpdateOf("username")  # type: ignore[no-untyped-call]
    func = """
        IF TG_OP = 'UPDATE' THEN
            IF NEW.username = OLD.username THEN
                RETURN NULL;
            ELSIF NOT EXISTS (
                SELECT FROM audit_entry e WHERE e.action = 'person.renamed'
                AND e.transaction = pg_current_xact_id()
                AND e.details ->> 'person_id' = NEW.id::text
                AND e.details ->> 'after' = NEW.username)
            THEN
                RAISE EXCEPTION 'nobody is renamed without an entry';
            END IF;
        END IF;
        INSERT INTO accounts_usedname (name, person_id) VALUES (NEW.username, NEW.id);
        RETURN NULL;
    """


def shown_name(username: str, display_name: str) -> str:
    """Never a display name alone: people change theirs, and entries have the username."""
    return f"{display_name} ({username})" if display_name else username


# As scopes.scoped_role takes them.
SCOPED_FIELDS = (
    "group__name",
    "scoped_permissions",
    "server_tags",
    "toolset_tags",
    "agent_tags",
)


class User(AbstractUser):
    """A person who uses the console."""

    time_zone = models.CharField(max_length=64, default="UTC")
    # Of their pages; empty: as their browser asks.
    language = models.CharField(max_length=16, blank=True, default="", editable=False)
    # Who made the link by which this person came in; nobody if it was made at the host.
    let_in_by = models.ForeignKey(
        "self", models.PROTECT, null=True, editable=False, related_name="+"
    )
    # Who made the account; nobody if it was made at the host.
    invited_by = models.ForeignKey(
        "self", models.PROTECT, null=True, editable=False, related_name="+"
    )
    # Until then the account counts as its inviter's (accounts/independence.py), unless somebody
    # else confirms that another person is behind it.
    unconfirmed_until = models.DateTimeField(null=True, editable=False)
    confirmed_by = models.ForeignKey(
        "self", models.PROTECT, null=True, editable=False, related_name="+"
    )
    confirmed_at = models.DateTimeField(null=True, editable=False)
    # Whether a link for a new password may be sent to their confirmed address.
    reset_by_mail_since = models.DateTimeField(null=True, editable=False)
    # Counts how often the account was disabled; sessions hold for one of these times alone.
    session_epoch = models.PositiveIntegerField(default=0, editable=False)

    # Finds what the request is about, where its page has permissions for some tags alone.
    find_target: Callable[[], ScopeTarget | None] | None = None

    class Meta(AbstractUser.Meta):
        permissions = [
            ("view_access_review", "Can view who has what access"),
            ("sign_access_review", "Can sign off who has what access"),
        ]
        triggers = [
            *configuration("username", "is_active", "unconfirmed_until"),
            SessionEpoch(name="session_epoch"),
            NamedForGood(name="named_for_good"),
        ]
        indexes = [
            # Looked up for each held call, and nearly always empty.
            models.Index(
                name="accounts_user_unconfirmed",
                fields=["unconfirmed_until"],
                condition=models.Q(unconfirmed_until__isnull=False),
            )
        ]

    @property
    def actor(self) -> Actor:
        return Actor("person", self.pk, self.username)

    @property
    def shown_name(self) -> str:
        return shown_name(self.username, self.first_name)

    @property
    def initials(self) -> str:
        """One letter or two of their display name or name."""
        words = (self.get_full_name() or self.username).split()
        return "".join(word[0] for word in (*words[:1], *words[1:][-1:])).upper()

    @cached_property
    def proof_means(self) -> tuple[bool, bool]:
        """Whether this user had a passkey for this site, and an authenticator app, when loaded."""
        passkeys = self.passkeys.usable().filter(rp_id=rp_id())
        codes = CodeApp.objects.filter(person=self).exclude(confirmed_at=None)
        return passkeys.exists(), codes.exists()

    @property
    def has_second_factor(self) -> bool:
        return any(self.proof_means)

    @cached_property
    def is_factor_required(self) -> bool:
        """Whether a group of this user needed a second factor, when loaded."""
        return FactorRequirement.objects.filter(group__user=self).exists()

    @property
    def lacks_factor(self) -> bool:
        """Whether they have to set one up before anything else: every page asks (core/http.py)."""
        return self.is_factor_required and not self.has_second_factor

    @cached_property
    def group_names(self) -> list[str]:
        """The user's groups when loaded; approvals/eligibility.py reads them again."""
        return sorted(self.groups.values_list("name", flat=True))

    @cached_property
    def scoped_roles(self) -> list[ScopedRole]:
        """The user's roles that are limited to tags, when loaded."""
        rows = CustomRole.objects.filter(group__user=self).exclude(scoped_permissions=[])
        return [scoped_role(*row) for row in rows.values_list(*SCOPED_FIELDS)]

    @cached_property
    def own_permissions(self) -> frozenset[str]:
        """Permissions that this user has by no role, when loaded."""
        rows = self.user_permissions.values_list("content_type__app_label", "codename")
        return frozenset(f"{app}.{codename}" for app, codename in rows)

    @cached_property
    def target(self) -> ScopeTarget | None:
        return self.find_target() if self.find_target else None

    @cached_property
    def all_names(self) -> frozenset[str]:
        """The user's current and former names: rules may use a former one."""
        return frozenset({self.username, *self.names.values_list("name", flat=True)})

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        # Where Django makes it: of the current secret, and of those before it.
        bound = f"{self.session_epoch}.{self.password}"
        salt = "accounts.models.User.session"
        return salted_hmac(salt, bound, secret=secret, algorithm="sha256").hexdigest()

    @property
    def is_vouched_for(self) -> bool:
        """Whether nobody else can have signed in as this user by a link."""
        return self.let_in_by_id is None or self.has_usable_password() or self.has_identity

    @cached_property
    def has_identity(self) -> bool:
        """Whether an account at an identity provider may sign this user in, when loaded."""
        return self.identities.connected().exists()

    @property
    def is_confirmed(self) -> bool:
        """Whether this account counts as a different person than its inviter."""
        return self.unconfirmed_until is None or self.unconfirmed_until <= timezone.now()


class SinglePersonEndsOnce(StrictTrigger):
    """Single-person mode starts while at most one user exists, and ends once."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Insert | pgtrigger.Update
    func = """
        IF TG_OP = 'INSERT' AND (
            NEW.ended_at IS NOT NULL OR (SELECT count(*) FROM accounts_user) > 1)
        THEN
            RAISE EXCEPTION 'single-person mode begins with the first person';
        ELSIF TG_OP = 'UPDATE' AND (
            OLD.ended_at IS NOT NULL OR NEW.ended_at IS NULL
            OR (NEW.id, NEW.began_at) IS DISTINCT FROM (OLD.id, OLD.began_at))
        THEN
            RAISE EXCEPTION 'single-person mode only ends';
        END IF;
        RETURN NEW;
    """


class SinglePersonMode(models.Model):
    """The one row that says whether a single user may decide on calls of their own agents."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    began_at = models.DateTimeField(db_default=ClockTime(), editable=False)
    ended_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(name="accounts_one_single_person_mode", condition=models.Q(id=1))
        ]
        triggers = [
            SinglePersonEndsOnce(name="only_ends"),
            Refuse(name="no_delete", operation=pgtrigger.Delete),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
        ]

    def __str__(self) -> str:
        return "single-person mode"


class UsedName(models.Model):
    """Every name that a user has or had. Rules and entries identify the user by it."""

    name = models.CharField(max_length=150)
    person = models.ForeignKey(User, models.PROTECT, related_name="names")
    since = models.DateTimeField(db_default=ClockTime())

    class Meta:
        ordering = ["since"]
        default_permissions = ()
        constraints = [
            # “Alice” beside “alice” would be read as the same.
            models.UniqueConstraint(Lower("name"), name="accounts_a_name_is_used_once")
        ]
        triggers = append_only()

    def __str__(self) -> str:
        return self.name


class FactorRequirement(models.Model):
    """A group whose people need a second factor before they do anything else."""

    group = models.OneToOneField(
        Group, models.CASCADE, primary_key=True, related_name="factor_requirement"
    )

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"second factor of {self.group_id}"


class RoleChange(models.Model):
    """A change of a role that approves or administers: granted, removed or requested."""

    class State(models.TextChoices):
        REQUESTED = "requested", _("Requested")
        GIVEN = "given", _("Granted")
        REFUSED = "refused", _("Denied")
        TAKEN = "taken", _("Revoked")
        # Somebody who has the role may be another person now, by the host's command line.
        ENTERED = "entered", _("Sign-in link created at the host")
        CONFIRMED = "confirmed", _("Confirmed at the host")
        RESET = "reset", _("Second factor removed")

    person = models.ForeignKey(User, models.PROTECT, related_name="role_changes")
    # The group's name: the change stays true when the group is gone.
    role = models.CharField(max_length=150)
    # The identity provider whose groups say so; empty: a person, or the host.
    source = models.CharField(max_length=100, blank=True, default="")
    state = models.CharField(max_length=9, choices=State, default=State.REQUESTED)
    # Nobody: done at the host.
    asked_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    asked_at = models.DateTimeField(default=timezone.now, editable=False)
    # Of a request: the second administrator.
    decided_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="accounts_one_request_a_role",
                fields=["person", "role"],
                condition=models.Q(state="requested"),
            )
        ]
        indexes = [models.Index(name="accounts_rolechange_decided", fields=["decided_at"])]

    def __str__(self) -> str:
        return f"{self.role} of {self.person}: {self.state}"

    @property
    def was_requested(self) -> bool:
        """Whether a second administrator, or the host's, had to confirm the change."""
        return self.decided_at != self.asked_at


class FactorReset(models.Model):
    """An administrator's request to remove a user's second factors, for another one to confirm."""

    class State(models.TextChoices):
        REQUESTED = "requested", _("Requested")
        DONE = "done", _("Confirmed")
        REFUSED = "refused", _("Denied")

    person = models.ForeignKey(User, models.PROTECT, related_name="factor_resets")
    reason = models.CharField(max_length=300)
    state = models.CharField(max_length=9, choices=State, default=State.REQUESTED)
    asked_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(default=timezone.now, editable=False)
    decided_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    decided_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="accounts_one_factor_reset",
                fields=["person"],
                condition=models.Q(state="requested"),
            )
        ]
        triggers = [
            Keep(
                name="keep_factor_reset",
                columns=["person_id", "reason", "asked_by_id", "asked_at"],
            )
        ]

    def __str__(self) -> str:
        return f"second factors of {self.person}: {self.state}"


# Of a request that waits for people: SDKs and proxies give up after 60 s.
MAX_HOLD_S = 55


VIEW_AGENTS = "accounts.view_agent"


class AgentQuerySet(models.QuerySet["Agent"]):
    def owned_by(self, person: User) -> Self:
        return self.filter(owner=person)

    def visible_to(self, person: User) -> Self:
        """All agents for roles that may see them; for other users, the agents that they own."""
        return self if person.has_perm(VIEW_AGENTS) else self.owned_by(person)


class Agent(models.Model):
    """A program that calls tools on behalf of the user who owns it."""

    name = models.SlugField(_("name"), max_length=100, unique=True)
    owner = models.ForeignKey(User, models.PROTECT, related_name="agents")
    enabled = models.BooleanField(_("enabled"), default=True)
    # A request of it that waits for people is answered after so long; empty: as its toolset says.
    hold_s = models.PositiveSmallIntegerField(
        _("first answer within seconds"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_HOLD_S)],
    )
    # Whether only tokens that are bound to a client's key open something (accounts/dpop.py).
    requires_dpop = models.BooleanField(default=False, db_default=False)
    # For which of its owner's teams it acts (accounts/teams.py); empty: for the only one.
    team = models.ForeignKey(Group, models.SET_NULL, null=True, editable=False, related_name="+")
    tags = tags()
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # Never counted among those who decide on its calls; nobody if it was made at the host.
    created_by = models.ForeignKey(
        User, models.PROTECT, null=True, editable=False, related_name="+"
    )

    objects = AgentQuerySet.as_manager()

    # What REST framework asks of whoever stands behind a request.
    is_authenticated = True

    class Meta:
        ordering = ["name"]
        triggers = [*configuration(), Keep(name="keep_creator", columns=["created_by_id"])]

    def __str__(self) -> str:
        return self.name

    @property
    def actor(self) -> Actor:
        return Actor("agent", self.pk, self.name)

    def is_visible_to(self, person: User) -> bool:
        """Whether AgentQuerySet.visible_to has it."""
        return self.owner_id == person.pk or person.has_perm(VIEW_AGENTS)


class AgentTokenQuerySet(models.QuerySet["AgentToken"]):
    def valid(self) -> Self:
        return self.filter(
            revoked_at=None,
            expires_at__gt=timezone.now(),
            agent__enabled=True,
            agent__owner__is_active=True,
        )

    def sign_ins(self) -> Self:
        """Valid ones of clients that the agents' present owners signed in themselves."""
        signed_in = self.valid().exclude(resource="")
        return signed_in.filter(agent__owner=models.F("created_by"))

    def workloads(self) -> Self:
        """Valid ones of programs that have no user (accounts/workloads)."""
        return self.valid().exclude(workload=None)

    def at_providers(self) -> Self:
        """Clients at identity providers, whose tokens those sign."""
        return self.filter(resource="", workload=None).exclude(issuer="")


class AgentAddress(models.Model):
    """An address from which an agent's tokens were used (accounts/agent_addresses.py)."""

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="addresses", db_constraint=False)
    # Of IPv6, the network of 64 bits, which one host has.
    address = models.CharField(max_length=50)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="accounts_address_once", fields=["agent", "address"]),
        ]
        indexes = [models.Index(name="accounts_address_last", fields=["last_at"])]

    def __str__(self) -> str:
        return f"{self.address} of agent {self.agent_id}"


class AgentToken(models.Model):
    """An agent's bearer token `csa_<id>_<secret>_<crc>`, stored as an HMAC."""

    agent = models.ForeignKey(Agent, models.PROTECT, related_name="tokens")
    public_id = models.CharField(max_length=8, unique=True)
    digest = models.BinaryField(max_length=32)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    created_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Written at most once a minute, and never a reason for caches to be read again.
    last_used_at = models.DateTimeField(null=True, blank=True)
    # Of IPv6, the network of 64 bits, which one host has.
    last_address = models.CharField(max_length=50, blank=True, db_default="", default="")
    # The names of the toolsets that it opens; empty: all of its agent's.
    toolsets = ArrayField(models.SlugField(max_length=64), default=list, db_default=[], blank=True)
    # Whether it calls read-only tools alone.
    reads_only = models.BooleanField(default=False, db_default=False)
    # In place of a secret of ours: a client at an identity provider, whose access tokens are the
    # agent's (accounts/oidc/access_tokens.py), or a program with a WorkloadIdentity.
    issuer = models.CharField(max_length=500, blank=True, db_default="", default="")
    client_id = models.CharField(max_length=255, blank=True, db_default="", default="")
    # Of a sign-in at our own authorization server, where the user is the agent's owner: the one
    # address that its access tokens open (accounts/agent_sign_in).
    resource = models.CharField(max_length=700, blank=True, db_default="", default="")
    # The thumbprint of the client's key, which its refresh tokens are bound to (accounts/dpop.py).
    jkt = models.CharField(max_length=43, blank=True, db_default="", default="")

    objects = AgentTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                name="accounts_client_once_an_agent",
                fields=["issuer", "client_id", "agent"],
                condition=models.Q(revoked_at=None, resource="") & ~models.Q(issuer=""),
            )
        ]
        triggers = [
            *configuration("revoked_at", "expires_at", "digest", "agent_id"),
            Keep(
                name="keep_issuer",
                columns=["agent_id", "created_by_id", "issuer", "client_id", "resource", "jkt"],
            ),
            Keep(name="keep_scope", columns=["toolsets", "reads_only"]),
        ]

    def __str__(self) -> str:
        return f"{self.client_id} ({self.public_id})" if self.issuer else f"csa_{self.public_id}_…"


class SignInLink(models.Model):
    """A one-time sign-in link, for the first administrator and for locked-out users."""

    person = models.ForeignKey(User, models.CASCADE, related_name="+")
    digest = models.BinaryField(max_length=32, unique=True)
    # Nobody: made at the host, by somebody who may do everything there anyway.
    made_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()


class Attempt(models.Model):
    """A failed try of a password or code, stored while it counts towards the limit."""

    class Kind(models.TextChoices):
        SIGN_IN = "sign_in"
        PASSWORD = "password"  # noqa: S105 a word, not one
        CODE = "code"
        FACTOR = "factor"
        RESET = "reset"
        PASSKEY = "passkey"
        PROVIDER = "provider"
        SCIM = "scim"
        SLACK = "slack"
        LINK = "link"
        REJECTED = "rejected"
        DEVICE = "device"

    kind = models.CharField(max_length=8, choices=Kind)
    # Digests: in the name's field people also type their passwords.
    who = models.CharField(max_length=64)
    address = models.CharField(max_length=64, blank=True)
    # A browser where this person signed in before.
    browser = models.CharField(max_length=64, blank=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(name="accounts_attempt_who", fields=["who", "at"]),
            models.Index(name="accounts_attempt_address", fields=["address", "at"]),
            models.Index(name="accounts_attempt_at", fields=["at"]),
        ]


class PasskeyQuerySet(models.QuerySet["Passkey"]):
    def usable(self) -> Self:
        return self.filter(removed_at=None)


class Passkey(models.Model):
    """A WebAuthn credential. Stored after its removal too, so that its signatures can be
    verified."""

    person = models.ForeignKey(User, models.PROTECT, related_name="passkeys")
    name = models.CharField(_("name"), max_length=60)
    credential_id = models.BinaryField(max_length=1024, unique=True)
    # COSE; its digest stands in the entry that the key was added with.
    public_key = models.BinaryField(max_length=4096)
    rp_id = models.CharField(max_length=255)
    sign_count = models.BigIntegerField()
    # Copied between devices by its maker's account.
    synced = models.BooleanField()
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    objects = PasskeyQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        default_permissions = ()

    def __str__(self) -> str:
        return self.name


class CodeApp(models.Model):
    """An authenticator app that shows a user's one-time codes (TOTP, RFC 6238)."""

    person = models.OneToOneField(User, models.PROTECT, related_name="code_app")
    sealed_secret = models.BinaryField()
    # Before its first right code it counts for nothing.
    confirmed_at = models.DateTimeField(null=True)
    # The latest 30 seconds whose code was used: a code works once.
    last_step = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"codes of {self.person}"


class IdentityQuerySet(models.QuerySet["Identity"]):
    def connected(self) -> Self:
        return self.filter(disconnected_at=None)


class Identity(models.Model):
    """A user's account at an identity provider. The two columns name it for ever; an address of
    mail names nobody. Disconnected, it stays: it can become nobody else's."""

    person = models.ForeignKey(User, models.PROTECT, related_name="identities")
    issuer = models.CharField(max_length=500)
    subject = models.CharField(max_length=255)
    # As the provider calls them, for people to read.
    label = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True)
    disconnected_at = models.DateTimeField(null=True)
    # Names of groups that the person has by the provider's mapping.
    mapped_groups = models.JSONField(default=list)

    objects = IdentityQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="accounts_one_person_an_identity", fields=["issuer", "subject"]
            )
        ]
        triggers = [
            # A provider's access tokens are for whom it names, as long as that is known here.
            *configuration("disconnected_at"),
            Keep(name="keep_identity", columns=["person_id", "issuer", "subject"]),
        ]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class UsedLogoutToken(models.Model):
    """A logout token that a provider sent, kept until it expires: it counts once."""

    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.digest


class BrowserSession(models.Model):
    """Where a session of somebody who signed in is used; the session is Django's, with this key."""

    person = models.ForeignKey(User, models.CASCADE, related_name="+")
    key = models.CharField(max_length=40, unique=True)
    user_agent = models.CharField(max_length=300)
    address = models.CharField(max_length=64)
    # Of a sign-in at an identity provider, which may end it from there: by the identity, or by
    # the provider's own id of its session.
    identity = models.ForeignKey(Identity, models.SET_NULL, null=True, related_name="+")
    provider_sid = models.CharField(max_length=255, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.device

    @property
    def device(self) -> str:
        return device(self.user_agent)


class RecoveryCode(models.Model):
    """A code for the second step of one sign-in, for whoever lost their device; stored as an HMAC.
    Making new ones removes those before."""

    person = models.ForeignKey(User, models.PROTECT, related_name="recovery_codes")
    digest = models.BinaryField(max_length=32)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    used_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"recovery code of {self.person}"


class Proof(models.Model):
    """Evidence that a user, and not only their session, confirmed one statement."""

    class Method(models.TextChoices):
        PASSKEY = "passkey", _("passkey")
        TOTP = "totp", _("one-time code")
        OIDC = "oidc", _("identity provider")

    person = models.ForeignKey(User, models.PROTECT, related_name="proofs")
    method = models.CharField(max_length=7, choices=Method)
    # Whole, so that what was agreed to can be read; its SHA-256 is what a passkey signed.
    statement = models.TextField()
    # Each statement has its own nonce, so that a proof is good for one act.
    statement_digest = models.CharField(max_length=64, unique=True)
    passkey = models.ForeignKey(Passkey, models.PROTECT, null=True, related_name="proofs")
    # The browser's answer as it came (JSON), and where it was given; or the provider's ID token and
    # its key (JSON).
    assertion = models.TextField(blank=True)
    origin = models.CharField(max_length=255, blank=True)
    sign_count = models.BigIntegerField(null=True)
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["at"]
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                name="accounts_proof_has_its_passkey",
                condition=models.Q(method__in=["totp", "oidc"]) | models.Q(passkey__isnull=False),
            )
        ]
        triggers = append_only()

    def __str__(self) -> str:
        return f"{self.method} of {self.person}"
