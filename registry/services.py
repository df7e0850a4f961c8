"""Verbs on servers, tools and toolsets. Each writes its entry in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import connection as database
from django.db import transaction
from django.db.models import Model, QuerySet
from django.utils import timezone

from accounts.actors import By, ServiceCaller, account_of, acting
from accounts.models import MAX_HOLD_S, Agent, User
from audit.names import named
from audit.services import Actor, record
from core import outbound
from core.english import gettext as _
from core.errors import CountersignError
from core.text import revealed
from inspection.definitions import Scan
from registry import extensions, managed, names, secrets
from registry.connections import Command, Commands, ServerConnection, Unreachable
from registry.credentials import clients
from registry.labels import Label, LabelChoice
from registry.models import (
    Definition,
    Item,
    OwnTool,
    Publication,
    RegistryReaders,
    Separator,
    Server,
    Tag,
    Tool,
    Toolset,
    versioned,
)
from registry.models.versioned import Version, elsewhere
from registry.publishing import published_catalogue, registry_versions, second_person
from registry.schemas import definitions
from registry.versions import item_versions, tool_versions

MAX_TIMEOUT_S = 24 * 3600
MAX_TAGS = 12
MAX_REASON = 1000
# Whether a server has calls that have not ended, which a higher package knows.
OpenCalls = Callable[[Server], bool]
NO_REASONS: Mapping[int, str] = MappingProxyType({})


class RegistrationRefused(CountersignError):
    """The server or toolset cannot be as asked; says why, and what would be right."""


class ServerInUse(RegistrationRefused):
    """The server cannot be deleted: calls of it have not ended."""


class RollBackRefused(CountersignError):
    """The version cannot be gone back to; says why."""


class PublicationRefused(CountersignError):
    """The definition is not what was reviewed, or must not be offered."""


class SecondPersonNeeded(PublicationRefused):
    """Another person has to publish it; the press of `by` is recorded."""

    def __init__(
        self, sentence: str, asked: tuple[Tool | Item, Version], by: User, reason: str
    ) -> None:
        self.asked, self.by, self.reason = asked, by, reason
        super().__init__(sentence)


@transaction.atomic
def register(
    slug: str,
    *,
    transport: str,
    owner: User,
    by: By,
    url: str = "",
    command: str = "",
    headers: Mapping[str, str] | None = None,
    credential: str = "",
    title: str = "",
    publish: bool = False,
) -> Server:
    _one_at_a_time()
    taken = names.Names([names.RESERVED, *Server.objects.values_list("slug", flat=True)])
    names.check_slug(slug, taken)
    server = Server(
        slug=slug, transport=transport, owner=owner, title=title, publish_on_discovery=publish
    )
    _set_address(server, url=url, command=command)
    server.save()
    # Sealed to the row's key, which it has only now.
    secrets.put(server, headers=headers or {}, credential=credential)
    server.save(update_fields=["sealed_headers", "sealed_credential"])
    record("server.registered", actor=acting(by), server=slug, address=server.address)
    return server


def connection_of(
    *,
    transport: str,
    url: str = "",
    command: str = "",
    headers: Mapping[str, str] | None = None,
    credential: str = "",
) -> ServerConnection:
    """How a server would be reached if it were registered so; raises what register() would."""
    server = Server(slug="probe", transport=transport)
    _set_address(server, url=url, command=command)
    secrets.check(server, headers=headers or {}, credential=credential)
    if server.transport == Server.Transport.STDIO:
        return ServerConnection(
            "probe", "stdio", argv=tuple(server.argv), env=_command(command).env
        )
    bearer = {"Authorization": f"Bearer {credential}"} if credential else {}
    return ServerConnection("probe", "http", url=server.url, headers={**(headers or {}), **bearer})


@transaction.atomic
def set_connection(
    server: Server,
    *,
    by: By,
    url: str = "",
    command: str = "",
    headers: Mapping[str, str] | None = None,
    credential: str = "",
) -> None:
    """Give the server another address or other secrets. Both are set anew, always:
    a credential that stayed while the address moves could be sent anywhere."""
    _locked(server)
    if server.deleted_at is not None:
        raise RegistrationRefused(_("“%s” was deleted.") % server.slug)
    before = server.address
    _set_address(server, url=url, command=command)
    server.connection_version += 1
    if server.sign_in and server.address != before:
        clients.set_sign_in(server, Server.SignIn.NONE, by=by)
    if server.sign_in and credential:
        raise RegistrationRefused(_("The server has a sign-in: its calls carry no credential."))
    secrets.put(server, headers=headers or {}, credential=credential)
    server.health, server.health_reason = Server.Health.UNKNOWN, ""
    server.save()
    record("server.connection_set", actor=acting(by), server=server.slug, address=server.address)
    if server.address != before:
        _hold_all(server, by=acting(by))


@transaction.atomic
def set_enabled(server: Server, enabled: bool, *, by: By, reason: str = "") -> None:
    there = Server.objects.kept().filter(pk=server.pk, enabled=not enabled)
    if not there.update(enabled=enabled):
        return
    server.enabled = enabled
    action = "server.enabled" if enabled else "server.disabled"
    record(action, actor=acting(by), reason=reason, server=server.slug)


@transaction.atomic
def delete_server(server: Server, *, by: By, has_open_calls: OpenCalls) -> None:
    """Takes a server that was registered by mistake from everybody, for good: its secrets are gone,
    agents have none of its tools, and its row stays for the record. Raises ServerInUse while calls
    of it are open."""
    _locked(server)
    if server.deleted_at is not None:
        return
    if has_open_calls(server):
        said = _("“%s” has calls that have not ended: wait for them, or cancel them.")
        raise ServerInUse(said % server.slug)
    server.tools.exclude(state=Tool.State.RETIRED, published=None).update(
        state=Tool.State.RETIRED, published=None
    )
    server.toolsets.clear()
    if server.sign_in:
        clients.set_sign_in(server, Server.SignIn.NONE, by=by)
    server.enabled, server.deleted_at = False, timezone.now()
    server.sealed_headers = server.sealed_credential = None
    server.connection_version += 1
    server.save()
    record("server.deleted", actor=acting(by), server=server.slug, address=server.address)


@transaction.atomic
def set_relays(server: Server, families: Iterable[str], *, by: By) -> None:
    """Sets which input requests the server may send to agents."""
    managed.check(managed.SERVERS, server.slug, by=by)
    relays = [family for family in Server.Relay.values if family in set(families)]
    if not Server.objects.filter(pk=server.pk).exclude(relays=relays).update(relays=relays):
        return
    server.relays = relays
    record("server.relays_set", actor=acting(by), server=server.slug, relays=relays)


@transaction.atomic
def set_revision(server: Server, revision: str, *, by: By) -> bool:
    """In which revision of the protocol the server is spoken to, "" for the newest; whether that is
    another one. It is greeted anew, and its next look finds what it offers there."""
    managed.check(managed.SERVERS, server.slug, by=by)
    if revision not in Server.Revision.values:
        raise RegistrationRefused(_("“%s” is no revision that is known here.") % revision[:40])
    others = Server.objects.filter(pk=server.pk).exclude(wanted_revision=revision)
    if not others.update(wanted_revision=revision):
        return False
    server.wanted_revision = revision
    actor, said = acting(by), revision or "newest"
    record("server.revision_set", actor=actor, server=server.slug, revision=said)
    return True


@transaction.atomic
def set_methods(server: Server, methods: Iterable[str], *, by: By) -> bool:
    """Which methods of extensions agents may ask the server by; whether that is another list.

    What is new waits for the next look and then to be published; what is gone is taken from agents
    at once, and would have to be published anew. Raises MethodRefused.
    """
    managed.check(managed.SERVERS, server.slug, by=by)
    listed = extensions.checked(methods)
    _locked(server)
    if listed == server.methods:
        return False
    gone = server.tools.filter(name__in=set(server.methods) - set(listed))
    server.methods = listed
    server.save(update_fields=["methods"])
    record("server.methods_set", actor=acting(by), server=server.slug, methods=listed)
    for tool in gone:
        retire(tool, by=by)
    return True


def publish(tool: Tool, *, difference: str | None, by: By, reason: str = "") -> Publication:
    """Let agents have what the server says of it now. `difference`: the digest of what `by` was
    shown; None: nobody looked, which the entry says, and nothing with risks is published. `reason`:
    why all the same, where what was found in it is red. Raises PublicationRefused."""
    with recording_proposals():
        return _publish(tool, difference=difference, by=by, reason=reason)


@contextmanager
def recording_proposals() -> Iterator[None]:
    """Records a first person's press, which publishes nothing, after all else is undone."""
    try:
        yield
    except SecondPersonNeeded as needed:
        second_person.propose(*needed.asked, by=needed.by, reason=needed.reason)
        raise


@transaction.atomic
def _publish(tool: Tool, *, difference: str | None, by: By, reason: str) -> Publication:
    # A statement of its own: one that waited for the lock sees joined rows as they were before.
    locked = Tool.objects.select_for_update().get(pk=tool.pk)
    latest = _publishable(locked, difference)
    _check_findings(locked, latest, difference, by, reason)
    Tool.objects.filter(pk=locked.pk).update(published=latest, state=Tool.State.PUBLISHED)
    tool.refresh_from_db()
    (publication,) = tool_versions.note_published(
        [tool],
        by=acting(by),
        person=account_of(by),
        reason=_told_reason(difference, latest, reason),
    )
    return publication


def _publishable(tool: Tool, difference: str | None) -> Definition:
    """Its latest definition, if that is what was reviewed and agents may have it."""
    if tool.latest is None or tool.state == Tool.State.RETIRED:
        raise PublicationRefused(_("“%s” is gone from its server.") % tool.exposed_name)
    if tool.state == Tool.State.PUBLISHED:
        raise PublicationRefused(_("“%s” is published already.") % tool.exposed_name)
    if difference not in (None, versioned.difference(tool)):
        raise PublicationRefused(
            _("“%s” has changed since it was reviewed: look at it again.") % tool.exposed_name
        )
    if problems := definitions.problems(tool.latest.content):
        raise PublicationRefused(
            _("“%(tool)s” cannot be published: %(why)s")
            % {"tool": tool.exposed_name, "why": " ".join(problems)}
        )
    return tool.latest


def _check_reason(name: str, found: Scan, reason: str) -> None:
    """Raises PublicationRefused where what was found is red and nobody said why all the same."""
    if len(reason) > MAX_REASON:
        raise PublicationRefused(_("A reason has at most %d characters.") % MAX_REASON)
    if found.is_red and not reason.strip():
        said = " ".join(f"{one}." for one in dict.fromkeys(one.said for one in found.risks))
        raise PublicationRefused(
            _("“%(name)s” needs a reason to be published: %(found)s")
            % {"name": revealed(name[:200]), "found": said}
        )


def _check_findings(
    of: Tool | Item, version: Version, difference: str | None, by: By, reason: str
) -> None:
    """Checks that who publishes findings has seen them; and of red ones that they say why, are a
    person, and not alone where two are needed. Raises PublicationRefused and SecondPersonNeeded."""
    name = of.exposed_name if isinstance(of, Tool) else of.key
    if version.findings.risks and difference is None:
        said = _("“%s” is not published without a review: what was found in it has to be read.")
        raise PublicationRefused(said % revealed(name[:200]))
    if version.findings.is_red and isinstance(by, ServiceCaller):
        said = _(
            "“%s” is published by people, in the console: what was found in it has to be read."
        )
        raise PublicationRefused(said % revealed(name[:200]))
    _check_reason(name, version.findings, reason)
    if missing := second_person.what_is_missing(of, version, by=account_of(by)):
        if not isinstance(by, User):
            raise PublicationRefused(missing)
        raise SecondPersonNeeded(missing, (of, version), by, reason.strip())


def _told_reason(difference: str | None, latest: Version | None, reason: str) -> str:
    not_reviewed = _("Published without a review.") if difference is None else ""
    is_red = latest is not None and latest.findings.is_red
    return " ".join(filter(None, (not_reviewed, reason.strip() if is_red else "")))


def publish_all(
    server: Server,
    *,
    by: By,
    differences: Mapping[int, str] | None = None,
    reasons: Mapping[int, str] = NO_REASONS,
    reason: str = "",
) -> list[str]:
    """Publish what waits: by tool id, the differences that were reviewed; None: all as it is now,
    which nobody looked at. `reasons`: by tool id too; `reason`: where a tool has none of its own.

    Returns why some were not published, in sentences.
    """
    refused = []
    for tool in server.tools.waiting().select_related("server"):
        if differences is not None and tool.pk not in differences:
            continue
        try:
            why = reasons.get(tool.pk) or reason
            publish(tool, difference=_of(tool, differences), by=by, reason=why)
        except PublicationRefused as error:
            refused.append(str(error))
    return refused


def _of(one: Tool | Item, differences: Mapping[int, str] | None) -> str | None:
    return None if differences is None else differences[one.pk]


def publish_item(item: Item, *, difference: str | None, by: By, reason: str = "") -> None:
    """Let agents have what the server says of it now; `difference` and `reason` as for publish."""
    with recording_proposals():
        _publish_item(item, difference=difference, by=by, reason=reason)


@transaction.atomic
def _publish_item(item: Item, *, difference: str | None, by: By, reason: str) -> None:
    locked = Item.objects.for_change().select_related("server").get(pk=item.pk)
    if locked.state == Item.State.PUBLISHED:
        return
    if locked.latest is not None:
        _check_findings(locked, locked.latest, difference, by, reason)
    told = _told_reason(difference, locked.latest, reason)
    item_versions.publish(locked, difference=difference, actor=acting(by), reason=told)


def publish_items(
    server: Server,
    *,
    by: By,
    differences: Mapping[int, str] | None = None,
    reasons: Mapping[int, str] = NO_REASONS,
    reason: str = "",
) -> list[str]:
    """Like publish_all, for the server's items."""
    refused = []
    for item in server.items.waiting():
        if differences is not None and item.pk not in differences:
            continue
        try:
            why = reasons.get(item.pk) or reason
            publish_item(item, difference=_of(item, differences), by=by, reason=why)
        except (item_versions.ItemNotPublished, PublicationRefused) as error:
            refused.append(str(error))
    return refused


def roll_back(tool: Tool, version: int, *, by: By, reason: str = "") -> None:
    """Goes back to an earlier published version. Agents get nothing else meanwhile: what they get
    is always what the server says, so the tool is held until its server says that again, or until
    somebody publishes what it says now. `reason`, and a second person: as publish() has it. Raises
    RollBackRefused and PublicationRefused."""
    with recording_proposals():
        _roll_back(tool, version, by=by, reason=reason)


@transaction.atomic
def _roll_back(tool: Tool, version: int, *, by: By, reason: str) -> None:
    locked = Tool.objects.select_for_update().get(pk=tool.pk)
    before = rollable(locked).filter(version=version).first()
    if before is None:
        said = _("Version %(version)d of “%(tool)s” is none to go back to.")
        raise RollBackRefused(said % {"version": version, "tool": locked.exposed_name})
    # Its findings and its changes are on the page that asks.
    _check_findings(locked, before, before.digest, by, reason)
    Tool.objects.filter(pk=locked.pk).update(published=before, state=Tool.State.CHANGED)
    tool.refresh_from_db()
    tool_versions.relabel([tool])
    record(
        "definition.rolled_back",
        actor=acting(by),
        reason=reason.strip() if before.findings.is_red else "",
        server=tool.server.slug,
        tool=tool.exposed_name,
        definition_digest=before.digest,
        version=before.version,
    )


def rollable(tool: Tool) -> QuerySet[Definition]:
    """Versions that the tool can be rolled back to: published once, and neither what is published
    nor what its server says now. None of a tool that its server does not offer, and
    none from before somebody took it from agents."""
    known = tool.definitions.filter(publications__isnull=False)
    taken = named({"action": "tool.retired", "tool": tool.exposed_name})
    if last := taken.in_order().first():
        known = tool.definitions.filter(publications__at__gt=last.at)
    known = known.distinct()
    if tool.state not in (Tool.State.PUBLISHED, Tool.State.CHANGED):
        return known.none()
    return known.exclude(pk__in=[tool.latest_id, tool.published_id])


@transaction.atomic
def retire(tool: Tool, *, by: By) -> None:
    """Take it from agents. If its server still offers it, it waits to be published again."""
    moved = Tool.objects.filter(pk=tool.pk).exclude(state=Tool.State.RETIRED, published=None)
    if not moved.update(state=Tool.State.RETIRED, published=None):
        return
    tool.refresh_from_db()
    record("tool.retired", actor=acting(by), server=tool.server.slug, tool=tool.exposed_name)


@transaction.atomic
def set_handling(
    tool: Tool,
    *,
    by: By,
    mode: str,
    timeout_s: int,
    safe_to_repeat: bool,
    confirmed_read_only: bool = False,
    cancel_is_final: bool = False,
    repeats: str = Tool.Repeats.AUTO,
) -> None:
    """How its calls are run: an operator's word, whatever the server claims."""
    if repeats not in Tool.Repeats.values:
        raise RegistrationRefused(
            _("The same call again is one of %s.") % ", ".join(map(str, Tool.Repeats.values))
        )
    if mode not in Tool.Mode.values:
        raise RegistrationRefused(
            _("The mode is one of %s.") % ", ".join(str(value) for value in Tool.Mode.values)
        )
    if not 1 <= timeout_s <= MAX_TIMEOUT_S:
        raise RegistrationRefused(_("The time limit is 1 to %d seconds.") % MAX_TIMEOUT_S)
    asked: dict[str, Any] = {
        "mode": mode,
        "timeout_s": timeout_s,
        "safe_to_repeat": safe_to_repeat,
        "confirmed_read_only": confirmed_read_only,
        "cancel_is_final": cancel_is_final,
        "repeats": repeats,
    }
    if not Tool.objects.filter(pk=tool.pk).exclude(**asked).update(**asked):
        return
    tool.refresh_from_db()
    record(
        "tool.handling_set",
        actor=acting(by),
        server=tool.server.slug,
        tool=tool.exposed_name,
        **asked,
    )


@transaction.atomic
def set_labels(tool: Tool, choices: dict[Label, str], *, by: By) -> bool:
    """Sets the operator's word on each label; returns whether it changed."""
    managed.check(managed.TOOLS, tool.exposed_name, by=by)
    if any(choice not in LabelChoice.values for choice in choices.values()):
        raise RegistrationRefused(
            _("A label is one of %s.") % ", ".join(filter(None, LabelChoice.values))
        )
    locked = Tool.objects.select_for_update().get(pk=tool.pk)
    if locked.label_choices == choices:
        return False
    counting = tool_versions.labels_of(locked, choices)
    columns = {f"label_{label}": choice for label, choice in choices.items()}
    Tool.objects.filter(pk=tool.pk).update(**columns, labels=counting)
    tool.refresh_from_db()
    record(
        "tool.labels_set",
        actor=acting(by),
        server=tool.server.slug,
        tool=tool.exposed_name,
        labels=counting,
        **{label.value: choice or "hinted" for label, choice in choices.items()},
    )
    return True


@transaction.atomic
def set_tags(tool: Tool, names: list[str], *, by: By) -> None:
    """The words that people find it by, all of them anew."""
    names = sorted(set(names))
    if len(names) > MAX_TAGS:
        raise RegistrationRefused(_("A tool has at most %d tags.") % MAX_TAGS)
    for name in names:
        _check_tag(name)
    if names == sorted(tool.tags.values_list("name", flat=True)):
        return
    tool.tags.set([Tag.objects.get_or_create(name=name)[0] for name in names])
    # A word that no tool has is no facet.
    Tag.objects.filter(tools=None).delete()
    record(
        "tool.tagged",
        actor=acting(by),
        server=tool.server.slug,
        tool=tool.exposed_name,
        tags=names,
    )


def _check_tag(name: str) -> None:
    try:
        Tag(name=name).clean_fields()
    except ValidationError as error:
        said = _("“%s” is no tag: use up to 32 of a–z, 0–9, - and _.")
        raise RegistrationRefused(said % revealed(name[:40])) from error


@transaction.atomic
def create_toolset(slug: str, *, by: By, title: str = "") -> Toolset:
    toolset = Toolset(slug=slug, title=title)
    try:
        toolset.full_clean()
    except ValidationError as error:
        raise RegistrationRefused(" ".join(error.messages)) from error
    toolset.save()
    record("toolset.created", actor=acting(by), toolset=slug)
    return toolset


@transaction.atomic
def set_title(toolset: Toolset, title: str, *, by: By) -> None:
    managed.check(managed.TOOLSETS, toolset.slug, by=by)
    if toolset.title == title:
        return
    toolset.title = title
    toolset.save(update_fields=["title"])
    record("toolset.renamed", actor=acting(by), toolset=toolset.slug, title=title)


@transaction.atomic
def set_separator(toolset: Toolset, separator: str, *, by: By) -> None:
    """Sets the separator in agents' names. Former names still find the same tools."""
    managed.check(managed.TOOLSETS, toolset.slug, by=by)
    if separator not in Separator.values:
        raise RegistrationRefused(_("The separator is one of _ - and the dot."))
    if separator == toolset.separator:
        return
    toolset.separator = separator
    toolset.save(update_fields=["separator"])
    record("toolset.separator_set", actor=acting(by), toolset=toolset.slug, separator=separator)


@transaction.atomic
def set_hold(toolset: Toolset, seconds: int | None, *, by: By) -> None:
    """After how long a request that waits for people is answered; None: as everywhere."""
    managed.check(managed.TOOLSETS, toolset.slug, by=by)
    if seconds is not None and not 1 <= seconds <= MAX_HOLD_S:
        raise RegistrationRefused(_("The first answer comes within 1 to %d seconds.") % MAX_HOLD_S)
    if seconds == toolset.hold_s:
        return
    toolset.hold_s = seconds
    toolset.save(update_fields=["hold_s"])
    record("toolset.hold_set", actor=acting(by), toolset=toolset.slug, seconds=seconds)


@transaction.atomic
def set_search_mode(toolset: Toolset, wanted: bool, *, by: By) -> None:
    """Whether agents search for its tools in place of listing them."""
    managed.check(managed.TOOLSETS, toolset.slug, by=by)
    if wanted == toolset.search_mode:
        return
    toolset.search_mode = wanted
    toolset.save(update_fields=["search_mode"])
    record("toolset.search_mode_set", actor=acting(by), toolset=toolset.slug, search_mode=wanted)


@transaction.atomic
def set_agent_sign_in(toolset: Toolset, wanted: bool, *, by: By) -> None:
    """Whether users sign in agents for it. Switched off, no token of such an agent opens it."""
    managed.check(managed.TOOLSETS, toolset.slug, by=by)
    if wanted == toolset.agent_sign_in:
        return
    toolset.agent_sign_in = wanted
    toolset.save(update_fields=["agent_sign_in"])
    record("toolset.sign_in_set", actor=acting(by), toolset=toolset.slug, agent_sign_in=wanted)


@transaction.atomic
def set_registry_readers(toolset: Toolset, wanted: str, *, by: By) -> None:
    """Sets the readers of its MCP registry: one of RegistryReaders."""
    managed.check(managed.TOOLSETS, toolset.slug, by=by)
    if wanted not in RegistryReaders.values:
        raise RegistrationRefused(
            _("“%(name)s” is no choice; there are: %(known)s.")
            % {"name": wanted, "known": ", ".join(RegistryReaders.values)}
        )
    if wanted == toolset.registry_readers:
        return
    toolset.registry_readers = wanted
    toolset.save(update_fields=["registry_readers"])
    record("toolset.registry_readers_set", actor=acting(by), toolset=toolset.slug, readers=wanted)
    registry_versions.refresh(toolset.slug, published_catalogue.load().toolset(toolset.slug))


@transaction.atomic
def set_own_tools(toolset: Toolset, names: Iterable[str], *, by: By) -> None:
    """Which tools of ours it offers, for what agents know and say of their own calls."""
    managed.check(managed.TOOLSETS, toolset.slug, by=by)
    wanted = set(names)
    if unknown := sorted(wanted - set(OwnTool.values)):
        raise RegistrationRefused(
            _("“%(name)s” is no tool for own calls; there are: %(known)s.")
            % {"name": unknown[0], "known": ", ".join(OwnTool.values)}
        )
    asked = [name for name in OwnTool.values if name in wanted]
    if asked == toolset.own_tools:
        return
    toolset.own_tools = asked
    toolset.save(update_fields=["own_tools"])
    record("toolset.own_tools_set", actor=acting(by), toolset=toolset.slug, own_tools=asked)


def add_server(toolset: Toolset, server: Server, *, by: By) -> None:
    _join(toolset, Toolset.servers.through, by=by, server=server)


def remove_server(toolset: Toolset, server: Server, *, by: By) -> None:
    _part(toolset, Toolset.servers.through, by=by, server=server)


def add_tool(toolset: Toolset, tool: Tool, *, by: By) -> None:
    _join(toolset, Toolset.tools.through, by=by, tool=tool)


def remove_tool(toolset: Toolset, tool: Tool, *, by: By) -> None:
    _part(toolset, Toolset.tools.through, by=by, tool=tool)


def assign(toolset: Toolset, agent: Agent, *, by: By) -> None:
    _join(toolset, Toolset.agents.through, by=by, agent=agent)


def may_assign(toolset: Toolset, agent: Agent | None, *, by: By) -> bool:
    """Whether `assign` would do it; an agent of None is not made yet."""
    if agent is not None and toolset.agents.filter(pk=agent.pk).exists():
        return True
    try:
        managed.check(managed.TOOLSETS, toolset.slug, by=by)
    except managed.ManagedElsewhere:
        return False
    return True


def unassign(toolset: Toolset, agent: Agent, *, by: By) -> None:
    _part(toolset, Toolset.agents.through, by=by, agent=agent)


@transaction.atomic
def _join(toolset: Toolset, table: type[Model], *, by: By, **member: Any) -> None:
    if not table._default_manager.filter(toolset=toolset, **member).exists():
        managed.check(managed.TOOLSETS, toolset.slug, by=by)
    _link, made = table._default_manager.get_or_create(toolset=toolset, **member)
    if made:
        _record_member("toolset.added", toolset, acting(by), member)


@transaction.atomic
def _part(toolset: Toolset, table: type[Model], *, by: By, **member: Any) -> None:
    gone, _each = table._default_manager.filter(toolset=toolset, **member).delete()
    if gone:
        managed.check(managed.TOOLSETS, toolset.slug, by=by)
        _record_member("toolset.removed", toolset, acting(by), member)


def _record_member(
    action: str, toolset: Toolset, actor: Actor, member: Mapping[str, Model]
) -> None:
    named = {kind: str(thing) for kind, thing in member.items()}
    record(action, actor=actor, toolset=toolset.slug, member=named)


def _set_address(server: Server, *, url: str, command: str) -> None:
    if server.transport in (Server.Transport.HTTP, Server.Transport.API):
        server.url = _checked_url(url)
    elif server.transport == Server.Transport.STDIO:
        server.command, server.argv = command, _command(command).argv
    else:
        raise RegistrationRefused(_("The transport is “http” or “stdio”."))


def _checked_url(url: str) -> str:
    try:
        checked = outbound.Guard(settings.UPSTREAM_NETWORKS).check_url(url)
    except outbound.AddressRefused as error:
        raise RegistrationRefused(str(error)) from error
    if checked.fragment:
        raise RegistrationRefused(_("The URL has a part after #, which no server ever sees."))
    if len(url) > 2000:
        raise RegistrationRefused(_("The URL is longer than 2,000 characters."))
    return url


def _command(name: str) -> Command:
    commands = Commands()
    try:
        command = commands.get(name)
        known = commands.names()
    except Unreachable as error:
        raise RegistrationRefused(str(error)) from error
    if command is None:
        raise RegistrationRefused(
            _("“%(name)s” is not in the host's catalogue of commands, which has: %(known)s.")
            % {"name": name, "known": ", ".join(known) or _("nothing")}
        )
    return command


def _hold_all(server: Server, *, by: Actor) -> None:
    identity = identity_of(server)
    tool_versions.see_all(elsewhere(identity, server.tools.for_change()), by=by)
    for kind in Item.Kind:
        item_versions.ItemSync(server, kind, identity).hold_all(by=by)


def identity_of(server: Server) -> dict[str, Any]:
    return definitions.identity(transport=server.transport, url=server.url, argv=server.argv)


def _locked(server: Server) -> None:
    Server.objects.select_for_update().get(pk=server.pk)
    server.refresh_from_db()


def _one_at_a_time() -> None:
    """Two servers registered at once must not take names that pass for each other."""
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('names of servers'))")
