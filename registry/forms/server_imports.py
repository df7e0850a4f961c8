"""Forms that import servers: a registry, a document, and one way to reach what it describes."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.forms.servers import command_choices
from registry.pasting import slugged
from registry.server_json import foreign_registry
from registry.server_json.document import MAX_BYTES, InputField, Package, Remote, ServerJson


class RegistrySearchForm(forms.Form):
    registry = forms.CharField(
        label=gettext_lazy("URL of the registry"),
        max_length=500,
        initial=foreign_registry.OFFICIAL,
        widget=forms.URLInput(),
    )
    search = forms.CharField(label=gettext_lazy("Search"), max_length=200, required=False)


class ServerJsonForm(forms.Form):
    """A server.json as a file or pasted; `text` is it."""

    document_file = forms.FileField(label=gettext_lazy("A file"), required=False)
    document = forms.CharField(
        label=gettext_lazy("Or pasted"),
        required=False,
        # A signature is about every byte.
        strip=False,
        widget=forms.Textarea(attrs={"rows": 6, "class": "mono", "spellcheck": "false"}),
    )

    bundle_file = forms.FileField(
        label=gettext_lazy("Sigstore bundle"),
        required=False,
        help_text=gettext_lazy(
            "A .sigstore.json that signs the file, or provenance of a package that it pins."
        ),
    )

    text: bytes
    bundle: bytes

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if bool(given.get("document_file")) == bool(given.get("document")):
            raise forms.ValidationError(_("Give the document in one of the two ways."))
        uploaded = given.get("document_file")
        # Browsers send lines of a text with CRLF.
        pasted = given["document"].replace("\r\n", "\n").encode()
        self.text = uploaded.read() if uploaded else pasted
        self.bundle = _read(given.get("bundle_file"))
        return given


class SignatureForm(forms.Form):
    """A bundle about a server that was imported."""

    bundle_file = forms.FileField(label=gettext_lazy("Sigstore bundle"))
    document_file = forms.FileField(
        label=gettext_lazy("The server.json that was signed"),
        required=False,
        help_text=gettext_lazy("Not needed for provenance of the package."),
    )

    bundle: bytes
    document: bytes

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        self.bundle = _read(given.get("bundle_file"))
        self.document = _read(given.get("document_file"))
        return given


def _read(uploaded: UploadedFile[bytes] | None) -> bytes:
    """Past any limit, so that a longer file is recognised as such."""
    return uploaded.read(MAX_BYTES + 1) if uploaded else b""


class ImportForm(forms.Form):
    """One remote or package of a document. `values`: what was entered, by the input's name."""

    slug = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=32,
        help_text=gettext_lazy("1 to 32 of a–z, 0–9, - and _. Tools are called name.tool."),
    )

    def __init__(self, server: ServerJson, way: Remote | Package, prefix: str, data: Any) -> None:
        super().__init__(data, prefix=prefix, auto_id=f"{prefix}-%s")
        self.fields["slug"].initial = slugged(server.name.rpartition("/")[2])
        self.way = way
        self.inputs: dict[str, str] = {}
        if isinstance(way, Package):
            self.fields["command"] = forms.ChoiceField(
                label=_("Command"),
                choices=command_choices,
                help_text=_("From this host's catalogue of commands; its administrator adds."),
            )
        else:
            for number, one in enumerate(way.fields):
                self.inputs[f"input{number}"] = one.name
                self.fields[f"input{number}"] = _field(one)

    @property
    def values(self) -> dict[str, str]:
        return {name: self.cleaned_data[field] for field, name in self.inputs.items()}


def _field(one: InputField) -> forms.Field:
    common: dict[str, Any] = {
        "label": one.name,
        "required": one.is_required,
        "help_text": one.about,
        "initial": one.default,
    }
    if one.choices:
        choices = [(choice, choice) for choice in one.choices]
        return forms.ChoiceField(
            choices=[*([] if one.is_required else [("", "–")]), *choices], **common
        )
    secret = forms.PasswordInput(attrs={"autocomplete": "off"})
    return forms.CharField(
        max_length=8000, widget=secret if one.is_secret else forms.TextInput(), **common
    )
