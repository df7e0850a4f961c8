"""Servers are registered under names that pass for no other, and keep their secrets."""

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, connection, connections, transaction

from accounts.models import Agent, User
from audit.models import Entry
from core import seal
from core.errors import CountersignError
from registry import connections as reached
from registry import names, services
from registry.connections import Commands, Unreachable
from registry.models import Server, Tool, Toolset
from registry.models.versioned import Sighting, difference
from registry.publishing import published_catalogue
from registry.schemas import definitions
from registry.versions import tool_versions
from tests.conftest import person
from tests.registry.offering import ADD

URL = "http://127.0.0.1:9/mcp"


@pytest.fixture
def register(olga: User) -> Callable[..., Server]:
    def register(slug: str = "github", **options: Any) -> Server:
        options = {"transport": "http", "url": URL, **options}
        return services.register(slug, owner=olga, by=olga, **options)

    return register


Register = Callable[..., Server]


def test_it_is_recorded_without_its_secrets(register: Register, olga: User) -> None:
    register(credential="s3cret", headers={"X-Key": "hush"})

    entry = Entry.objects.get(action="server.registered")
    assert (entry.actor, entry.server, entry.details) == ("olga", "github", {"address": URL})


@pytest.mark.parametrize(
    ("slug", "suggestion"),
    [
        ("github", "github-2"),
        ("GitHub", "github-2"),
        ("github ", "github-2"),
        ("gіthub", "g-thub"),
        ("git hub", "git-hub"),
        ("github.search", "github-search"),
        ("", "server"),
        ("-", "server"),
        ("a" * 33, "a" * 32),
        ("countersign", "countersign-2"),
        ("c0untersign", "c0untersign-2"),
        ("git\nhub", "git-hub"),
        ("github\u0000", "github-2"),
        ("../etc", "etc"),
    ],
)
def test_a_name_that_could_mislead_is_refused_with_one_that_would_do(
    register: Register, slug: str, suggestion: str
) -> None:
    register("github")

    with pytest.raises(names.NameRefused) as refused:
        register(slug)

    assert refused.value.suggestion == suggestion
    assert f"“{suggestion}” would do." in str(refused.value)
    assert Server.objects.count() == 1
    assert register(suggestion).slug == suggestion


@pytest.mark.parametrize(
    ("first", "second"),
    [("wiki1", "wikil"), ("modern", "modem"), ("vvorld", "world"), ("repo0", "repoo")],
)
def test_names_that_look_alike_are_taken_once(register: Register, first: str, second: str) -> None:
    register(first)

    with pytest.raises(names.NameRefused, match=f"could pass for, the server “{first}”"):
        register(second)


@pytest.mark.django_db(transaction=True)
def test_of_two_that_look_alike_one_is_registered(register: Register) -> None:
    person("warm-up")
    ready, outcomes = threading.Barrier(2), []

    def enter(slug: str) -> None:
        ready.wait()
        try:
            outcomes.append(register(slug).slug)
        except names.NameRefused:
            outcomes.append("")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=enter, args=[slug]) for slug in ("modern", "modem")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(bool, outcomes)) == [False, True]
    assert Server.objects.count() == 1


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "must begin with https"),
        ("ftp://example.org/", "must begin with https"),
        ("file:///etc/passwd", "must begin with https"),
        ("javascript:alert(1)", "must begin with https"),
        ("http://", "names no host"),
        ("http://olga:pw@example.org/", "user name or password"),
        ("http://169.254.169.254/latest/meta-data", "is not public"),
        ("http://10.0.0.1/", "is not public"),
        ("http://[::ffff:10.0.0.1]/", "is not public"),
        ("https://example.org/#tools", "a part after #"),
        ("https://example.org/" + "x" * 2000, "longer than 2,000"),
    ],
)
def test_an_address_that_may_not_be_reached_is_refused(
    register: Register, url: str, says: str
) -> None:
    with pytest.raises(services.RegistrationRefused, match=says):
        register(url=url)

    assert not Server.objects.exists()


def test_a_transport_nobody_knows_is_refused(register: Register) -> None:
    with pytest.raises(services.RegistrationRefused, match="“http” or “stdio”"):
        register(transport="pigeon")


@pytest.mark.parametrize(
    "command", ["", "clok", "clock; touch /tmp/x", "/bin/sh", '{"argv":["sh"]}', "__class__"]
)
def test_only_commands_of_the_hosts_catalogue_are_registered(
    register: Register, commands: Callable[..., None], command: str
) -> None:
    commands(clock={"argv": ["/usr/bin/clock"]})

    with pytest.raises(services.RegistrationRefused, match=r"catalogue of commands, which has: c"):
        register(transport="stdio", command=command)

    assert not Server.objects.exists()


def test_a_command_brings_its_own_words_and_secrets(
    register: Register, commands: Callable[..., None]
) -> None:
    commands(clock={"argv": ["/usr/bin/clock", "$(id)", "a b"], "env": {"KEY": "hush"}})

    server = register(transport="stdio", command="clock")

    known = reached.connection(server, Commands())
    assert known.argv == ("/usr/bin/clock", "$(id)", "a b")
    assert known.env == {"KEY": "hush"}
    assert "hush" not in repr(known)
    assert "hush" not in str(Server.objects.values())


def test_no_door_lets_a_command_line_in() -> None:
    takes = services.register.__wrapped__.__code__.co_varnames  # type: ignore[attr-defined]

    assert not {"argv", "args", "env"} & set(takes)


def test_a_command_takes_no_credential(register: Register, commands: Callable[..., None]) -> None:
    commands(clock={"argv": ["/usr/bin/clock"]})

    with pytest.raises(CountersignError, match="as env"):
        register(transport="stdio", command="clock", credential="s3cret")


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"clock": 5}',
        b'{"clock": {"argv": []}}',
        b'{"clock": {"argv": [5]}}',
        b'{"clock": {"argv": ["clock"]}}',
    ],
)
def test_a_broken_catalogue_is_said_to_be_broken(
    register: Register, commands: Callable[..., None], settings: Any, content: bytes
) -> None:
    commands()
    settings.STDIO_CATALOGUE.write_bytes(content)

    with pytest.raises(services.RegistrationRefused, match="cannot be read"):
        register(transport="stdio", command="clock")


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "other"},
        {"content-length": "5"},
        {"Mcp-Session-Id": "x"},
        {"X-A": "b\r\nX-B: c"},
        {"X-A": "ü"},
        {"X-A": ""},
        {"X A": "b"},
        {"": "b"},
        {"X-A\n": "b"},
        {"Transfer-Encoding": "chunked"},
    ],
)
def test_a_header_that_would_speak_for_us_is_refused(
    register: Register, headers: dict[str, str]
) -> None:
    with pytest.raises(CountersignError):
        register(headers=headers)

    assert not Server.objects.exists()


@pytest.mark.parametrize("credential", ["two words", "a\nb", "ü", "a" * 9000])
def test_a_credential_that_cannot_be_sent_is_refused_and_not_repeated(
    register: Register, credential: str
) -> None:
    with pytest.raises(CountersignError) as refused:
        register(credential=credential)

    assert credential not in str(refused.value)


def _stored() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT s::text FROM registry_server s")
        servers = str(cursor.fetchall())
        cursor.execute("SELECT e::text FROM audit_entry e")
        return servers + str(cursor.fetchall())


def test_secrets_are_sealed(register: Register) -> None:
    server = register(credential="s3cret-credential", headers={"X-Key": "hush-hush"})

    for secret in ("s3cret-credential", "hush-hush"):
        assert secret not in _stored()
        assert secret.encode().hex() not in _stored()
    assert reached.connection(server, Commands()).headers == {
        "X-Key": "hush-hush",
        "Authorization": "Bearer s3cret-credential",
    }


MOVES = {
    "to another row": "UPDATE registry_server a SET sealed_credential = b.sealed_credential"
    " FROM registry_server b WHERE a.slug = 'github' AND b.slug = 'gitlab'",
    "to another field": "UPDATE registry_server SET sealed_headers = sealed_credential",
    "to another version": "UPDATE registry_server SET connection_version = connection_version + 1",
    "changed by a bit": "UPDATE registry_server SET sealed_credential ="
    " set_byte(sealed_credential, 20, get_byte(sealed_credential, 20) # 1)",
    "cut to nothing": "UPDATE registry_server SET sealed_credential = ''",
}


@pytest.mark.parametrize("statement", MOVES.values(), ids=MOVES)
def test_a_sealed_secret_that_was_moved_does_not_open(register: Register, statement: str) -> None:
    server = register("github", credential="for-github")
    register("gitlab", credential="for-gitlab")

    with connection.cursor() as cursor:
        cursor.execute(statement)

    server.refresh_from_db()
    with pytest.raises(Unreachable, match="cannot be opened here: enter it again"):
        reached.connection(server, Commands())


def test_a_server_whose_secret_does_not_open_offers_nothing(
    register: Register, olga: User, settings: Any
) -> None:
    server = register(credential="s3cret")
    tool = _published(server, olga)
    assert published_catalogue.one(tool.pk) is not None

    settings.SECRET_KEY = "another one, after a backup was restored without its key"
    seal.key.cache_clear()
    try:
        assert published_catalogue.one(tool.pk) is None
        assert published_catalogue.load().tool(tool.pk) is None
    finally:
        seal.key.cache_clear()


def _published(server: Server, by: User) -> Tool:
    tool = Tool.objects.create(server=server, name="add", exposed_name=f"{server.slug}.add")
    digest = definitions.digest(services.identity_of(server), ADD)
    tool_versions.see_all([Sighting(tool, digest, definitions.body(ADD))], by=by.actor)
    services.publish(tool, difference=difference(tool), by=by)
    return tool


def test_a_moved_server_takes_no_credential_along(register: Register, olga: User) -> None:
    server = register(credential="s3cret", headers={"X-Key": "hush"})
    tool = _published(server, olga)
    before = reached.connection(server, Commands())

    services.set_connection(server, url="http://127.0.0.1:10/mcp", by=olga)

    after = reached.connection(Server.objects.get(), Commands())
    assert after.headers == {}
    assert after.key != before.key
    assert published_catalogue.one(tool.pk) is None
    tool.refresh_from_db()
    assert tool.state == Tool.State.CHANGED


def test_new_secrets_make_new_connections_and_hold_nothing(register: Register, olga: User) -> None:
    server = register(credential="one")
    tool = _published(server, olga)
    before = reached.connection(server, Commands())

    services.set_connection(server, url=URL, credential="two", by=olga)

    known = published_catalogue.one(tool.pk)
    assert known is not None
    assert known.connection.headers == {"Authorization": "Bearer two"}
    assert known.connection.key != before.key


def test_a_disabled_server_offers_nothing(register: Register, olga: User) -> None:
    server = register()
    tool = _published(server, olga)

    services.set_enabled(server, False, by=olga)
    services.set_enabled(server, False, by=olga)

    assert published_catalogue.one(tool.pk) is None
    assert Entry.objects.filter(action="server.disabled").count() == 1


def test_how_its_calls_are_run_is_an_operators_word(register: Register, olga: User) -> None:
    tool = _published(register(), olga)

    for _again in range(2):
        services.set_handling(tool, mode="background", timeout_s=600, safe_to_repeat=True, by=olga)

    known = published_catalogue.one(tool.pk)
    assert known is not None
    assert (known.mode, known.timeout_s, known.safe_to_repeat) == ("background", 600, True)
    assert Entry.objects.filter(action="tool.handling_set").count() == 1


@pytest.mark.parametrize("wrong", [{"mode": "fast"}, {"timeout_s": 0}, {"timeout_s": 86_401}])
def test_calls_cannot_be_run_in_a_way_nobody_knows(
    register: Register, olga: User, wrong: dict[str, Any]
) -> None:
    tool = _published(register(), olga)
    asked: dict[str, Any] = {"mode": "auto", "timeout_s": 5, "safe_to_repeat": False, **wrong}

    with pytest.raises(services.RegistrationRefused):
        services.set_handling(tool, by=olga, **asked)


def test_a_toolset_holds_servers_and_single_tools_for_its_agents(
    register: Register, olga: User, scout: Agent
) -> None:
    github, gitlab = register("github"), register("gitlab")
    _published(github, olga)
    one = _published(gitlab, olga)
    toolset = services.create_toolset("code", by=olga, title="Code")

    for _again in range(2):
        services.add_server(toolset, github, by=olga)
        services.add_tool(toolset, one, by=olga)
        services.assign(toolset, scout, by=olga)

    known = published_catalogue.load().toolset("code")
    assert known is not None
    assert list(known.by_exposed) == ["github_add", "gitlab_add"]
    assert {slug: list(tools) for slug, tools in known.by_server.items()} == {
        "github": ["add"],
        "gitlab": ["add"],
    }
    assert known.agents == {scout.pk}
    assert Entry.objects.filter(action="toolset.added").count() == 3

    services.remove_server(toolset, github, by=olga)
    services.remove_tool(toolset, one, by=olga)
    services.unassign(toolset, scout, by=olga)

    known = published_catalogue.load().toolset("code")
    assert known is not None
    assert (list(known.by_exposed), known.agents) == ([], frozenset())
    assert Entry.objects.filter(action="toolset.removed").count() == 3


@pytest.mark.parametrize("slug", ["", "two words", "a/b", "code", "ü"])
def test_a_toolset_has_a_plain_name_of_its_own(olga: User, slug: str) -> None:
    services.create_toolset("code", by=olga)

    with pytest.raises(services.RegistrationRefused):
        services.create_toolset(slug, by=olga)

    assert Toolset.objects.count() == 1


ILLEGAL = {
    "a changed definition": "UPDATE registry_definition SET body = '{}'",
    "a changed digest": "UPDATE registry_definition SET digest = repeat('0', 64)",
    "a removed definition": "DELETE FROM registry_definition",
    "no definitions": "TRUNCATE registry_definition CASCADE",
    "a removed tool": "DELETE FROM registry_tool",
    "a published tool without definition": "UPDATE registry_tool SET published_id = NULL",
    "a held tool called published": "UPDATE registry_tool SET state = 'published',"
    " latest_id = (SELECT max(id) FROM registry_definition WHERE tool_id <> registry_tool.id)",
    "a name in another case": "UPDATE registry_tool SET exposed_name = upper(exposed_name)"
    " WHERE id = (SELECT min(id) FROM registry_tool);"
    " UPDATE registry_tool SET exposed_name = lower((SELECT min(exposed_name) FROM registry_tool))"
    " WHERE id = (SELECT max(id) FROM registry_tool)",
}


@pytest.mark.parametrize("statement", ILLEGAL.values(), ids=ILLEGAL)
def test_the_database_itself_refuses(register: Register, olga: User, statement: str) -> None:
    for slug in ("github", "gitlab"):
        _published(register(slug), olga)

    with (
        pytest.raises(DatabaseError, match=r"never changed|denied|violates"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)

    assert published_catalogue.load().tool(Tool.objects.first().pk) is not None  # type: ignore[union-attr]


def test_two_servers_cannot_have_one_name_even_in_the_database(
    register: Register, olga: User
) -> None:
    register("github")

    with pytest.raises(IntegrityError), transaction.atomic():
        Server.objects.create(slug="github", transport="http", url=URL, owner=olga)


def test_the_command_line_registers(olga: User, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = json.dumps({"credential": "s3cret", "headers": {"X-Team": "blue"}}).encode()
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(secrets)))
    output = StringIO()

    call_command(
        "register_server", "github", "--url", URL, "--owner", "olga", "--secrets", stdout=output
    )

    assert output.getvalue() == f"Registered github: {URL}\n"
    assert reached.connection(Server.objects.get(), Commands()).headers == {
        "X-Team": "blue",
        "Authorization": "Bearer s3cret",
    }
    assert Entry.objects.get(action="server.registered").actor == "command line"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["x", "--url", URL, "--owner", "nobody"], "no person named nobody"),
        (["Git", "--url", URL, "--owner", "olga"], "“git” would do"),
        (["x", "--url", "ftp://x", "--owner", "olga"], "must begin with https"),
        (["x", "--command", "sh", "--owner", "olga"], "which has: statements"),
    ],
)
def test_the_command_line_says_what_was_wrong(
    olga: User, commands: Callable[..., None], arguments: list[str], says: str
) -> None:
    commands()

    with pytest.raises(CommandError, match=says):
        call_command("register_server", *arguments)


def test_who_reads_only_the_beginning_of_it_has_changed_the_toolset_all_the_same(
    register: Register, scout: Agent, olga: User
) -> None:
    """`manage.py toolset code --agent scout | head -0`"""
    reading, writing = os.pipe()
    os.close(reading)

    with suppress(BrokenPipeError), open(writing, "w", buffering=1) as closed:
        call_command("toolset", "code", "--agent", "scout", stdout=closed)
        closed.flush()

    assert Toolset.objects.get(slug="code").agents.get() == scout


def test_the_command_line_keeps_toolsets(register: Register, scout: Agent, olga: User) -> None:
    _published(register("github"), olga)
    _published(register("gitlab"), olga)
    output = StringIO()

    call_command(
        "toolset",
        "code",
        *("--server", "github", "--tool", "gitlab.add", "--agent", "scout"),
        stdout=output,
    )

    own = "own tools: await_call, get_call, cancel_call, my_waiting_calls, justify\n"
    own += "separator: _\nsearch: no\nsign-in of agents: no\nreaders of the registry: none\n"
    assert output.getvalue() == f"servers: github\ntools: gitlab.add\nagents: scout\n{own}"
    known = published_catalogue.load().toolset("code")
    assert known is not None
    assert (list(known.by_exposed), known.agents) == (
        ["github_add", "gitlab_add"],
        frozenset([scout.pk]),
    )

    call_command(
        "toolset",
        "code",
        *("--without-server", "github", "--without-tool", "gitlab.add", "--without-agent", "scout"),
        *("--own-tool", "explain", "--without-own-tool", "cancel_call", "--sign-in", "yes"),
        *("--registry", "anyone"),
        stdout=output,
    )
    own = "own tools: await_call, get_call, my_waiting_calls, justify, explain\n"
    assert output.getvalue().endswith(
        f"servers: -\ntools: -\nagents: -\n{own}separator: _\nsearch: no\n"
        "sign-in of agents: yes\nreaders of the registry: anyone\n"
    )
    assert Entry.objects.filter(action="toolset.sign_in_set").count() == 1
    assert Entry.objects.filter(action="toolset.own_tools_set").count() == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["two words"], "valid"),
        (["code", "--server", "nothing"], "no server named nothing"),
        (["code", "--tool", "nothing"], "no tool named nothing"),
        (["code", "--agent", "nobody"], "no agent named nobody"),
        (["code", "--rename", "nothing=x"], "no tool named nothing"),
        (["code", "--rename", "nothing"], "Write TOOL="),
        (["code", "--own-tool", "nothing"], "“nothing” is no tool for own calls"),
        (["code", "--without-own-tool", "nothing"], "there are: await_call, "),
    ],
)
def test_a_toolset_that_cannot_be_is_not_begun(db: None, arguments: list[str], says: str) -> None:
    with pytest.raises(CommandError, match=says):
        call_command("toolset", *arguments)

    assert not Toolset.objects.exists()


def test_the_command_line_takes_up_a_changed_command(
    register: Register, commands: Callable[..., None], olga: User
) -> None:
    commands(clock={"argv": ["/usr/bin/clock"]})
    tool = _published(register("clock", transport="stdio", command="clock"), olga)
    commands(clock={"argv": ["/usr/bin/clock", "--utc"]})
    assert published_catalogue.one(tool.pk) is None
    output = StringIO()

    call_command("update_server", "clock", stdout=output)

    tool.refresh_from_db()
    assert output.getvalue() == "clock: /usr/bin/clock --utc\n"
    assert tool.state == Tool.State.CHANGED


def test_the_command_line_moves_a_server_and_its_secrets_stay_behind(
    register: Register, monkeypatch: pytest.MonkeyPatch
) -> None:
    register("github", credential="one")
    other = "http://127.0.0.1:10/mcp"
    with pytest.raises(CommandError, match="secrets, which never move along"):
        call_command("update_server", "github", "--url", other)
    assert Server.objects.get().url == URL

    call_command("update_server", "github", "--url", other, "--without-secrets", "--disable")

    server = Server.objects.get()
    assert (server.url, server.enabled) == (other, False)
    assert reached.connection(server, Commands()).headers == {}

    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b'{"credential": "two"}')))
    call_command("update_server", "github", "--secrets")
    call_command("update_server", "github", "--enable")

    server = Server.objects.get()
    assert (server.url, server.enabled) == (other, True)
    assert reached.connection(server, Commands()).headers == {"Authorization": "Bearer two"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nobody"], "no server named nobody"),
        (["github", "--url", "ftp://x"], "must begin with https"),
        (["github", "--secrets"], "not a JSON object"),
    ],
)
def test_the_command_line_says_why_a_server_stays_as_it_is(
    register: Register, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    register("github")
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"s3cret")))

    with pytest.raises(CommandError, match=says):
        call_command("update_server", *arguments)

    assert Server.objects.get().connection_version == 1
