"""The form of a retention period."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.validators import MaxValueValidator, MinValueValidator
from django.utils.translation import gettext_lazy as _

from calls.content.retention import Key
from calls.models import MOST_RETENTION_DAYS, RetainedContent, RetentionScope
from registry.labels import Label
from registry.models import Server, Tag, Tool

MISSING = {
    RetentionScope.TOOL: _("There is no tool “%s”. Write its name as the catalogue shows it."),
    RetentionScope.TAG: _("No tool has the tag “%s”."),
    RetentionScope.LABEL: _("There is no label “%s”. The labels are: untrusted, sensitive, sink."),
    RetentionScope.SERVER: _("There is no server “%s”."),
}


class RetentionForm(forms.Form):
    content = forms.ChoiceField(
        label=_("What is erased"),
        choices=RetainedContent.choices,
        help_text=_(
            "A payload is arguments, result, log lines, comments and reasons; the result goes with "
            "it in any case."
        ),
    )
    scope = forms.ChoiceField(
        label=_("Applies to"),
        choices=[*RetentionScope.choices][::-1],
        help_text=_("The most specific period counts: tool, tag, label, server, all calls."),
    )
    target = forms.CharField(
        label=_("Name"),
        max_length=200,
        required=False,
        help_text=_("Of the tool, tag, label or server; empty for all calls."),
        widget=forms.TextInput(attrs={"list": "targets"}),
    )
    days = forms.IntegerField(
        label=_("Days"),
        required=False,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_RETENTION_DAYS)],
        help_text=_("Counted from when the call was asked for. Empty: kept, without an end."),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = self.cleaned_data
        scope, target = cleaned.get("scope"), cleaned.get("target", "")
        if scope == RetentionScope.ALL and target:
            self.add_error("target", _("Leave the name empty, or choose what it is of."))
        elif scope and scope != RetentionScope.ALL and "target" in cleaned:
            self._check_target(RetentionScope(scope), target)
        return cleaned

    def _check_target(self, scope: RetentionScope, target: str) -> None:
        if not target:
            self.add_error("target", _("Give the name."))
        elif not is_known(scope, target):
            self.add_error("target", MISSING[scope] % target)

    @property
    def key(self) -> Key:
        return RetentionScope(self.cleaned_data["scope"]), self.cleaned_data["target"]


def is_known(scope: RetentionScope, target: str) -> bool:
    match scope:
        case RetentionScope.TOOL:
            return Tool.objects.filter(exposed_name=target).exists()
        case RetentionScope.TAG:
            return Tag.objects.filter(name=target).exists()
        case RetentionScope.SERVER:
            return Server.objects.filter(slug=target).exists()
        case RetentionScope.LABEL:
            return target in Label.values
    return target == ""
