"""How results of tools are checked and cleaned: the choices of a tool and of a server."""

from __future__ import annotations

import re

from django.db import transaction

from accounts.actors import By, acting
from audit.services import record
from core.english import gettext as _
from core.text import revealed
from inspection import patterns
from inspection.results import PASS_ALL, ResultRules, rules_of, stored_rules
from registry import managed
from registry.models import Server, Tool
from registry.services import RegistrationRefused

# How small and how large an operator may let results be.
LEAST_BYTES, MOST_BYTES = 1024, 64 * 1024 * 1024


@transaction.atomic
def set_result_rules(tool: Tool, rules: ResultRules, *, by: By) -> bool:
    """Sets the tool's result rules; returns whether they changed."""
    check_result_rules(rules)
    columns = {f"result_{name}": value for name, value in rules._asdict().items()}
    locked = Tool.objects.select_for_update().get(pk=tool.pk)
    if locked.result_rules == rules:
        return False
    Tool.objects.filter(pk=tool.pk).update(**columns)
    tool.refresh_from_db()
    of_server = tool.server.result_rules if rules != PASS_ALL else {}
    record(
        "tool.result_rules_set",
        actor=acting(by),
        server=tool.server.slug,
        tool=tool.exposed_name,
        **rules._asdict(),
        # No longer what the tool's results pass.
        **({"instead_of": of_server} if of_server else {}),
    )
    return True


@transaction.atomic
def set_server_result_rules(server: Server, rules: ResultRules, *, by: By) -> bool:
    """Sets the result rules of the server's tools that have no choices of their own; returns
    whether they changed."""
    managed.check(managed.SERVERS, server.slug, by=by)
    check_result_rules(rules)
    Server.objects.select_for_update().get(pk=server.pk)
    server.refresh_from_db()
    if rules_of(server.result_rules) == rules:
        return False
    server.result_rules = stored_rules(rules)
    server.save(update_fields=["result_rules"])
    record("server.result_rules_set", actor=acting(by), server=server.slug, **rules._asdict())
    return True


_RESULT_CHOICES = (
    ("schema", Tool.SchemaCheck),
    ("hidden", Tool.HiddenText),
    ("marking", Tool.Marking),
)
_is_host = re.compile(r"(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*", re.IGNORECASE).fullmatch


def check_result_rules(rules: ResultRules) -> None:
    """Raises RegistrationRefused."""
    for name, choices in _RESULT_CHOICES:
        if getattr(rules, name) not in choices.values:
            raise RegistrationRefused(
                _("“%(value)s” is no choice for %(what)s.")
                % {"value": revealed(str(getattr(rules, name))[:40]), "what": name}
            )
    if rules.max_bytes is not None and not LEAST_BYTES <= rules.max_bytes <= MOST_BYTES:
        raise RegistrationRefused(
            _("A result may have %(least)s to %(most)s bytes.")
            % {"least": f"{LEAST_BYTES:,}", "most": f"{MOST_BYTES:,}"}
        )
    if wrong := [host for host in rules.hosts.split() if not _is_host(host)]:
        said = _("“%s” is no host: write example.org, or *.example.org.")
        raise RegistrationRefused(said % revealed(wrong[0][:60]))
    try:
        patterns.check(rules.patterns)
    except patterns.BadPattern as error:
        raise RegistrationRefused(str(error)) from error
