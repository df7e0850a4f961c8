"""One tool's pages, as far as the registry knows of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from core.http import page
from inspection.results import PASS_ALL, rules_of
from inspection.words import result_sentences
from registry import managed, result_rules, services
from registry.forms.tools import HandlingForm, LabelsForm, ResultRulesForm
from registry.models import Definition, Publication, Tag, Tool
from registry.schemas import differences
from registry.schemas.arguments import rows
from registry.views.tool_pages import definition_of, frame


@page("registry.view_tool")
def tool(request: HttpRequest, name: str) -> HttpResponse:
    return _overview(request, name, {})


def _overview(request: HttpRequest, name: str, rejected: dict[str, BaseForm]) -> HttpResponse:
    """`rejected`: forms that were not saved, as they were sent."""
    context = frame(name, "overview", request.GET.get("version", ""))
    shown: Tool = context["tool"]
    content: dict[str, Any] = context["definition"].content
    context |= {
        "arguments": rows(_schema(content, "inputSchema")),
        "output": rows(_schema(content, "outputSchema")),
        "tags": list(shown.tags.all()),
        "all_tags": Tag.objects.all(),
        "handling": HandlingForm(instance=shown),
        "result_rules": ResultRulesForm(instance=shown),
        "labels": LabelsForm(instance=shown),
        "managed_by": managed.source_of(managed.TOOLS, shown.exposed_name),
        "changes_results": shown.result_rules != PASS_ALL,
        "of_server": result_sentences(rules_of(shown.server.result_rules)),
        "toolsets": (shown.toolsets.all() | shown.server.toolsets.all()).distinct(),
        **rejected,
    }
    if rejected:
        # The address of such an answer takes no other requests.
        context["page_path"] = reverse("registry:tool", args=[name])
    return render(request, "registry/tool.html", context)


@page("registry.view_tool")
def versions(request: HttpRequest, name: str) -> HttpResponse:
    """All that the server ever said of it, and what changed from one to the next."""
    context = frame(name, "versions")
    shown: Tool = context["tool"]
    after = definition_of(shown, request.GET.get("to", ""))
    before = _before(shown, after, request.GET.get("from", ""))
    context |= {
        "versions": shown.definitions.defer("body"),
        "rollable": set(services.rollable(shown).values_list("pk", flat=True)),
        "before": before,
        "after": after,
        "changes": differences.changes(before.content, after.content) if before else [],
        "lines": differences.lines(before.content, after.content) if before else [],
        "publications": Publication.objects.filter(definition__tool=shown)
        .select_related("definition", "person")
        .defer("definition__body")[:20],
    }
    return render(request, "registry/tool_versions.html", context)


@page("registry.operate_server", "GET", "HEAD", "POST")
def roll_back(request: ConsoleRequest, name: str, version: int) -> HttpResponse:
    """Asks first what the press on the button then does."""
    context = frame(name, "versions")
    shown: Tool = context["tool"]
    there = redirect("registry:tool_versions", name)
    if request.method == "POST":
        try:
            reason = request.POST.get("reason", "")
            services.roll_back(shown, version, by=request.user, reason=reason)
        except services.PublicationRefused as error:
            messages.error(request, str(error))
            return redirect("registry:roll_back", name, version)
        except services.RollBackRefused as error:
            messages.error(request, str(error))
        else:
            said = _("Version %d is the published one. Agents get it when the server offers it.")
            messages.success(request, said % version)
        return there
    before = services.rollable(shown).filter(version=version).first()
    if before is None:
        messages.error(request, _("There is nothing to roll back to in version %d.") % version)
        return there
    now = shown.published
    context["changes"] = differences.changes(now.content, before.content) if now else []
    return render(request, "registry/roll_back.html", context | {"before": before})


@page("policies.view_rule")
def policy(request: HttpRequest, name: str) -> HttpResponse:
    return render(request, "registry/tool_policy.html", frame(name, "policy"))


@page("registry.change_tool", "POST")
def tag(request: ConsoleRequest, name: str) -> HttpResponse:
    shown = get_object_or_404(Tool, exposed_name=name)
    words = re.split(r"[\s,]+", request.POST.get("tags", "").strip().lower())
    try:
        services.set_tags(shown, [word for word in words if word], by=request.user)
    except services.RegistrationRefused as error:
        messages.error(request, str(error))
    return redirect("registry:tool", name)


@page("registry.operate_server", "POST")
def set_handling(request: ConsoleRequest, name: str) -> HttpResponse:
    shown = get_object_or_404(Tool, exposed_name=name)
    form = HandlingForm(request.POST, instance=get_object_or_404(Tool, exposed_name=name))

    def save() -> str:
        services.set_handling(shown, by=request.user, **form.cleaned_data)
        return _("“%s” is handled as chosen.") % name

    return _saved(request, name, {"handling": form}, save)


@page("registry.operate_server", "POST")
def set_results(request: ConsoleRequest, name: str) -> HttpResponse:
    shown = get_object_or_404(Tool, exposed_name=name)
    form = ResultRulesForm(request.POST, instance=get_object_or_404(Tool, exposed_name=name))

    def save() -> str:
        result_rules.set_result_rules(shown, form.rules, by=request.user)
        return _("Results of “%s” are treated as chosen.") % name

    return _saved(request, name, {"result_rules": form}, save)


@page("registry.operate_server", "POST")
def set_labels(request: ConsoleRequest, name: str) -> HttpResponse:
    shown = get_object_or_404(Tool, exposed_name=name)
    form = LabelsForm(request.POST, instance=get_object_or_404(Tool, exposed_name=name))

    def save() -> str:
        services.set_labels(shown, form.choices, by=request.user)
        return _("“%s” is labelled as chosen.") % name

    return _saved(request, name, {"labels": form}, save)


def _saved(
    request: ConsoleRequest, name: str, sent: dict[str, BaseForm], save: Callable[[], str]
) -> HttpResponse:
    """`sent`: one form, by its name on the page, which shows it again unless it could be saved;
    `save` returns the message of success."""
    (form,) = sent.values()
    try:
        if form.is_valid():
            messages.success(request, save())
            return redirect("registry:tool", name)
    except services.RegistrationRefused as error:
        form.add_error(None, str(error))
    return _overview(request, name, sent)


def _before(shown: Tool, after: Definition, version: str) -> Definition | None:
    """The version to compare with: the requested one, else the previous one."""
    if version:
        return definition_of(shown, version)
    return shown.definitions.filter(version__lt=after.version).first()


def _schema(content: dict[str, Any], name: str) -> dict[str, Any]:
    schema = content.get(name)
    return schema if isinstance(schema, dict) else {}
