"""How a tool's calls are handled."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from registry.models import Tool


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
                "executed, or its agent never heard. Agents can say that a repetition is meant."
            ),
        }
