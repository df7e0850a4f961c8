"""Forms for signing in, users, agents and tokens."""

from __future__ import annotations

from functools import cache
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import Group
from django.core.validators import validate_slug
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts import custom_roles, services
from accounts.actors import AccountRefused
from accounts.custom_roles import RoleTerms
from accounts.display_names import LENGTH_MAX
from accounts.models import Agent, CustomRole, ServiceAccount, User
from accounts.oidc.access_tokens import agent_providers
from accounts.permission_names import PERMISSION_GROUPS, PERMISSION_NAMES
from accounts.service_accounts import CHANGING, READING
from core.messages.localizing import localized


class SignInForm(AuthenticationForm):
    error_messages = {
        "invalid_login": _("No person here has this name and password. Both mind upper case."),
        "inactive": _("This account was disabled. Ask an administrator."),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].label = pgettext_lazy("user", "Username")
        self.fields["password"].label = _("Password")
        for field in self.fields.values():
            field.widget.attrs.pop("autofocus", None)


class GroupsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    def label_from_instance(self, group: Group) -> str:
        return localized(group.name)


def _groups() -> forms.ModelMultipleChoiceField[Group]:
    return GroupsField(
        Group.objects.filter(custom_role__retired_at=None).order_by("name"),
        label=_("Roles and groups"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_(
            "A user may do what these roles may. No role includes another: to decide on calls, "
            "a user also needs the role of an approver."
        ),
    )


class InviteForm(forms.ModelForm):  # type: ignore[type-arg]
    groups = _groups()

    class Meta:
        model = User
        fields = ["username"]
        labels = {"username": pgettext_lazy("user", "Username")}
        help_texts = {"username": _("Appears in the audit log with what they do.")}

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if not User.objects.filter(username=name).exists() and (
            why := services.why_not_named(name)
        ):
            raise forms.ValidationError(why)
        return name


class RenameForm(forms.Form):
    name = forms.CharField(
        label=pgettext_lazy("user", "Username"),
        max_length=150,
        help_text=_(
            "The old name stays this person's: entries and rules mean them by it, and nobody "
            "else is ever called so."
        ),
    )


class GroupsForm(forms.Form):
    groups = _groups()


class FactorForm(forms.Form):
    groups = GroupsField(
        Group.objects.order_by("name"),
        label=_("Roles and groups that need a second factor"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_(
            "Members who have neither a passkey nor an app with codes set one up before they do "
            "anything else."
        ),
    )


class DisplayNameForm(forms.Form):
    display_name = forms.CharField(
        label=_("Display name"),
        required=False,
        max_length=LENGTH_MAX,
        help_text=_("Shown with your username, which entries and rules use."),
    )


@cache
def zones() -> list[str]:
    return sorted(available_timezones())


class TimeZoneForm(forms.Form):
    time_zone = forms.ChoiceField(
        label=_("Time zone"),
        choices=lambda: [(zone, zone) for zone in zones()],
        # Found while it is typed, which a list of six hundred is not.
        widget=forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
        help_text=_("Exact times are shown in it. Type a part of its name, such as a city."),
        error_messages={"invalid_choice": _("“%(value)s” is no time zone that is known here.")},
    )


class AgentForm(forms.ModelForm):  # type: ignore[type-arg]
    owner = forms.ModelChoiceField(
        User.objects.filter(is_active=True).order_by("username"),
        label=_("Owner"),
        help_text=_(
            "The person on whose behalf it acts. Nobody decides on calls of agents that they own "
            "or created, except in single-person mode."
        ),
    )

    class Meta:
        model = Agent
        fields = ["name", "owner"]
        labels = {"name": _("Name")}
        help_texts = {"name": _("Letters, digits, - and _. Appears in the audit log.")}


class ScimTokenForm(forms.Form):
    days = forms.IntegerField(
        label=_("Valid for days"),
        min_value=1,
        max_value=365,
        initial=180,
        help_text=_("1 to 365. Rotate it before it expires: an expired token disables no user."),
    )


class ClientForm(forms.Form):
    """A client at an identity provider, whose access tokens are an agent's."""

    provider = forms.ChoiceField(label=_("Identity provider"))
    client_id = forms.CharField(label=_("Client id"), max_length=255)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(one.issuer, one.label) for one in agent_providers()]
        field = self.fields["provider"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices


class TokenForm(forms.Form):
    days = forms.IntegerField(
        label=_("Valid for days"),
        min_value=1,
        max_value=services.MAX_DAYS,
        initial=30,
        help_text=_("1 to 90. Shorter is safer; you can create a new token at any time."),
    )
    toolsets = forms.CharField(
        label=_("Toolsets of the token"),
        required=False,
        max_length=2000,
        help_text=_("Their names, separated by commas. Empty: all toolsets of the agent."),
    )
    reads_only = forms.ChoiceField(
        label=_("Tools of the token"),
        required=False,
        choices=[("", _("All tools of its toolsets")), ("1", _("Read-only tools alone"))],
        help_text=_("As declared by their servers."),
    )

    def clean_toolsets(self) -> list[str]:
        names: list[str] = self.cleaned_data["toolsets"].replace(",", " ").split()
        for name in names:
            validate_slug(name)
        return names

    def clean_reads_only(self) -> bool:
        return bool(self.cleaned_data["reads_only"])


def _scopes() -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        label=_("Permissions"),
        choices=[
            (_("Read"), [(name, _(PERMISSION_NAMES[name])) for name in READING]),
            (_("Write"), [(name, _(PERMISSION_NAMES[name])) for name in CHANGING]),
        ],
        widget=forms.CheckboxSelectMultiple,
        help_text=_(
            "Only those that you have yourself. It never approves or denies a call, and gives "
            "nobody a permission."
        ),
    )


class ScopesForm(forms.Form):
    scopes = _scopes()


class ServiceAccountForm(forms.ModelForm):  # type: ignore[type-arg]
    scopes = _scopes()

    class Meta:
        model = ServiceAccount
        fields = ["name", "purpose"]
        labels = {"name": _("Name"), "purpose": _("Purpose")}
        help_texts = {
            "name": _("Letters, digits, - and _. Appears in the audit log, and never changes."),
            "purpose": _("Which program it is, and where it runs."),
        }


class TagsField(forms.CharField):
    """Words with a space between."""

    def clean(self, value: Any) -> tuple[str, ...]:
        try:
            return custom_roles.read_tags(super().clean(value) or "")
        except AccountRefused as error:
            raise forms.ValidationError(str(error)) from error


class RoleForm(forms.Form):
    name = forms.CharField(
        label=_("Name"),
        max_length=150,
        help_text=_("It never changes: rules, limits and identity providers name the role by it."),
    )
    description = forms.CharField(label=_("Description"), max_length=200)
    permissions = forms.MultipleChoiceField(
        label=_("Permissions"),
        choices=[
            (_(group.label), [(name, _(label)) for name, label in group.permissions.items()])
            for group in PERMISSION_GROUPS
        ],
        widget=forms.CheckboxSelectMultiple,
    )
    server_tags = TagsField(label=_("Only servers with a tag"), required=False)
    toolset_tags = TagsField(label=_("Only toolsets with a tag"), required=False)
    agent_tags = TagsField(
        label=_("Only agents with a tag"),
        required=False,
        help_text=_(
            "Separate tags with spaces. Without any, the role holds everywhere. A call has the "
            "tags of its server, toolset and agent. Permissions to view hold everywhere."
        ),
    )

    @classmethod
    def of(cls, role: CustomRole, terms: RoleTerms) -> RoleForm:
        tags = {
            name: " ".join(getattr(terms, name))
            for name in ("server_tags", "toolset_tags", "agent_tags")
        }
        first = {"name": str(role), "description": role.description, **tags}
        return cls(initial={**first, "permissions": sorted(terms.permissions)})

    @property
    def terms(self) -> RoleTerms:
        given = self.cleaned_data
        return RoleTerms(
            frozenset(given["permissions"]),
            given["server_tags"],
            given["toolset_tags"],
            given["agent_tags"],
        )
