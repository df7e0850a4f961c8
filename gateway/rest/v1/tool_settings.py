"""Settings of a tool by operators, whatever its server claims: tags, handling, labels, results.

Each has an address of its own and takes the permission that its form in the console takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.actors import ServiceCaller
from gateway.rest.v1.members import Flag, Members, StrictChoice, Whole
from gateway.rest.v1.policies import ResultsBody
from gateway.rest.v1.views import RowView, caller_of
from registry import result_rules, services
from registry.labels import Label, LabelChoice
from registry.models import Tool
from registry.services import MAX_TAGS, MAX_TIMEOUT_S

VIEW = ("registry.view_tool",)
OPERATE = ("registry.operate_server",)
# In place of an empty text: as policy files call it.
HINTED = "hinted"
LABEL_CHOICES = [HINTED, LabelChoice.YES.value, LabelChoice.NO.value]
# By member: the tool's column.
HANDLING = {
    "mode": "mode",
    "timeout_seconds": "timeout_s",
    "retry_safe": "safe_to_repeat",
    "confirmed_read_only": "confirmed_read_only",
    "cancel_is_final": "cancel_is_final",
    "duplicates": "repeats",
}


class TagsBody(Members):
    """All of them anew."""

    tags = serializers.ListField(
        child=serializers.RegexField(r"^[a-z0-9_-]{1,32}\Z"), max_length=MAX_TAGS
    )


class HandlingBody(Members):
    mode = StrictChoice(choices=Tool.Mode.values)
    timeout_seconds = Whole(min_value=1, max_value=MAX_TIMEOUT_S)
    retry_safe = Flag()
    confirmed_read_only = Flag()
    cancel_is_final = Flag()
    duplicates = StrictChoice(choices=Tool.Repeats.values)


class LabelsBody(Members):
    untrusted = StrictChoice(choices=LABEL_CHOICES)
    sensitive = StrictChoice(choices=LABEL_CHOICES)
    sink = StrictChoice(choices=LABEL_CHOICES)


class LabelsAnswer(LabelsBody):
    # Those that count, hints included.
    counting = serializers.ListField(child=serializers.ChoiceField(choices=Label.values))


class ToolSettings(RowView):
    """Sets those members that are sent."""

    save: Callable[[Tool, dict[str, Any], ServiceCaller], object]

    def row(self, request: Request, tool: str) -> Tool:
        known = Tool.objects.filter(server__deleted_at=None).select_related("server")
        return get_object_or_404(known, exposed_name=tool)

    def _set(self, request: Request, tool: str) -> Response:
        def change(row: Tool) -> Response:
            # Any of them may be left out, and stays as it is.
            given = {**self.plain(row), **self.body(request)}
            type(self).save(row, given, caller_of(request))
            return self.answer(self.row(request, tool))

        return self.changed(request, change, tool=tool)


class ToolTags(ToolSettings):
    """The words that people and agents find the tool by; conditions of rules can read them."""

    scopes = {"GET": VIEW, "PUT": ("registry.change_tool",)}
    bodies = {"PUT": TagsBody}
    answers = {"GET": TagsBody, "PUT": TagsBody}
    save = staticmethod(lambda tool, given, by: services.set_tags(tool, given["tags"], by=by))

    def plain(self, row: Tool) -> dict[str, Any]:
        return {"tags": sorted(row.tags.values_list("name", flat=True))}

    def put(self, request: Request, tool: str) -> Response:
        return self._set(request, tool)


class ToolHandling(ToolSettings):
    """Settings by which the tool's calls are run."""

    scopes = {"GET": VIEW, "PATCH": OPERATE}
    bodies = {"PATCH": HandlingBody}
    answers = {"GET": HandlingBody, "PATCH": HandlingBody}

    @staticmethod
    def save(tool: Tool, given: dict[str, Any], by: ServiceCaller) -> None:
        columns = {column: given[member] for member, column in HANDLING.items()}
        services.set_handling(tool, by=by, **columns)

    def plain(self, row: Tool) -> dict[str, Any]:
        return {member: getattr(row, column) for member, column in HANDLING.items()}

    def patch(self, request: Request, tool: str) -> Response:
        return self._set(request, tool)


class ToolLabels(ToolSettings):
    """The tool's labels for information flow."""

    scopes = {"GET": VIEW, "PATCH": OPERATE}
    bodies = {"PATCH": LabelsBody}
    answers = {"GET": LabelsAnswer, "PATCH": LabelsAnswer}

    @staticmethod
    def save(tool: Tool, given: dict[str, Any], by: ServiceCaller) -> None:
        choices = {label: given[label.value].replace(HINTED, "") for label in Label}
        services.set_labels(tool, choices, by=by)

    def plain(self, row: Tool) -> dict[str, Any]:
        said = {label.value: choice or HINTED for label, choice in row.label_choices.items()}
        return {**said, "counting": row.labels}

    def patch(self, request: Request, tool: str) -> Response:
        return self._set(request, tool)


class ToolResults(ToolSettings):
    """Checks and cleaning of the tool's results. With all of it off, its server's choices count."""

    scopes = {"GET": VIEW, "PATCH": OPERATE}
    bodies = {"PATCH": ResultsBody}
    answers = {"GET": ResultsBody, "PATCH": ResultsBody}

    @staticmethod
    def save(tool: Tool, given: dict[str, Any], by: ServiceCaller) -> None:
        result_rules.set_result_rules(tool, tool.result_rules._replace(**given), by=by)

    def plain(self, row: Tool) -> dict[str, Any]:
        return dict(row.result_rules._asdict())

    def patch(self, request: Request, tool: str) -> Response:
        return self._set(request, tool)
