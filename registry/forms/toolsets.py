"""Forms of a toolset, and of how it shows one of its tools."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from registry.models import Toolset
from registry.publishing import override_service


class ToolsetForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Toolset
        fields = ["slug", "title"]
        labels = {"slug": _("Name"), "title": _("Title")}
        help_texts = {
            "slug": _("Letters, digits, - and _. Used as the last part of the address."),
            "title": _("For people; may stay empty."),
        }


class ShownForm(forms.Form):
    name = forms.CharField(
        label=_("Name for agents"),
        required=False,
        max_length=64,
        help_text=_(
            "Letters, digits, _ . and -, 64 at most; dots become the toolset's separator. Rules, "
            "approvals and the record go on with the name that people know."
        ),
    )
    title = forms.CharField(label=_("Title"), required=False, max_length=override_service.MAX_TITLE)
    description = forms.CharField(
        label=_("Description"),
        required=False,
        max_length=override_service.MAX_DESCRIPTION,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("Replaces the server's own text; agents see that it is yours."),
    )
    pinned = forms.CharField(
        label=_("Fixed arguments"),
        required=False,
        max_length=override_service.MAX_PINNED,
        strip=True,
        widget=forms.Textarea(attrs={"rows": 4, "class": "mono", "spellcheck": "false"}),
        help_text=_(
            'A JSON object, such as {"unit": "C"}. Agents neither see nor set them; approvers see '
            "them with the rest."
        ),
    )
