"""People, the agents that they own, and the tokens that agents carry."""

from __future__ import annotations

from typing import Self

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from audit.services import Actor
from core.triggers import append_only, configuration


class User(AbstractUser):
    """A person who uses the console."""

    time_zone = models.CharField(max_length=64, default="UTC")
    # Who made the link by which this person came in; nobody if it was made at the host.
    let_in_by = models.ForeignKey(
        "self", models.PROTECT, null=True, editable=False, related_name="+"
    )

    class Meta(AbstractUser.Meta):
        triggers = configuration("username", "is_active")

    @property
    def actor(self) -> Actor:
        return Actor("person", self.pk, self.username)

    @cached_property
    def group_names(self) -> list[str]:
        """As they were when this person was read: a decision asks again (approvals/standing.py)."""
        return sorted(self.groups.values_list("name", flat=True))

    @property
    def is_vouched_for(self) -> bool:
        """Nobody else may have come in as them: not by a link that another person held."""
        return self.let_in_by_id is None or self.has_usable_password()


class AgentQuerySet(models.QuerySet["Agent"]):
    def owned_by(self, person: User) -> Self:
        return self.filter(owner=person)

    def visible_to(self, person: User) -> Self:
        """All of them to those whose role says so; to others, what they answer for."""
        return self if person.has_perm("accounts.view_agent") else self.owned_by(person)


class Agent(models.Model):
    """A program that calls tools, answered for by the person who owns it."""

    name = models.SlugField(_("name"), max_length=100, unique=True)
    owner = models.ForeignKey(User, models.PROTECT, related_name="agents")
    enabled = models.BooleanField(_("enabled"), default=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = AgentQuerySet.as_manager()

    # What REST framework asks of whoever stands behind a request.
    is_authenticated = True

    class Meta:
        ordering = ["name"]
        triggers = configuration()

    def __str__(self) -> str:
        return self.name

    @property
    def actor(self) -> Actor:
        return Actor("agent", self.pk, self.name)


class AgentTokenQuerySet(models.QuerySet["AgentToken"]):
    def valid(self) -> Self:
        return self.filter(
            revoked_at=None,
            expires_at__gt=timezone.now(),
            agent__enabled=True,
            agent__owner__is_active=True,
        )


class AgentToken(models.Model):
    """What an agent shows at the door: `csa_<id>_<secret>_<crc>`, of which we keep an HMAC."""

    agent = models.ForeignKey(Agent, models.PROTECT, related_name="tokens")
    public_id = models.CharField(max_length=8, unique=True)
    digest = models.BinaryField(max_length=32)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    created_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Written at most once a minute, and never a reason for caches to be read again.
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = AgentTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        triggers = configuration("revoked_at", "expires_at", "digest", "agent_id")

    def __str__(self) -> str:
        return f"csa_{self.public_id}_…"


class SignInLink(models.Model):
    """A way in that works once, for the first administrator and for people who are locked out."""

    person = models.ForeignKey(User, models.CASCADE, related_name="+")
    digest = models.BinaryField(max_length=32, unique=True)
    # Nobody: made at the host, by somebody who may do everything there anyway.
    made_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()


class Attempt(models.Model):
    """A try at somebody's password or code, kept while it counts against the next ones."""

    class Kind(models.TextChoices):
        SIGN_IN = "sign_in"
        PASSWORD = "password"  # noqa: S105 a word, not one
        CODE = "code"

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
    """A key in a person's device. Kept when removed: what it signed stays checkable."""

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
    """An app that shows a person's one-time codes (TOTP, RFC 6238)."""

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


class Proof(models.Model):
    """That a person, and not only their session, stood behind one statement."""

    class Method(models.TextChoices):
        PASSKEY = "passkey", _("passkey")
        TOTP = "totp", _("one-time code")

    person = models.ForeignKey(User, models.PROTECT, related_name="proofs")
    method = models.CharField(max_length=7, choices=Method)
    # Whole, so that what was agreed to can be read; its SHA-256 is what a passkey signed.
    statement = models.TextField()
    # Each statement has its own nonce, so that a proof is good for one act.
    statement_digest = models.CharField(max_length=64, unique=True)
    passkey = models.ForeignKey(Passkey, models.PROTECT, null=True, related_name="proofs")
    # The browser's answer as it came (JSON), and where it was given.
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
                condition=models.Q(method="totp") | models.Q(passkey__isnull=False),
            )
        ]
        triggers = append_only()

    def __str__(self) -> str:
        return f"{self.method} of {self.person}"
