"""Everything that can change between a person's yes and the first byte, one change at a time.

Each draws, makes the change, yields a part of the sentence that tells of it, and puts things back.
What no verb of the product does is done past it, as only the database's master could.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
from django.contrib.auth.models import Group
from django.utils import timezone
from hypothesis import strategies as st
from psycopg import sql

from accounts import services as accounts
from accounts.models import Agent, AgentToken, User
from accounts.roles import Role
from approvals import freezes
from audit.services import SYSTEM
from calls import services as calls
from calls.models import Call
from calls.record.states import State
from policies.models import Effect, Rule
from policies.services import remove_rule, save_rule
from registry import services
from registry.models import Server, ShownTool, Tool, Toolset
from tests.console import scenery
from tests.publishing import publish_as_read

UNPUBLISHED = "The tool is no longer published."
DEFINITION = "The tool's definition changed"
TOOLSET = "The toolset no longer offers"
VOTES = "The votes no longer count"
MORE = "Policy now asks for more"
BOUND = "What would be sent is not what was decided on"


@dataclass
class World:
    """`past`: a connection that no trigger and no right stops."""

    ada: User
    alice: User
    bob: User
    scout: Agent
    token: AgentToken
    toolset: Toolset
    rule: Rule
    url: str
    commands: Path
    past: psycopg.Connection


Draw = Callable[[st.SearchStrategy[Any]], Any]
Change = Callable[[World, Call, Draw], Iterator[str]]
CHANGES: dict[str, Change] = {}

words = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12)


def change(made: Change) -> Change:
    CHANGES[made.__name__] = made
    return made


# -- What is sent, and to whom --------------------------------------------------------------------


@change
def an_argument_byte(world: World, call: Call, draw: Draw) -> Iterator[str]:
    table = "calls_amendment" if call.amendment_id else "calls_call"
    at = draw(st.integers(0, len(call.to_send) - 1))
    other = draw(st.integers(0, 255).filter(lambda byte: byte != call.to_send[at]))
    tampered(
        world,
        f"UPDATE {table} SET arguments = set_byte(arguments, %s, %s) WHERE id = %s",
        *(at, other, call.amendment_id or call.pk),
    )
    yield f"{BOUND}: other now: the arguments"


@change
def the_definition(world: World, call: Call, draw: Draw) -> Iterator[str]:
    """Its server says something else; a person may even have published that."""
    tool, before = tool_of(call), content_of(call)
    schema = {**before["inputSchema"], "title": draw(words)}
    other = draw(
        st.sampled_from(
            [
                before | {"description": before.get("description", "") + draw(words)},
                before | {"inputSchema": schema},
                before | {"annotations": {"readOnlyHint": draw(st.booleans())}},
                before | {"outputSchema": {"type": "object", "title": draw(words)}},
            ]
        )
    )
    published = draw(st.booleans())
    scenery.see(tool.server, other)
    if published:
        publish_as_read(tool.server, by=world.ada)
    yield DEFINITION if published else UNPUBLISHED
    scenery.see(tool.server, before)
    if published:
        publish_as_read(tool.server, by=world.ada)


@change
def the_tool_is_taken_back(world: World, call: Call, draw: Draw) -> Iterator[str]:
    tool = tool_of(call)
    services.retire(tool, by=world.ada)
    yield UNPUBLISHED
    scenery.see(tool.server, content_of(call))
    publish_as_read(tool.server, by=world.ada)


@change
def the_tools_name(world: World, call: Call, draw: Draw) -> Iterator[str]:
    name, tool = tool_of(call).name, Tool.objects.filter(pk=tool_of(call).pk)
    tool.update(name=f"{name}{draw(words)}")
    yield "the tool"
    tool.update(name=name)


@change
def the_address(world: World, call: Call, draw: Draw) -> Iterator[str]:
    """The server moves; its tools wait until a person publishes them there, and are others then."""
    server = server_of(call)
    if server.transport == Server.Transport.STDIO:
        yield from _the_command(world, server, draw)
        return
    moved, published = f"{world.url}/{draw(words)}", draw(st.booleans())
    services.set_connection(server, url=moved, by=world.ada)
    if published:
        publish_as_read(server, by=world.ada)
    yield DEFINITION if published else UNPUBLISHED
    services.set_connection(server, url=world.url, by=world.ada)
    if published:
        publish_as_read(server, by=world.ada)


def _the_command(world: World, server: Server, draw: Draw) -> Iterator[str]:
    """The host's administrator writes another argv into the catalogue of commands."""
    before, other, followed = world.commands.read_text(), draw(words), draw(st.booleans())
    world.commands.write_text(before.replace("import", f"{other} = 1; import", 1))
    if followed:
        services.set_connection(server, command=server.command, by=world.ada)
    yield UNPUBLISHED
    world.commands.write_text(before)
    if followed:
        services.set_connection(server, command=server.command, by=world.ada)


@change
def the_address_past_the_code(world: World, call: Call, draw: Draw) -> Iterator[str]:
    server = server_of(call)
    if server.transport == Server.Transport.STDIO:
        column, before, now = "command", server.command, draw(words)
        yield from _set(world, Server, server.pk, column, before, now, UNPUBLISHED)
    else:
        now = f"{world.url}?{draw(words)}"
        yield from _set(world, Server, server.pk, "url", server.url, now, "the server's address")


@change
def the_credential(world: World, call: Call, draw: Draw) -> Iterator[str]:
    server = server_of(call)
    if server.command:
        services.set_connection(server, by=world.ada, command=server.command)
    else:
        secret = draw(words)
        services.set_connection(server, by=world.ada, url=server.url, credential=secret)
    yield "the server's credential or settings"


@change
def the_server_is_switched_off(world: World, call: Call, draw: Draw) -> Iterator[str]:
    server = server_of(call)
    services.set_enabled(server, False, by=world.ada)
    yield UNPUBLISHED
    services.set_enabled(server, True, by=world.ada)


# -- For whom -------------------------------------------------------------------------------------


@change
def the_agent_is_switched_off(world: World, call: Call, draw: Draw) -> Iterator[str]:
    accounts.set_agent_enabled(world.scout, False, by=world.ada)
    yield "The agent or its owner was disabled."
    accounts.set_agent_enabled(world.scout, True, by=world.ada)


@change
def its_owner_is_switched_off(world: World, call: Call, draw: Draw) -> Iterator[str]:
    accounts.set_active(world.bob, False, by=world.ada)
    yield "The agent or its owner was disabled."
    accounts.set_active(world.bob, True, by=world.ada)


@change
def its_owner(world: World, call: Call, draw: Draw) -> Iterator[str]:
    now = draw(st.sampled_from([world.ada, world.alice])).pk
    said = "the person on whose behalf"
    yield from _set(world, Agent, world.scout.pk, "owner_id", world.bob.pk, now, said)


@change
def its_name(world: World, call: Call, draw: Draw) -> Iterator[str]:
    now = f"scout-{draw(words)}"
    yield from _set(world, Agent, world.scout.pk, "name", "scout", now, "the agent")


@change
def its_token(world: World, call: Call, draw: Draw) -> Iterator[str]:
    if draw(st.booleans()):
        accounts.revoke_token(world.token, by=world.ada)
    else:
        ago = timedelta(seconds=draw(st.integers(0, 10**6)))
        AgentToken.objects.filter(pk=world.token.pk).update(expires_at=timezone.now() - ago)
    yield "The agent's token was revoked or has expired."
    accounts.issue_token(world.scout, by=world.ada)
    world.token = AgentToken.objects.latest("pk")


@change
def its_toolset(world: World, call: Call, draw: Draw) -> Iterator[str]:
    toolset, server = world.toolset, server_of(call)
    match draw(st.sampled_from(["server", "agent", "name"])):
        case "server":
            services.remove_server(toolset, server, by=world.ada)
            yield TOOLSET
            services.add_server(toolset, server, by=world.ada)
        case "agent":
            services.unassign(toolset, world.scout, by=world.ada)
            yield TOOLSET
            services.assign(toolset, world.scout, by=world.ada)
        case _:
            yield from _set(world, Toolset, toolset.pk, "slug", "desk", draw(words), TOOLSET)


@change
def what_is_fixed(world: World, call: Call, draw: Draw) -> Iterator[str]:
    """No argument has such a name."""
    pinned = draw(st.sampled_from(["[", "[1]"]) | words.map(lambda word: f'{{"fixed {word}": 1}}'))
    assert call.tool
    row = ShownTool.objects.create(toolset=world.toolset, tool=call.tool, pinned=pinned)
    yield "The toolset now fixes arguments"
    row.delete()


# -- By whose word --------------------------------------------------------------------------------


@change
def a_rule_forbids_it(world: World, call: Call, draw: Draw) -> Iterator[str]:
    exactly = {"server": server_of(call).slug, "tool": tool_of(call).name}
    made = Rule(
        name=draw(words),
        effect=Effect.DENY,
        server=draw(st.sampled_from(["*", exactly["server"]])),
        tool=draw(st.sampled_from(["*", f"{exactly['tool'][0]}*", exactly["tool"]])),
        hint=draw(st.sampled_from(Rule.Hint.values)),
        when=draw(st.sampled_from(["", "size(args) > 0", 'agent.name == "scout"'])),
        position=draw(st.integers(1, 2000)),
    )
    save_rule(made, by=SYSTEM)
    yield "Policy now forbids the call"
    remove_rule(made, by=SYSTEM)


@change
def the_rule_asks_for_more(world: World, call: Call, draw: Draw) -> Iterator[str]:
    before = world.rule.thresholds
    other = st.sampled_from(
        [
            {"approve": draw(st.integers(2, 3)), "from": "group:payments"},
            {"approve": draw(st.integers(2, 4))},
            {"approve": 1, "from": "group:board"},
            {"approve": 1, "from": "person:fay"},
            {"approve": 1, "step_up": "passkey"},
            {"approve": 1, "step_up": "totp"},
            {"approve": 2, "distinct": "team"},
        ]
    )
    world.rule.thresholds = draw(st.lists(other, min_size=1, max_size=3))
    save_rule(world.rule, by=SYSTEM)
    yield MORE
    world.rule.thresholds = before
    save_rule(world.rule, by=SYSTEM)


@change
def a_voters_groups(world: World, call: Call, draw: Draw) -> Iterator[str]:
    voter, lost = world.alice, draw(st.sampled_from(["payments", Role.APPROVER]))
    groups = list(voter.groups.all())
    left = [group for group in groups if group.name != lost]
    accounts.set_groups(voter, left, by=world.ada)
    yield f"{voter.username} may no longer decide"
    accounts.set_groups(voter, groups, by=world.ada)


@change
def a_groups_name(world: World, call: Call, draw: Draw) -> Iterator[str]:
    payments = Group.objects.get(name="payments").pk
    yield from _set(world, Group, payments, "name", "payments", f"ex-{draw(words)}", VOTES)


@change
def a_voter_is_switched_off(world: World, call: Call, draw: Draw) -> Iterator[str]:
    voter = world.alice
    accounts.set_active(voter, False, by=world.ada)
    yield f"{voter.username} may no longer decide"
    accounts.set_active(voter, True, by=world.ada)


@change
def a_vote(world: World, call: Call, draw: Draw) -> Iterator[str]:
    """Past the code, in each way in which it could be made to say something else."""
    tampering = [
        "UPDATE approvals_vote SET approve = false",
        "UPDATE approvals_vote SET fallen_at = now(), fallen_why = 'taken_back'",
        "UPDATE approvals_vote SET seen_digest = repeat('0', 64)",
        "DELETE FROM approvals_vote",
    ]
    chosen = draw(st.sampled_from(tampering))
    tampered(world, f"{chosen} WHERE approval_id = %s", call.pk)
    yield VOTES


@change
def what_was_decided_on(world: World, call: Call, draw: Draw) -> Iterator[str]:
    column = draw(st.sampled_from(["statement", "call_digest"]))
    before = str(getattr(call, column))
    at = draw(st.integers(0, len(before) - 1))
    now = before[:at] + draw(st.sampled_from("0!~").filter(lambda c: c != before[at]))
    now += before[at + 1 :]
    tampered(world, f"UPDATE calls_call SET {column} = %s WHERE id = %s", now, call.pk)
    yield BOUND if column == "statement" else VOTES


# -- And when -------------------------------------------------------------------------------------


@change
def its_time(world: World, call: Call, draw: Draw) -> Iterator[str]:
    ago = timedelta(seconds=draw(st.integers(0, 10**6)))
    Call.objects.filter(pk=call.pk).update(start_by=timezone.now() - ago)
    yield "No worker could start the call in time."


@change
def it_is_called_off(world: World, call: Call, draw: Draw) -> Iterator[str]:
    calls.cancel(call.pk, by=draw(st.sampled_from([world.ada, world.bob])).actor)
    yield "before it was sent"


@change
def a_freeze(world: World, call: Call, draw: Draw) -> Iterator[str]:
    """It stands still, and is called off so that it does not go on afterwards."""
    over: list[dict[str, Any]] = [{}, {"agent": world.scout}, {"server": server_of(call)}]
    made = freezes.begin(by=world.ada, reason=f"Stop {draw(words)}!", **draw(st.sampled_from(over)))
    yield made.reason
    calls.cancel(call.pk, by=SYSTEM)
    freezes.end(made, by=world.bob, why="Looked at.")


# -- How ------------------------------------------------------------------------------------------


def tool_of(call: Call) -> Tool:
    assert call.tool_id
    return Tool.objects.select_related("server", "latest").get(pk=call.tool_id)


def content_of(call: Call) -> dict[str, Any]:
    assert call.definition
    content: dict[str, Any] = call.definition.content
    return content


def server_of(call: Call) -> Server:
    assert call.server_id
    return Server.objects.get(pk=call.server_id)


def _set(
    world: World, model: Any, pk: int, column: str, before: Any, now: Any, said: str
) -> Iterator[str]:
    """For what no verb changes; noticed by the triggers of configuration."""
    rows = model.objects.filter(pk=pk)
    rows.update(**{column: now})
    yield said
    rows.update(**{column: before})


def tampered(world: World, text: str, *values: Any) -> None:
    cursor = world.past.execute(sql.SQL(text), values)
    assert cursor.rowcount == 1


def put_back(making: Iterator[str]) -> None:
    with suppress(StopIteration):
        next(making)


STATES = {"its_time": State.EXPIRED, "it_is_called_off": State.CANCELLED, "a_freeze": State.QUEUED}
