"""Forms that register a server and say how it is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry import extensions, pasting
from registry.connections import Commands, Unreachable

PASTED_MAX = 10


@dataclass(frozen=True, slots=True)
class ReachInput:
    """How a server is reached, as a form says it."""

    transport: str
    url: str = ""
    command: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    credential: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class RegistrationInput:
    slug: str
    reach: ReachInput
    title: str = ""
    publish: bool = False


def command_choices() -> list[tuple[str, str]]:
    known = Commands()
    try:
        listed = [(name, known.get(name)) for name in known.names()]
    except Unreachable:
        return []
    return [(n, f"{n} · {c.title}" if c and c.title else n) for n, c in listed]


class _RegistrationForm(forms.Form):
    slug = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=32,
        help_text=gettext_lazy("1 to 32 of a–z, 0–9, - and _. Tools are called name.tool."),
    )
    title = forms.CharField(label=gettext_lazy("Title"), max_length=200, required=False)
    publish = forms.BooleanField(
        label=gettext_lazy("Publish what the first discovery finds"),
        required=False,
        help_text=gettext_lazy(
            "Without it, each tool stays unpublished until an operator has reviewed it."
        ),
    )

    def named(self, reach: ReachInput) -> RegistrationInput:
        given = self.cleaned_data
        return RegistrationInput(given["slug"], reach, given["title"], given["publish"])


class UrlReachForm(forms.Form):
    url = forms.CharField(
        label=gettext_lazy("URL"),
        max_length=2000,
        widget=forms.URLInput(attrs={"placeholder": "https://mcp.example.com/mcp"}),
    )
    credential = forms.CharField(
        label=gettext_lazy("Credential"),
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Sent as a bearer token. Kept sealed and never shown again."),
    )
    headers = forms.CharField(
        label=gettext_lazy("Headers"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "placeholder": "X-Api-Key: …"}),
        help_text=gettext_lazy("One a line, “Name: value”. Kept sealed and never shown again."),
    )

    def clean_headers(self) -> dict[str, str]:
        found = {}
        for line in self.cleaned_data["headers"].splitlines():
            name, colon, value = line.partition(":")
            if line.strip() and not colon:
                raise forms.ValidationError(_("A line has no colon: write “Name: value”."))
            if line.strip():
                found[name.strip()] = value.strip()
        return found

    def reach(self) -> ReachInput:
        given = self.cleaned_data
        return ReachInput(
            "http", url=given["url"], headers=given["headers"], credential=given["credential"]
        )


class CommandReachForm(forms.Form):
    command = forms.ChoiceField(
        label=gettext_lazy("Command"),
        choices=command_choices,
        help_text=gettext_lazy("From this host's catalogue of commands; its administrator adds."),
    )

    def reach(self) -> ReachInput:
        return ReachInput("stdio", command=self.cleaned_data["command"])


class UrlForm(UrlReachForm, _RegistrationForm):
    field_order = ["slug", "url", "credential", "headers", "title", "publish"]

    def servers(self) -> list[RegistrationInput]:
        return [self.named(self.reach())]


class CommandForm(CommandReachForm, _RegistrationForm):
    field_order = ["slug", "command", "title", "publish"]

    def servers(self) -> list[RegistrationInput]:
        return [self.named(self.reach())]


class PasteForm(forms.Form):
    pasted = forms.CharField(
        label=gettext_lazy("JSON"),
        widget=forms.Textarea(attrs={"rows": 10, "class": "mono", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "“mcpServers” of Claude, Cursor or Gemini, “servers” of VS Code, or a server.json."
        ),
    )

    def clean_pasted(self) -> list[RegistrationInput]:
        try:
            found = pasting.read(self.cleaned_data["pasted"])
        except pasting.PasteRefused as error:
            raise forms.ValidationError(str(error)) from error
        if problems := [f"{one.slug}: {one.problem}" for one in found if one.problem]:
            raise forms.ValidationError(problems)
        if len(found) > PASTED_MAX:
            raise forms.ValidationError(_("Paste at most %d servers at once.") % PASTED_MAX)
        return [
            RegistrationInput(
                one.slug, ReachInput("http", url=one.url, headers=one.headers), one.title
            )
            for one in found
        ]

    def servers(self) -> list[RegistrationInput]:
        asked: list[RegistrationInput] = self.cleaned_data["pasted"]
        return asked


class MethodsForm(forms.Form):
    methods = forms.CharField(
        label=gettext_lazy("Methods"),
        required=False,
        widget=forms.Textarea(
            attrs={"rows": 3, "class": "mono", "spellcheck": "false", "placeholder": "acme/search"}
        ),
        help_text=gettext_lazy("One a line. Each waits like a new tool until it is published."),
    )

    def clean_methods(self) -> list[str]:
        lines = map(str.strip, self.cleaned_data["methods"].splitlines())
        try:
            return extensions.checked(filter(None, lines))
        except extensions.MethodRefused as error:
            raise forms.ValidationError(str(error)) from error
