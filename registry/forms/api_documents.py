"""Forms for OpenAPI documents."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from registry.forms.servers import UrlReachForm
from registry.openapi.document import ApiDescription, DocumentRefused
from registry.openapi.importing import DocumentInput, read_input


class DocumentForm(forms.Form):
    """A document by its URL, as a file or pasted; `description` is it, parsed."""

    document_url = forms.CharField(
        label=gettext_lazy("URL of the document"),
        max_length=2000,
        required=False,
        widget=forms.URLInput(attrs={"placeholder": "https://api.example.com/openapi.json"}),
    )
    document_file = forms.FileField(label=gettext_lazy("Or a file"), required=False)
    document = forms.CharField(
        label=gettext_lazy("Or pasted"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
        help_text=gettext_lazy("OpenAPI 3.0 or 3.1, as JSON or YAML."),
    )
    external_references = forms.BooleanField(
        label=gettext_lazy("Also fetch documents that it refers to"), required=False
    )

    description: ApiDescription

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        ways = [name for name in ("document_url", "document_file", "document") if given.get(name)]
        if self.errors:
            return given
        if len(ways) != 1:
            raise forms.ValidationError(_("Give the document in one of the three ways."))
        try:
            self.description = read_input(self._input(given))
        except DocumentRefused as error:
            self.add_error(ways[0], str(error))
        return given

    def _input(self, given: dict[str, Any]) -> DocumentInput:
        follows = given["external_references"]
        if given.get("document_file"):
            return DocumentInput(given["document_file"].read(), external_references=follows)
        text = given["document"].encode()
        return DocumentInput(text, given["document_url"].strip(), follows)


class ApiForm(DocumentForm):
    """An API to register."""

    slug = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=32,
        help_text=gettext_lazy("1 to 32 of a–z, 0–9, - and _. Tools are called name.tool."),
    )
    title = forms.CharField(label=gettext_lazy("Title"), max_length=200, required=False)
    url = forms.CharField(
        label=gettext_lazy("URL of the API"),
        max_length=2000,
        required=False,
        widget=forms.URLInput(attrs={"placeholder": "https://api.example.com/v1"}),
        help_text=gettext_lazy("Empty: the first address that the document names."),
    )
    credential = UrlReachForm.base_fields["credential"]
    headers = UrlReachForm.base_fields["headers"]

    field_order = [
        *("slug", "document_url", "document_file", "document", "external_references"),
        *("url", "credential", "headers", "title"),
    ]

    clean_headers = UrlReachForm.clean_headers
