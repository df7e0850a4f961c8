"""How a tool's calls are handled."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from inspection.results import ResultRules, rules_of
from registry.labels import LABEL_FIELDS, Label
from registry.models import Server, Tool
from registry.models.tools import RESULT_FIELDS


class ResultRulesForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form of a tool's result rules."""

    class Meta:
        model = Tool
        fields = [*RESULT_FIELDS]
        labels = {
            "result_schema": _("Results that do not fit the output schema"),
            "result_hidden": _("Hidden characters and terminal commands"),
            "result_secrets": _("Mask secrets"),
            "result_personal": _("Mask personal data"),
            "result_tracebacks": _("Leave out tracebacks"),
            "result_max_bytes": _("Most bytes of a result"),
            "result_links": _("Deactivate links and images"),
            "result_hosts": _("Except those of these hosts"),
            "result_marking": _("Mark as data for the model"),
            "result_patterns": _("Mask by patterns of your own"),
        }
        widgets = {"result_patterns": forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})}
        help_texts = {
            "result_schema": _("Blocked: the agent reads why, and that the call was executed."),
            "result_secrets": _(
                "Keys of known providers, tokens, private keys, passwords next to their names."
            ),
            "result_personal": _(
                "Payment cards, IBANs, Chinese ID numbers, phone numbers and e-mail addresses."
            ),
            "result_tracebacks": _(
                "The error itself stays as one sentence; in errors, paths of the machine go too."
            ),
            "result_max_bytes": _("Longer texts are cut, and say so. Empty: no separate limit."),
            "result_links": _("https://evil.example becomes hxxps://evil[.]example."),
            "result_hosts": _(
                "Separate them with spaces; *.example.org for all below example.org."
            ),
            "result_marking": _(
                "Delimiters around a text say that it comes from a tool and is no instruction."
            ),
            "result_patterns": _(
                "One a line, name: regular expression. If they take longer than 0.2 s together, "
                "the result is blocked."
            ),
        }

    @classmethod
    def of_server(cls, server: Server, posted: Any = None) -> ResultRulesForm:
        """The form for the server's tools that have no choices of their own."""
        rules = rules_of(server.result_rules)._asdict()
        return cls(posted, instance=Tool(**{f"result_{key}": rules[key] for key in rules}))

    @property
    def rules(self) -> ResultRules:
        return ResultRules(*(self.cleaned_data[name] for name in RESULT_FIELDS))


class LabelsForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form of a tool's labels for information flow."""

    class Meta:
        model = Tool
        fields = [*LABEL_FIELDS]
        labels = {
            "label_untrusted": _("Untrusted source"),
            "label_sensitive": _("Sensitive source"),
            "label_sink": _("Sends outside"),
        }
        help_texts = {
            "label_untrusted": _("What it brings may be written by strangers: mail, web pages."),
            "label_sensitive": _("What it brings is not for strangers: files, customers, code."),
            "label_sink": _("What it is given may reach strangers: messages, queries, addresses."),
        }

    @property
    def choices(self) -> dict[Label, str]:
        return {label: self.cleaned_data[f"label_{label}"] for label in Label}


class HandlingForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Tool
        fields = [
            "mode",
            "timeout_s",
            "safe_to_repeat",
            "confirmed_read_only",
            "cancel_is_final",
            "repeats",
        ]
        labels = {
            "mode": _("Runs"),
            "timeout_s": _("Time limit in seconds"),
            "safe_to_repeat": _("Retry-safe"),
            "confirmed_read_only": _("Read-only, confirmed"),
            "cancel_is_final": _("Cancelled calls need nobody"),
            "repeats": _("The same call again within ten minutes"),
        }
        help_texts = {
            "safe_to_repeat": _(
                "Doing the same twice does no harm: lost calls are then tried again."
            ),
            "confirmed_read_only": _(
                "Its server says that it is read-only, and you know that it changes nothing: a "
                "cancelled call leaves nothing to find out."
            ),
            "cancel_is_final": _(
                "Its server does not confirm that it stopped, and whether a cancelled call was "
                "executed matters to nobody: it is cancelled, and its outcome is not unknown."
            ),
            "repeats": _(
                "Where it is not safe. In doubt: it is not known whether the first call was "
                "executed, or its agent got no answer. Agents can say that a repetition is meant."
            ),
        }
