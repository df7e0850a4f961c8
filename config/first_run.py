"""First run: makes a person, an agent with a token, servers to try, and rules."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable

from django.conf import settings
from django.db.models import QuerySet

from accounts import services as accounts
from accounts.models import Agent, User
from audit.services import SYSTEM
from core.english import gettext as _
from core.private_files import write_private
from examples.servers import ExampleServer, example_servers
from policies.models import Effect, Rule
from policies.services import save_rule
from registry import services
from registry.discovery import discovery
from registry.models import Discovery, Server, Tool, Toolset, versioned

AGENT, TOOLSET = "demo", "default"
# These write or send: what they do waits for a person, what they only read does not.
WATCHED = ("file-writer", "mailer")
log = logging.getLogger(__name__)


def first_run(*, examples: bool) -> dict[str, str]:
    """Make what is missing. Idempotent; what is shown once is made anew each time."""
    person = accounts.first_administrator()
    agent = Agent.objects.filter(name=AGENT).first()
    agent = agent or accounts.create_agent(AGENT, owner=person, by=None)
    toolset = Toolset.objects.filter(slug=TOOLSET).first()
    toolset = toolset or services.create_toolset(TOOLSET, by=None)
    services.assign(toolset, agent, by=None)
    if examples:
        add_examples(toolset, person)
    return {
        "sign_in": accounts.sign_in_link(person),
        "agent": AGENT,
        "toolset": TOOLSET,
        "token": accounts.issue_token(agent, by=None),
    }


def add_examples(toolset: Toolset, person: User) -> None:
    known = example_servers(settings.DATA_DIR / "outbox")
    list_commands(known)
    before = set(Server.objects.values_list("pk", flat=True))
    for example in known:
        server = Server.objects.filter(slug=example.slug).first() or services.register(
            example.slug,
            transport=example.transport,
            command=example.slug,
            title=example.title,
            owner=person,
            by=None,
            # We wrote them: nobody needs to review what they say of themselves.
            publish=True,
        )
        services.add_server(toolset, server, by=None)
        add_rules(example.slug)
    ids = Server.objects.filter(slug__in=[example.slug for example in known])
    complain(asyncio.run(discovery.look_at(list(ids.values_list("pk", flat=True)))))
    new = Tool.objects.filter(server__in=ids.exclude(pk__in=before))
    publish_the_rest(new)
    confirm_read_only(new)


def publish_the_rest(tools: QuerySet[Tool]) -> None:
    """Where something was found in our own words, we answer for it: `write_report` only reads,
    though its name says otherwise. Where two people publish what is red, that waits for them."""
    for tool in tools.filter(state=Tool.State.NEW, latest__isnull=False):
        red = tool.latest is not None and tool.latest.findings.is_red
        if not (red and settings.RED_NEEDS_TWO):
            # Their findings were read when they were written.
            shown, reason = versioned.difference(tool), _("An example that comes along.")
            services.publish(tool, difference=shown, by=None, reason=reason)


def confirm_read_only(tools: QuerySet[Tool]) -> None:
    """We wrote these too: what says that it is read-only is."""
    for tool in tools.filter(published__isnull=False).select_related("published", "server"):
        if tool.published is not None and tool.published.hints.get("readOnlyHint"):
            services.set_handling(
                tool,
                by=None,
                mode=tool.mode,
                timeout_s=tool.timeout_s,
                safe_to_repeat=tool.safe_to_repeat,
                confirmed_read_only=True,
                repeats=tool.repeats,
            )


def list_commands(known: Iterable[ExampleServer]) -> None:
    """Let the examples be run: their commands go into the host's catalogue."""
    path = settings.STDIO_CATALOGUE
    listed = json.loads(path.read_text()) if path.exists() else {}
    for example in known:
        listed.setdefault(example.slug, {"argv": example.argv, "title": example.title})
    write_private(path, json.dumps(listed, indent=2) + "\n")


def add_rules(slug: str) -> None:
    _add_rule(f"Example: {slug}", Effect.ALLOW, slug, Rule.Hint.ANY, "It only reads and computes.")
    if slug in WATCHED:
        reason = "It writes or sends: a person looks at it first."
        _add_rule(f"Example: {slug}, writing", Effect.ASK, slug, Rule.Hint.WRITES, reason)


def _add_rule(name: str, effect: Effect, server: str, hint: Rule.Hint, reason: str) -> None:
    if not Rule.objects.filter(name=name).exists():
        rule = Rule(name=name, effect=effect, server=server, hint=hint, reason=reason)
        save_rule(rule, by=SYSTEM)


def complain(looks: Iterable[Discovery]) -> None:
    for look in looks:
        if not look.succeeded:
            log.warning("%s: %s", look.server.slug, look.summary)
