"""What a client gets through Countersign is what the server says: the same tools and answers.

Asked of every client, about every server: ours, and those that others made and run on stdio and
HTTP. What the servers say without us is read off their own wire, through no SDK.
"""

import asyncio
import json
import os
import re
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import jsonschema_rs
import pytest
from asgiref.sync import sync_to_async

from calls.models import Call
from calls.record.states import State
from config.greeting import greeting
from gateway.methods.own_definitions import DEFINITIONS
from gateway.protocol.revisions import LAST_LEGACY, OLDEST
from policies.models import Effect
from registry.models import Tool, own_tools
from registry.publishing import published_catalogue
from registry.publishing.tool_lists import FORMATS, tool_list
from registry.services import set_handling
from tests.flows import compatibility, snippets
from tests.flows.chat import check_anthropic, check_tool
from tests.flows.directly import directly
from tests.flows.house import TOOLSET, House, commands, decide, open_house, rule
from tests.flows.servers import GOT, READ, Question, Server, questions, running_servers
from tests.flows.visitors import Json, Reader, Refused, ScriptVisitor, Visitor, visiting
from tests.gateway.conftest import until
from tests.processes import ROOT, Stack
from tests.registry.test_tool_lists import check_gemini_tool

pytestmark = pytest.mark.long

REVISIONS = {
    "python": "2026-07-28",
    "python-legacy": "2025-11-25",
    "typescript": "2026-07-28",
    "typescript-legacy": "2025-11-25",
    "typescript-v1": "2025-11-25",
    "fastmcp": "2026-07-28",
    "inspector": "2026-07-28",
    "raw": "2025-03-26",
}
# The Inspector's command line is a program for each question, of which so many run side by side.
AT_ONCE = {"inspector": 2}
LASTING = [client for client in REVISIONS if client != "inspector"]
EVERYTHING = ("everything", "everything-http", "everything-sse")
# Members of `_meta` that Countersign adds.
OURS = ("countersign/", "io.modelcontextprotocol/serverInfo")
# How long an answer may be kept, and who may: its server says nothing of it.
TOLD_BY_US = ("resultType", "ttlMs", "cacheScope", "_meta")
BLOB = '(?<="blob": ")[^"]*'
# Tools that it adds.
OWN = [{**DEFINITIONS[name], "name": f"countersign_{name}"} for name in own_tools()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("flows")


@pytest.fixture(scope="module")
def servers(folder: Path, stack: Stack) -> Iterator[dict[str, Server]]:
    with running_servers(folder, stack.env) as servers, commands(servers.values()):
        yield servers


@pytest.fixture(scope="module")
def asked(folder: Path) -> dict[str, list[Question]]:
    return questions(folder)


@pytest.fixture(scope="module")
def truth(servers: dict[str, Server], asked: dict[str, list[Question]]) -> dict[str, Json]:
    """By server: what it says without us."""

    async def all_of_them() -> list[Json | BaseException]:
        # None is cancelled because another failed: some clients do not end by that.
        asking = (said(servers[slug], asked[slug]) for slug in servers)
        return await asyncio.gather(*asking, return_exceptions=True)

    told: dict[str, Json] = {}
    for slug, it in zip(servers, asyncio.run(all_of_them()), strict=True):
        if isinstance(it, BaseException):
            raise it
        told[slug] = it
    return told


async def said(server: Server, questions: list[Question]) -> Json:
    async with directly(server) as link:
        hello = await link.begin()
        listed = await link.ask("tools/list", {})
        answers = [
            await link.ask("tools/call", {"name": tool, "arguments": arguments})
            for tool, arguments in questions
        ]
        asked = {
            (method, named): answer_of(await link.ask(method, params))
            for method, named, params in beside_tools(server.slug)
        }
    return {
        "can": CAN & set(hello["capabilities"]),
        "tools": listed["result"]["tools"],
        "answers": [answer_of(answer) for answer in answers],
        "beside": asked,
    }


def answer_of(message: Json) -> Json:
    answer: Json = message.get("result") or message["error"]
    return answer


# Tasks of 2025-11-25 are not relayed, and what is experimental has no names that both know.
CAN = {"tools", "resources", "prompts", "completions", "logging"}
# By list: the member that holds it, and what no two of its items share.
MEMBERS = {
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}
LISTS = tuple(MEMBERS)


def beside_tools(slug: str) -> Iterator[tuple[str, str, Json]]:
    """Method, what is asked for, and parameters: of resources and prompts."""
    if slug not in READ:
        return
    for method in LISTS:
        yield method, "", {}
    for uri in READ[slug]:
        yield "resources/read", uri, {"uri": uri}
    for name, arguments in GOT.get(slug, []):
        yield "prompts/get", name, {"name": name, **({"arguments": arguments} if arguments else {})}


@pytest.fixture(scope="module")
def house(
    lasting_database: None, stack: Stack, servers: dict[str, Server], truth: dict[str, Json]
) -> House:
    house = open_house(stack, servers.values())
    rule(Effect.ALLOW, "*", position=900)
    rule(Effect.ASK, "send_mail", position=100)
    # A server that is cut off cannot say how far it came; here an operator says it does not matter.
    for slug, (tool, _arguments) in LASTS_LONG.items():
        row = Tool.objects.get(exposed_name=f"{slug}.{tool}")
        set_handling(row, by=None, mode="auto", timeout_s=900, safe_to_repeat=True)
    return house


@pytest.fixture(scope="module", autouse=True)
def page() -> Iterator[None]:
    yield
    if os.environ.get("COMPATIBILITY") == "write":
        compatibility.write(compatibility.seen())


@pytest.fixture(params=REVISIONS)
def client(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=LASTING)
def lasting_client(request: pytest.FixtureRequest) -> str:
    """One that hears of progress and may give up."""
    name: str = request.param
    return name


def chosen(client: str, questions: list[Question]) -> list[int]:
    """Where starting costs most, the first and the last: the good one and the bad one."""
    every = range(len(questions))
    return sorted({every[0], every[-1]}) if client == "inspector" else list(every)


async def answer(visitor: Visitor, tool: str, arguments: Json) -> Json:
    """Without what is ours."""
    try:
        result = await visitor.call(tool, arguments)
    except Refused as error:
        return {"code": error.code, "message": error.message}
    result.pop("resultType", None)
    meta = {name: value for name, value in result.pop("_meta").items() if not name.startswith(OURS)}
    return {**result, "_meta": meta} if meta else result


def uncounted(answer: Json) -> Json:
    """Sequential Thinking counts whatever it is told, by whomever."""
    text = re.sub(r"(thoughtHistoryLength\W+)\d+", r"\g<1>0", json.dumps(answer))
    without: Json = json.loads(text)
    return without


async def test_it_lists_every_tool_as_its_server_describes_it(
    client: str, house: House, truth: dict[str, Json]
) -> None:
    async with visiting(client, house.url(), house.token) as visitor:
        hello, listed = await visitor.hello(), await visitor.tools()

    assert hello.revision == REVISIONS[client]
    assert set().union(*(one["can"] for one in truth.values())) <= hello.can
    offered = [
        {**tool, "name": f"{slug}_{tool['name']}"}
        for slug in truth
        for tool in truth[slug]["tools"]
    ]
    by_name = {tool["name"]: tool for tool in listed}
    assert by_name == {tool["name"]: tool for tool in [*OWN, *shown_to(client, offered)]}
    assert len(by_name) == len(listed)
    compatibility.note(client, truth, "discover")
    compatibility.note(client, truth, "list")


def shown_to(client: str, tools: list[Json]) -> list[Json]:
    """Only 2025-11-25 says of each tool whether it can run as a task: where its server says
    nothing of that, it can. Each schema has `properties`, which models' APIs demand."""
    tools = [{**tool, "inputSchema": {"properties": {}} | tool["inputSchema"]} for tool in tools]
    if REVISIONS[client] != LAST_LEGACY:
        return [{key: said for key, said in tool.items() if key != "execution"} for tool in tools]
    optional = {"taskSupport": "optional"}
    return [{**tool, "execution": optional | tool.get("execution", {})} for tool in tools]


async def test_it_gets_the_answers_that_the_servers_give(
    client: str, house: House, truth: dict[str, Json], asked: dict[str, list[Question]]
) -> None:
    async with visiting(client, house.url(), house.token) as visitor:
        # As hosts do it: what a tool's output must look like is known from now on.
        await visitor.tools()

        async def asks(slug: str) -> None:
            for number in chosen(client, asked[slug]):
                tool, given = asked[slug][number]
                expected = truth[slug]["answers"][number]
                found = await answer(visitor, f"{slug}_{tool}", given)
                assert uncounted(found) == uncounted(expected), (slug, tool)
                bad = "code" in expected or expected.get("isError")
                compatibility.note(client, [slug], "error" if bad else "call")

        await side_by_side(client, map(asks, truth))


async def side_by_side(client: str, askings: Iterable[Awaitable[None]]) -> None:
    """Most of it is waiting: for servers, and for the clients' own processes."""
    room = asyncio.Semaphore(AT_ONCE.get(client, len(REVISIONS) * len(READ)))

    async def one(asking: Awaitable[None]) -> None:
        async with room:
            await asking

    async with asyncio.TaskGroup() as group:
        for asking in askings:
            group.create_task(one(asking))


async def test_one_server_alone_is_as_if_met_directly(
    client: str, house: House, truth: dict[str, Json], asked: dict[str, list[Question]]
) -> None:
    async with visiting(client, house.url("weather"), house.token) as visitor:
        listed = await visitor.tools()
        answers = [await answer(visitor, tool, given) for tool, given in asked["weather"]]

    offered = shown_to(client, truth["weather"]["tools"])
    assert listed == offered
    assert answers == truth["weather"]["answers"]


async def test_it_gets_resources_and_prompts_as_their_servers_give_them(
    client: str, house: House, truth: dict[str, Json]
) -> None:
    """At each server's own address, and at that of all of them."""

    async def reads(slug: str) -> None:
        asked = {(method, named): params for method, named, params in beside_tools(slug)}
        if client == "inspector":
            asked = {key: asked[key] for key in shortest(asked)}
        async with visiting(client, house.url(slug), house.token) as visitor:
            found = {key: await beside(visitor, key[0], params) for key, params in asked.items()}
        assert found == {key: comparable(truth[slug]["beside"][key], key[0]) for key in asked}, slug

    async def reads_of_all() -> None:
        async with visiting(client, house.url(), house.token) as visitor:
            for method, named, params in beside_tools_of_all(truth, few=client == "inspector"):
                found = await beside(visitor, method, params)
                assert found == comparable(of_all(truth, method, named), method), (method, named)

    await side_by_side(client, [reads_of_all(), *map(reads, READ)])
    compatibility.note(client, READ, "resource")
    compatibility.note(client, GOT, "prompt")


def beside_tools_of_all(truth: dict[str, Json], *, few: bool) -> Iterator[tuple[str, str, Json]]:
    """As `beside_tools`, where prompts have their server's name before their own."""
    for method in LISTS:
        yield method, "", {}
    for slug in READ:
        asked = {(method, named): params for method, named, params in beside_tools(slug) if named}
        for method, named in shortest(asked) if few else asked:
            params = asked[method, named]
            prefixed = f"{slug}.{named}"
            if method == "prompts/get":
                yield method, prefixed, params | {"name": prefixed}
            else:
                yield method, named, params


def of_all(truth: dict[str, Json], method: str, named: str) -> Json:
    """What the servers say together. Of two that list the same URI the first one is asked."""
    if method == "prompts/get":
        slug, _, own = named.partition(".")
        return answer_beside(truth, slug, method, own)
    if method == "resources/read":
        slug = min(slug for slug, uris in READ.items() if named in uris)
        return answer_beside(truth, slug, method, named)
    member, key = MEMBERS[method]
    items: dict[str, Json] = {}
    for slug in sorted(READ):
        for item in answer_beside(truth, slug, method, "").get(member, []):
            renamed = {"name": f"{slug}.{item['name']}"} if member == "prompts" else {}
            items.setdefault(f"{slug}.{item[key]}" if renamed else item[key], item | renamed)
    return {member: list(items.values())}


def answer_beside(truth: dict[str, Json], slug: str, method: str, named: str) -> Json:
    answer: Json = truth[slug]["beside"][method, named]
    return answer


def shortest(asked: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """One resource and one prompt."""
    first: dict[str, tuple[str, str]] = {}
    for method, named in asked:
        if named:
            first.setdefault(method, (method, named))
    return list(first.values())


async def beside(visitor: Reader, method: str, params: Json) -> Json:
    try:
        result = await visitor.ask(method, params)
    except Refused as error:
        # One of the SDKs puts words of its own before it.
        said = error.message.removeprefix(f"MCP error {error.code}: ")
        return {"code": error.code, "message": said}
    return comparable(result, method)


def comparable(answer: Json, method: str) -> Json:
    """Without what is ours, in one order, and without the time of day that some of it tells."""
    if method in LISTS:
        member, key = MEMBERS[method]
        items = [item for item in answer.get(member, []) if "countersign:" not in json.dumps(item)]
        return {member: sorted(items, key=lambda item: str(item[key]))}
    left = {name: value for name, value in answer.items() if name not in TOLD_BY_US}
    text = re.sub(BLOB, lambda found: b64decode(found[0]).decode(), json.dumps(left))
    without: Json = json.loads(re.sub(r"\d+:\d\d:\d\d [AP]M", "then", text))
    return without


async def test_it_hears_how_far_a_call_is(lasting_client: str, house: House) -> None:
    client = lasting_client
    steps: dict[str, list[Json]] = {slug: [] for slug in GOES_IN_STEPS}

    async with visiting(client, house.url(), house.token) as visitor:

        async def hears(slug: str) -> None:
            tool, given = GOES_IN_STEPS[slug]
            await visitor.call(f"{slug}_{tool}", given, steps[slug].append)

        await side_by_side(client, map(hears, GOES_IN_STEPS))

    assert [(step["progress"], step["total"]) for step in steps["reports"]] == [
        (0, 1),
        (0.25, 1),
        (0.5, 1),
        (0.75, 1),
        (1, 1),
    ]
    assert [step["message"] for step in steps["reports"]][-2:] == ["Writing it down", "Done"]
    for slug in EVERYTHING:
        far = [(step["progress"], step["total"]) for step in steps[slug]]
        assert far == [(1, 4), (2, 4), (3, 4), (4, 4)], slug
    compatibility.note(client, GOES_IN_STEPS, "progress")


GOES_IN_STEPS: dict[str, Question] = {
    "reports": ("write_report", {"seconds": 1}),
    **dict.fromkeys(EVERYTHING, ("trigger-long-running-operation", {"duration": 0.4, "steps": 4})),
}
LASTS_LONG: dict[str, Question] = {
    "reports": ("write_report", {"seconds": 600}),
    **dict.fromkeys(EVERYTHING, ("trigger-long-running-operation", {"duration": 60, "steps": 600})),
}


async def test_it_can_change_its_mind(
    lasting_client: str, house: House, servers: dict[str, Server], folder: Path
) -> None:
    client = lasting_client
    async with visiting(client, house.url(), house.token) as visitor:

        async def gives_up(slug: str) -> None:
            heard = told(folder, slug)
            if slug == "reports":
                heard = partial(given_up, servers["reports"])
            await changes_its_mind(visitor, slug, heard)
            compatibility.note(client, [slug], "cancel")

        # The house waits a while for each server to say that it stopped.
        await side_by_side(client, map(gives_up, LASTS_LONG))
        assert await answer(visitor, "calculator_add", {"a": 1, "b": 1})


async def changes_its_mind(visitor: Visitor, slug: str, heard: Callable[[], int]) -> None:
    tool, arguments = LASTS_LONG[slug]
    before, under_way = heard(), asyncio.Event()
    call = asyncio.create_task(
        visitor.call(f"{slug}_{tool}", arguments, lambda step: under_way.set())
    )
    async with asyncio.timeout(15):
        await under_way.wait()
    call.cancel()
    await asyncio.wait([call])

    async def state() -> str:
        row = await Call.objects.filter(tool_name=f"{slug}.{tool}").alatest("asked_at")
        return row.state

    async def has_ended() -> bool:
        return await state() != State.RUNNING

    async def has_heard() -> bool:
        return heard() == before + 1

    await until(has_ended)
    await until(has_heard)
    assert await state() == State.CANCELLED, slug


def told(folder: Path, slug: str) -> Callable[[], int]:
    """How often the server was told that a call was given up."""
    note = folder / f"{slug}.heard"
    return lambda: note.stat().st_size if note.exists() else 0


def given_up(reports: Server) -> int:
    """How many reports the server stopped writing; it breaks its lines at 80 columns."""
    assert reports.process
    return len(re.findall(r"report\s+cancelled\s+after", reports.process.text()))


async def test_it_hears_what_was_wrong_with_its_question(lasting_client: str, house: House) -> None:
    client = lasting_client
    async with visiting(client, house.url(), house.token) as visitor:
        unknown = await answer(visitor, "calculator_conquer", {})
        misfit = await answer(visitor, "calculator_add", {"a": "one"})

    assert unknown["code"] == -32602
    # One of the SDKs puts words of its own before it.
    assert unknown["message"].endswith("Unknown tool: calculator_conquer")
    assert misfit["isError"]
    assert "$.a: must be of type number" in misfit["content"][0]["text"]


async def test_every_call_is_in_the_record(
    client: str, house: House, asked: dict[str, list[Question]]
) -> None:
    before = await Call.objects.acount()

    async with visiting(client, house.url(), house.token) as visitor:
        await visitor.call("time_convert_time", asked["time"][0][1])

    last = await Call.objects.alatest("asked_at")
    assert await Call.objects.acount() == before + 1
    assert (last.tool_name, last.state) == ("time.convert_time", State.SUCCEEDED)
    named = "flows 1" if client in LASTING else "inspector-cli"
    assert (last.client.startswith(named), last.revision) == (True, REVISIONS[client]), last.client


async def test_fastmcp_comes_back_for_its_task(house: House) -> None:
    mail = {"to": ["ana@example.org"], "subject": "Minutes", "body": "Hello Ana."}
    asked = Call.objects.filter(tool_name="mailer.send_mail", client="flows 1")
    assert house.stack.worker
    async with visiting("fastmcp", house.url(), house.token) as visitor:
        assert isinstance(visitor, ScriptVisitor)
        mailed = asyncio.create_task(visitor.call_as_task("mailer_send_mail", mail))
        await until(lambda: has_looked(visitor))
        held = await asked.aget()
        await sync_to_async(decide)(held.pk, by=house.alice, approve=True)

        assert (await mailed)["structuredContent"]["message_id"]

    assert visitor.asked[0]["status"] == "working"
    assert visitor.asked[0]["statusMessage"].startswith("Not executed: pending approval.")


async def has_looked(visitor: Visitor) -> bool:
    return bool(visitor.asked)


def test_the_page_says_what_was_seen() -> None:
    """Last of those by client; what was left out of this run is not looked at."""
    seen, said = (
        compatibility.by_column(compatibility.seen()),
        compatibility.by_column(compatibility.written()),
    )

    differing = {
        of: (sorted(found), sorted(said.get(of, set())))
        for of, found in seen.items()
        if found != said.get(of, set())
    }

    assert differing == {}, "seen, and what docs/en/reference/compatibility.md says"
    assert {client for client, _ in said} == set(REVISIONS)
    assert set().union(*said.values()) == set(questions(Path("anywhere")))


@pytest.fixture
def paste(house: House, folder: Path) -> Callable[..., str]:
    def paste(language: str, text: str, **variables: str) -> str:
        env = {**os.environ, "COUNTERSIGN_TOKEN": house.token, **variables}
        return snippets.run(language, text, url=house.stack.agents_url, env=env, folder=folder)

    return paste


def check_openai(tool: Json) -> None:
    check_tool(tool["function"])


TOOL_LISTS = (ROOT / "docs/en/reference/tool-lists.md").read_text()
CHECKS = {"openai": check_openai, "anthropic": check_anthropic, "gemini": check_gemini_tool}


@pytest.mark.parametrize("form", FORMATS)
def test_a_list_for_models_is_one_that_their_providers_take(
    form: str, house: House, truth: dict[str, Json], db: None
) -> None:
    """Every tool of every server, with what is lost on the way."""
    toolset = published_catalogue.load().toolset(TOOLSET)
    assert toolset is not None

    listed = tool_list(toolset, form)

    tools = listed.tools[0]["functionDeclarations"] if form == "gemini" else listed.tools
    assert len(tools) == sum(len(one["tools"]) for one in truth.values()) > 50
    for tool in tools:
        if form in CHECKS:
            CHECKS[form](tool)
        elif form == "mcp":
            jsonschema_rs.validator_for(tool["inputSchema"])
        else:
            jsonschema_rs.validator_for(tool)
    assert all(one["why"] for one in listed.losses)
    lossy = {one["tool"] for one in listed.losses}
    assert f"| `{form}` | {len(tools)} | {len(lossy)} | {len(listed.losses)} |" in TOOL_LISTS


def test_curl_lists_tools_and_calls_them(paste: Callable[..., str], truth: dict[str, Json]) -> None:
    listing, calling, progress, _, _ = snippets.curls()

    tools = json.loads(paste("sh", listing))["result"]["tools"]
    assert len(tools) == len(OWN) + sum(len(each["tools"]) for each in truth.values())
    assert json.loads(paste("sh", calling))["result"]["content"][0]["text"] == "3.0"
    events = re.findall(r"^data: (.*)$", paste("sh", progress), re.MULTILINE)
    steps = [json.loads(event) for event in events]
    assert [step.get("method") for step in steps] == ["notifications/progress"] * 5 + [None]
    assert not steps[-1]["result"]["isError"]


def test_curl_gets_a_task_and_comes_back_for_it(paste: Callable[..., str]) -> None:
    _, _, _, calling, looking = snippets.curls()

    task = json.loads(paste("sh", calling))["result"]
    seen = json.loads(paste("sh", looking, TASK=task["taskId"]))["result"]

    assert (task["resultType"], seen["status"]) == ("task", "working")
    assert seen["statusMessage"].startswith("Not executed: pending approval.")


def test_what_up_says_at_its_start_works(paste: Callable[..., str], house: House) -> None:
    env = {"COUNTERSIGN_PUBLIC_URL": "", "COUNTERSIGN_AGENT_URL": house.stack.agents_url}
    first = {"toolset": TOOLSET, "token": house.token, "sign_in": ""}
    said = greeting(env, first, with_secrets=True)

    answer = paste("sh", said[said.index("curl ") :])

    assert json.loads(answer)["result"]["tools"]


async def test_the_first_steps_are_as_described(paste: Callable[..., str], house: House) -> None:
    calculate, send_mail, report = snippets.curls(snippets.FIRST_STEPS)
    steps = partial(asyncio.to_thread, paste, "sh")
    assert house.stack.worker

    # An answer that takes its time comes as an event.
    mailed = asyncio.create_task(steps(send_mail))
    held = await until(Call.objects.filter(state=State.HELD, revision=OLDEST).afirst)
    await sync_to_async(decide)(held.pk, by=house.alice, approve=True)

    assert "42" in json.loads(await steps(calculate))["result"]["content"][0]["text"]
    assert (
        "message_id"
        in json.loads((await mailed).split("data: ")[-1])["result"]["structuredContent"]
    )
    sooner = report.replace('"arguments": {}', '"arguments": {"seconds": 1}')
    assert (await steps(sooner)).count("notifications/progress") == 5


@pytest.mark.parametrize("language", ["python", "js"])
def test_the_sdk_examples_of_the_docs_run(language: str, paste: Callable[..., str]) -> None:
    (example,) = snippets.blocks(language)

    printed = paste(language, example)

    # Node prints the first hundred of a list, and with all servers there are more.
    assert "calculator_add" in printed
    assert re.search(r"result\W+3", printed)
