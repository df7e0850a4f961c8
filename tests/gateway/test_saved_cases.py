"""Saved cases of a tool: kept by operators, run as calls like any other, compared with what was
expected."""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from calls.models import Call
from calls.record.states import LIVE, State
from core.errors import RecordUnsure
from gateway.cases import runs, schedules
from gateway.cases.services import add_case
from gateway.models import CaseRun, CaseSchedule, SavedCase
from gateway.submit import try_call
from gateway.tasks import run_cases
from policies.models import Effect
from registry import services
from registry.models import Tool, Toolset
from registry.schemas.secret_arguments import find_secrets
from tests.conftest import person
from tests.console import scenery
from tests.forms import submitted
from tests.gateway.conftest import AddRule, until
from tests.gateway.test_trying import Open, Tab, own_agent
from tests.gateway.test_trying import window as window
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def olga(toolset: Toolset) -> User:
    """An operator with an agent that gets the recorder's tools."""
    made = person("olga", Role.OPERATOR)
    own_agent(made, toolset)
    return made


@pytest.fixture
async def olgas(window: Open, olga: User) -> Tab:
    return await window(olga)


async def save(tab: Tab, tool: str, arguments: str) -> str:
    """Tries it by raw JSON and keeps that as a case; the case's page."""
    page = await tab.open(tool)
    if 'name="raw"' not in page:
        page = await tab.submit(tool, page, "json")
    return await tab.submit(tool, page, "save", raw=arguments)


async def press(tab: Tab, html: str, do: str = "", *, at: str = "", **changes: str) -> str:
    """Submits the form of the only case, or posts to a part of its address."""
    case = await SavedCase.objects.select_related("tool").aget()
    data = submitted(html, **({"do": do, "contains": "", "within_ms": ""} | changes))
    address = f"/tools/{case.tool.exposed_name}/cases/{case.pk}/{at}"
    return await tab._read("POST", address, data, csrftoken=data["csrfmiddlewaretoken"])


def answer(value: Any) -> bytes:
    text = orjson.dumps(value).decode()
    return orjson.dumps({"content": [{"type": "text", "text": text}], "structuredContent": value})


async def last_run() -> CaseRun:
    return await CaseRun.objects.select_related("call").alatest("pk")


@pytest.mark.long
async def test_a_case_is_saved_and_passes(olgas: Tab, upstream: Recorder) -> None:
    upstream.results["say"] = answer({"items": [{"name": "Ada", "n": 2}]})
    page = await save(olgas, "rec.say", '{"n": 1.0}')
    assert not await Call.objects.aexists()

    values = "$.items[0].name = \"Ada\"\r\n$.items[0]['n'] = 2"
    page = await press(
        olgas, page, "run", name="Ada", contains="Ada", values=values, within_ms="60000"
    )

    run = await last_run()
    assert (run.state, run.reason) == ("passed", "")
    assert len(run.checks) == 5
    assert "Passed" in page
    assert upstream.calls[0].arguments == b'{"n": 1.0}'
    assert run.call is not None
    assert (run.call.origin, run.call.state) == ("console", State.SUCCEEDED)
    actions = Entry.objects.filter(action__startswith="saved_case.").order_by("pk")
    assert [a async for a in actions.values_list("action", "actor")] == [
        ("saved_case.added", "olga"),
        ("saved_case.changed", "olga"),
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("expectation", "said"),
    [
        ({"contains": "Bob"}, "It does not stand there."),
        ({"values": '$.name = "Bob"'}, "Found: another value."),
        ({"values": "$.name.first = 1"}, "There is nothing at this path."),
        ({"values": "$.yes = 1"}, "Found: another value."),
        ({"outcome": "error"}, "It ended with a result."),
        ({"fits_schema": "on"}, "The tool has no output schema."),
    ],
)
async def test_what_is_not_met_is_said_without_the_result(
    olgas: Tab, upstream: Recorder, expectation: dict[str, str], said: str
) -> None:
    upstream.results["say"] = answer({"name": "Ada", "yes": True})
    page = await save(olgas, "rec.say", "{}")

    page = await press(olgas, page, "run", **expectation)

    run = await last_run()
    assert run.state == "failed"
    assert said in run.reason
    assert "Ada" not in run.reason
    assert said in page


@pytest.mark.long
async def test_an_error_can_be_what_is_expected(olgas: Tab, upstream: Recorder) -> None:
    page = await save(olgas, "rec.fail", "{}")
    await press(olgas, page, "run", outcome="error", contains="no such luck")

    assert (await last_run()).state == "passed"


@pytest.mark.long
async def test_a_blocked_run_is_not_passed(olgas: Tab, upstream: Recorder, rule: AddRule) -> None:
    page = await save(olgas, "rec.say", "{}")
    await rule(Effect.DENY, "say", reason="Not today.")

    page = await press(olgas, page, "run")

    assert (await last_run()).state == "not_run"
    assert "Not today." in page
    assert "Passed" not in page
    assert upstream.calls == []


@pytest.mark.long
async def test_a_held_run_is_pending_until_people_decided(
    olgas: Tab, upstream: Recorder, rule: AddRule
) -> None:
    page = await save(olgas, "rec.say", "{}")
    await rule(Effect.ASK, "say")

    page = await press(olgas, page, "run")

    run = await last_run()
    assert run.state == "open"
    assert "Pending approval" in page
    assert upstream.calls == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("$.a", "there is no “=”"),
        ("a = 1", "expected"),
        ("$..a = 1", "lead to one place"),
        ("$.a[?@.b == 1] = 1", "lead to one place"),
        ("$.a = x", "no JSON value"),
        ('$.a = {"a":1,"a":2}', "no JSON value"),
        ("\r\n".join(["$.a = 1"] * 21), "at most 20"),
    ],
)
async def test_a_line_that_expects_nothing_is_refused(
    olgas: Tab, upstream: Recorder, values: str, said: str
) -> None:
    page = await press(olgas, await save(olgas, "rec.say", "{}"), "run", values=values)

    assert said in page
    assert not await CaseRun.objects.aexists()


@pytest.mark.long
@pytest.mark.parametrize(
    "arguments",
    [
        '{"text": "AKIAQ2W3E4R5T6Y7U2I3"}',
        '{"text": "x", "password": "tr0ub4dor&3"}',
    ],
)
async def test_secrets_are_not_kept(olgas: Tab, upstream: Recorder, arguments: str) -> None:
    page = await save(olgas, "rec.echo", arguments)

    assert "keeps no secrets" in page
    assert not await SavedCase.objects.aexists()


def test_what_the_schema_marks_as_secret_is_found() -> None:
    schema = {
        "$defs": {"login": {"type": "object", "properties": {"pin": {"format": "password"}}}},
        "properties": {"who": {"$ref": "#/$defs/login"}, "key": {"writeOnly": True}},
    }
    assert find_secrets(schema, {"who": {"pin": "1"}, "key": 7}) == ["key", "who.pin"]
    assert find_secrets(schema, {"who": {}, "key": None}) == []


async def test_only_operators_keep_cases(window: Open, toolset: Toolset, bob: User) -> None:
    bobs = await window(bob)
    page = await bobs.open("rec.say")
    assert "Save as a case" not in page

    data = submitted(page, do="save")
    cookie = data["csrfmiddlewaretoken"]
    with pytest.raises(AssertionError):
        await bobs._read("POST", "/tools/rec.say/try/", data, csrftoken=cookie)
    assert not await SavedCase.objects.aexists()


@pytest.mark.long
async def test_old_runs_are_dropped(
    olgas: Tab, olga: User, upstream: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await save(olgas, "rec.say", "{}")
    case = await SavedCase.objects.select_related("tool__server", "tool__published").aget()
    monkeypatch.setattr(runs, "KEPT", 2)

    for _n in range(4):
        await sync_to_async(runs.run_case)(case, None, by=olga)

    assert await case.runs.acount() == 2
    await case.arefresh_from_db()
    assert case.last_run_id == (await last_run()).pk


@pytest.mark.long
async def test_an_interrupted_run_is_given_up(olgas: Tab, olga: User, upstream: Recorder) -> None:
    await save(olgas, "rec.say", "{}")
    case = await SavedCase.objects.aget()
    long_ago = timezone.now() - timedelta(hours=1)
    run = await CaseRun.objects.acreate(case=case, person=olga, at=long_ago)

    await sync_to_async(runs.settle_all)()

    await run.arefresh_from_db()
    assert (run.state, run.reason) == ("not_run", "It was interrupted before it was sent.")


class Killed(BaseException):
    pass


@pytest.mark.long
@pytest.mark.parametrize("end", [Killed(), RecordUnsure("The record did not answer.")])
async def test_a_run_that_was_interrupted_after_its_call_was_sent_finds_it(
    scheduled: SavedCase,
    stack: Stack,
    upstream: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    end: BaseException,
) -> None:
    send = try_call.send

    def cut_off(*args: Any, **options: Any) -> None:
        send(*args, **options)
        raise end

    monkeypatch.setattr(try_call, "send", cut_off)
    with suppress(Killed):
        await turn()
    run = await ended(stack)

    assert len(upstream.calls) == 1
    assert (run.state, run.call_id) == ("passed", (await Call.objects.aget()).pk)


@pytest.mark.long
async def test_a_run_that_cannot_be_compared_holds_up_no_others(
    scheduled: SavedCase, stack: Stack, upstream: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RecursionError

    await turn()
    assert stack.worker
    await until(lambda: Call.objects.exclude(state__in=LIVE).aexists())
    monkeypatch.setattr(runs, "check", fail)
    await sync_to_async(run_cases)()
    await CaseRun.objects.aupdate(state="failed")
    await CaseSchedule.objects.aupdate(next_at=timezone.now())
    monkeypatch.setattr(try_call, "send", fail)
    await sync_to_async(run_cases)()

    assert await CaseRun.objects.acount() == 2


async def test_a_case_is_deleted_with_its_history(olgas: Tab, upstream: Recorder) -> None:
    page = await press(olgas, await save(olgas, "rec.say", "{}"), "run")
    page = await press(olgas, page, at="delete/")

    assert "None yet" in page
    assert not await CaseRun.objects.aexists()
    assert await Call.objects.acount() == 1


@pytest.mark.long
async def test_a_run_before_and_after_the_definition_changed(
    olgas: Tab, upstream: Recorder, olga: User
) -> None:
    upstream.results["form"] = answer({"warm": True})
    page = await save(olgas, "rec.form", '{"city": "Ulm", "unit": "C"}')
    page = await press(olgas, page, "run", contains="warm")
    assert "From version" not in page

    changed = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["K"]}},
    }
    tool = await Tool.objects.select_related("server").aget(exposed_name="rec.form")
    content = {"name": "form", "inputSchema": changed}
    await sync_to_async(scenery.see)(tool.server, content)
    page = await press(olgas, page, at="")
    assert "do not fit the tool's schema" in page
    assert "“unit”" in page

    await tool.arefresh_from_db()
    await sync_to_async(services.publish)(tool, difference=None, by=olga)
    upstream.results["form"] = answer({"cold": True})
    await SavedCase.objects.aupdate(arguments=b'{"city":"Ulm"}')
    case = await SavedCase.objects.aget()
    page = await olgas._read("GET", f"/tools/rec.form/cases/{case.pk}/")
    page = await press(olgas, page, "run", contains="warm")

    assert (await last_run()).state == "failed"
    assert "From version 1 to version 2" in page
    assert re.search(r'data-kind="added".*cold', page)


@pytest.fixture
def scheduled(toolset: Toolset, olga: User, upstream: Recorder) -> SavedCase:
    """A case of a read-only tool that runs every hour as olga's agent."""
    Tool.objects.filter(name="say").update(risk=Tool.Risk.READS)
    tool = Tool.objects.select_related("server", "published").get(exposed_name="rec.say")
    case = add_case(tool, b'{"n":1}', {"n": 1}, schema={}, by=olga)
    schedules.set_schedule(case, "hour", agent=olga.agents.get(), confirmed=False, by=olga)
    return case


@pytest.mark.long
async def test_a_case_that_is_deleted_ends_its_schedule_by_an_entry(
    scheduled: SavedCase, olgas: Tab
) -> None:
    there = f"/tools/rec.say/cases/{scheduled.pk}/delete/"
    await press(olgas, await olgas._read("GET", there), at="delete/")

    assert not await CaseSchedule.objects.aexists()
    ended = await Entry.objects.aget(action="case_schedule.ended")
    assert (ended.actor, ended.details["case"]) == ("olga", scheduled.name)


async def turn(later: timedelta = timedelta()) -> None:
    """What beat's message makes a worker do, so much later."""
    await sync_to_async(schedules.run_due)(timezone.now() + later)


async def ended(stack: Stack) -> CaseRun:
    """The last run, after a worker has sent its call."""
    assert stack.worker
    run = await last_run()
    await until(lambda: Call.objects.exclude(state__in=LIVE).filter(pk=run.call_id or "").aexists())
    await sync_to_async(runs.settle_all)()
    return await last_run()


@pytest.mark.long
async def test_a_schedule_runs_as_the_agent_of_whoever_made_it(
    scheduled: SavedCase, stack: Stack, upstream: Recorder
) -> None:
    await turn()
    run = await ended(stack)

    assert (run.state, run.is_scheduled) == ("passed", True)
    assert run.call is not None
    assert run.call.agent_id == run.agent_id
    # The next is due in an hour.
    await turn(timedelta(minutes=59))
    assert await CaseRun.objects.acount() == 1
    await turn(timedelta(minutes=61))
    assert await CaseRun.objects.acount() == 2


@pytest.mark.long
async def test_a_scheduled_failure_is_an_entry_and_needs_somebody(
    scheduled: SavedCase, stack: Stack, upstream: Recorder, window: Open, olga: User
) -> None:
    await SavedCase.objects.aupdate(contains="not there")
    await turn()
    run = await ended(stack)

    assert run.state == "failed"
    entry = await Entry.objects.aget(action="saved_case.failed")
    assert (entry.tool, entry.agent) == ("rec.say", "olgas")
    assert entry.details["call"] == str(run.call_id)
    tab = await window(olga)
    assert "1 saved case failed" in await tab._read("GET", "/overview/")
    listed = await tab._read("GET", "/cases/?state=troubled")
    assert "Case 1" in listed
    assert "not there" in await tab._read("GET", "/servers/rec/cases/")


@pytest.mark.long
@pytest.mark.parametrize(
    ("lose", "said"),
    [
        (lambda olga: User.objects.filter(pk=olga.pk).update(is_active=False), "was disabled"),
        (lambda olga: olga.groups.clear(), "may no longer run cases"),
        (lambda olga: olga.agents.update(enabled=False), "The agent olgas was disabled"),
    ],
)
async def test_a_schedule_stops_with_whoever_made_it(
    scheduled: SavedCase,
    olga: User,
    upstream: Recorder,
    window: Open,
    lose: Callable[[User], Any],
    said: str,
) -> None:
    await sync_to_async(lose)(olga)
    await turn()

    schedule = await CaseSchedule.objects.aget()
    assert said in schedule.stopped
    entry = await Entry.objects.aget(action="case_schedule.stopped")
    assert said in entry.reason
    eve = await sync_to_async(person)("eve", Role.OPERATOR)
    tab = await window(eve)
    assert "1 schedule of cases stopped" in await tab._read("GET", "/overview/")
    assert said in await tab._read("GET", "/cases/")
    assert not await CaseRun.objects.aexists()
    assert upstream.calls == []


@pytest.mark.long
async def test_an_agent_that_lost_the_tool_is_not_run(
    scheduled: SavedCase, toolset: Toolset, upstream: Recorder
) -> None:
    await sync_to_async(toolset.agents.clear)()
    await turn()
    await CaseSchedule.objects.aupdate(next_at=timezone.now())
    await turn()

    assert (await last_run()).state == "not_run"
    assert await CaseRun.objects.acount() == 2
    # One says so for as long as nothing changes.
    assert await Entry.objects.filter(action="saved_case.not_run").acount() == 1


async def test_a_case_that_somebody_runs_is_not_asked_for_beside_it(
    scheduled: SavedCase, olga: User, upstream: Recorder
) -> None:
    await CaseRun.objects.acreate(case=scheduled, person=olga)
    await CaseRun.objects.acreate(case=scheduled, person=olga, state=CaseRun.State.PASSED)
    await turn()

    assert await CaseRun.objects.acount() == 2
    assert upstream.calls == []


async def test_a_turn_begins_with_those_that_ran_longest_ago(scheduled: SavedCase) -> None:
    schedule = await CaseSchedule.objects.select_related("person", "agent", "case").aget()
    other = await SavedCase.objects.acreate(
        tool_id=scheduled.tool_id, name="Other", arguments=b"{}", written_by_id=schedule.person_id
    )
    run = await CaseRun.objects.acreate(
        case=scheduled, person_id=schedule.person_id, state=CaseRun.State.PASSED
    )
    await SavedCase.objects.filter(pk=scheduled.pk).aupdate(last_run=run)

    def turn_of() -> list[str]:
        cases = SavedCase.objects.select_related("tool__server", "last_run").order_by("pk")
        return [case.name for case, _ in schedules._turn(schedule, list(cases))]

    assert await sync_to_async(turn_of)() == [other.name, scheduled.name]


@pytest.mark.long
async def test_what_writes_runs_by_itself_only_where_that_was_confirmed(
    scheduled: SavedCase, olga: User, upstream: Recorder
) -> None:
    await Tool.objects.filter(name="say").aupdate(risk=Tool.Risk.CHANGES)
    await turn()
    run = await last_run()
    assert (run.state, run.call_id) == ("not_run", None)
    assert "not confirmed" in run.reason

    case = await SavedCase.objects.select_related("tool__server").aget()
    agent = await olga.agents.aget()
    schedule = sync_to_async(schedules.set_schedule)
    with pytest.raises(schedules.ScheduleRefused, match="not read-only"):
        await schedule(case, "day", agent=agent, confirmed=False, by=olga)
    await schedule(case, "day", agent=agent, confirmed=True, by=olga)
    await turn()
    assert (await last_run()).call_id is not None
    # Destructive is more than what was confirmed.
    await CaseRun.objects.aupdate(state="passed")
    await Tool.objects.filter(name="say").aupdate(risk=Tool.Risk.DESTROYS)
    await turn(timedelta(days=2))
    assert (await last_run()).call_id is None


async def test_what_writes_runs_by_itself_only_with_the_arguments_that_were_confirmed(
    scheduled: SavedCase, olga: User, window: Open, upstream: Recorder
) -> None:
    await Tool.objects.filter(name="say").aupdate(risk=Tool.Risk.CHANGES)
    case = await SavedCase.objects.select_related("tool__server").aget()
    agent = await olga.agents.aget()
    await sync_to_async(schedules.set_schedule)(case, "day", agent=agent, confirmed=True, by=olga)
    eve = await window(await sync_to_async(person)("eve", Role.OPERATOR))
    page = await eve._read("GET", f"/tools/rec.say/cases/{case.pk}/")
    assert "Left out" not in page
    await press(eve, page, raw='{"n":2}')
    await case.arefresh_from_db()
    assert bytes(case.arguments) == b'{"n":2}'

    await turn()

    run = await last_run()
    assert (run.state, run.call_id) == ("not_run", None)
    assert run.reason == "Another user changed it after it was scheduled."
    assert "rec.say (Case 1)" in await eve._read("GET", f"/tools/rec.say/cases/{case.pk}/")


@pytest.mark.long
async def test_what_another_user_wrote_does_not_run_as_ones_agent(
    scheduled: SavedCase, window: Open, upstream: Recorder
) -> None:
    """Whoever chose the arguments could approve the call, and read from its outcome."""
    eve = await window(await sync_to_async(person)("eve", Role.OPERATOR))
    await press(eve, await eve._read("GET", f"/tools/rec.say/cases/{scheduled.pk}/"), contains="x")

    await turn()

    assert (await last_run()).reason == "Another user changed it after it was scheduled."
    assert upstream.calls == []


@pytest.mark.long
async def test_ones_own_changes_run_unless_the_tool_writes(
    scheduled: SavedCase, olga: User, olgas: Tab, stack: Stack, upstream: Recorder
) -> None:
    here = f"/tools/rec.say/cases/{scheduled.pk}/"
    await press(olgas, await olgas._read("GET", here), raw='{"n":2}')
    await turn()
    assert (await ended(stack)).state == "passed"

    await Tool.objects.filter(name="say").aupdate(risk=Tool.Risk.CHANGES)
    case = await SavedCase.objects.select_related("tool__server").aget()
    agent = await olga.agents.aget()
    await sync_to_async(schedules.set_schedule)(case, "day", agent=agent, confirmed=True, by=olga)
    await press(olgas, await olgas._read("GET", here), raw='{"n":3}')
    await turn()
    assert "not the one that was confirmed" in (await last_run()).reason


async def test_a_schedule_is_ended_by_an_operator_without_an_agent(
    scheduled: SavedCase, window: Open, upstream: Recorder
) -> None:
    eve = await window(await sync_to_async(person)("eve", Role.OPERATOR))
    here = f"/tools/rec.say/cases/{scheduled.pk}/"
    page = await eve._read("GET", here)
    assert "Set the schedule" in page
    # It was set just now, and nothing began it yet.
    assert "Due now" in page
    assert "Next:" not in page
    token = submitted(page)["csrfmiddlewaretoken"]
    data = {"every": "", "csrfmiddlewaretoken": token}

    await eve._read("POST", f"{here}schedule/", data, csrftoken=token)

    assert not await CaseSchedule.objects.aexists()


@pytest.mark.long
@pytest.mark.parametrize(
    "changed",
    [
        {"contains": "AKIAQ2W3E4R5T6Y7U2I3"},
        {"values": '$.key = "AKIAQ2W3E4R5T6Y7U2I3"'},
        {"name": "AKIAQ2W3E4R5T6Y7U2I3"},
    ],
)
async def test_expectations_that_look_like_secrets_are_not_kept(
    olgas: Tab, upstream: Recorder, changed: dict[str, str]
) -> None:
    page = await save(olgas, "rec.say", "{}")

    page = await press(olgas, page, **changed)

    assert "This looks like a secret" in page
    assert "AKIA" in page
    case = await SavedCase.objects.aget()
    assert "AKIA" not in case.name + case.contains + case.values


@pytest.mark.long
async def test_a_servers_schedule_leaves_out_what_was_not_confirmed(
    scheduled: SavedCase, olga: User, olgas: Tab, upstream: Recorder
) -> None:
    erase = await Tool.objects.select_related("server").aget(exposed_name="rec.erase")
    await sync_to_async(add_case)(erase, b"{}", {}, schema={}, by=olga)
    await CaseSchedule.objects.all().adelete()

    page = await olgas._read("GET", "/servers/rec/cases/")
    data = submitted(page, every="week")
    token = data["csrfmiddlewaretoken"]
    page = await olgas._read("POST", "/servers/rec/cases/schedule/", data, csrftoken=token)
    assert "Weekly, as the agent olgas of olga" in " ".join(page.split())
    assert "Left out" in page
    await turn()

    assert [run.case.tool_id async for run in CaseRun.objects.select_related("case")] == [
        scheduled.tool_id
    ]
    data["every"] = ""
    await olgas._read("POST", "/servers/rec/cases/schedule/", data, csrftoken=token)
    assert not await CaseSchedule.objects.aexists()


async def test_nobody_schedules_as_anothers_agent(
    scheduled: SavedCase, olgas: Tab, bob: User
) -> None:
    page = await olgas._read("GET", f"/tools/rec.say/cases/{scheduled.pk}/")
    data = submitted(page, every="day", agent="scout")
    token = data["csrfmiddlewaretoken"]
    address = f"/tools/rec.say/cases/{scheduled.pk}/schedule/"
    await olgas._read("POST", address, data, csrftoken=token)

    assert (await CaseSchedule.objects.aget()).every == "hour"


async def test_all_of_a_server_are_run(
    scheduled: SavedCase, olgas: Tab, stack: Stack, upstream: Recorder
) -> None:
    page = await olgas._read("GET", "/servers/rec/cases/")
    token = submitted(page)["csrfmiddlewaretoken"]
    form = {"csrfmiddlewaretoken": token}
    upstream.waiting.add("say")
    await olgas._read("POST", "/servers/rec/cases/run/", form, csrftoken=token)
    # Pressed twice, what runs is not run again.
    await olgas._read("POST", "/tools/rec.say/cases/run/", form, csrftoken=token)

    assert await CaseRun.objects.acount() == 1
    upstream.release()
    assert (await ended(stack)).state == "passed"
    assert "Passed" in await olgas.open("rec.say")


async def test_an_operator_gets_an_agent_for_trying_in_one_press(
    window: Open, toolset: Toolset, upstream: Recorder
) -> None:
    eve = await sync_to_async(person)("eve", Role.OPERATOR)
    tab = await window(eve)
    for tool in ("rec.say", "rec.echo"):
        page = await tab.open(tool)
        token = submitted(page)["csrfmiddlewaretoken"]
        form = {"csrfmiddlewaretoken": token}
        page = await tab._read("POST", f"/tools/{tool}/try/agent/", form, csrftoken=token)
        assert "As your agent <strong>eve-try</strong>" in page

    made = await Toolset.objects.aget(slug="eve-try")
    assert await made.tools.acount() == 2
    assert [agent.name async for agent in eve.agents.all()] == ["eve-try"]
    # Once somebody else's agent uses it too, what eve tries is not for that one.
    await sync_to_async(own_agent)(await User.objects.aget(username="bob"), made)
    form_page = await tab.open("rec.form")
    token = submitted(form_page)["csrfmiddlewaretoken"]
    form = {"csrfmiddlewaretoken": token}
    await tab._read("POST", "/tools/rec.form/try/agent/", form, csrftoken=token)
    assert await made.tools.acount() == 2
    assert await eve.agents.acount() == 2


async def test_viewers_get_no_agent_by_a_press(window: Open, toolset: Toolset) -> None:
    dave = await sync_to_async(person)("dave", Role.VIEWER)
    tab = await window(dave)
    page = await tab.open("rec.say")
    assert "Create an agent for trying" not in page
    token = submitted(page)["csrfmiddlewaretoken"]
    with pytest.raises(AssertionError):
        await tab._read(
            "POST", "/tools/rec.say/try/agent/", {"csrfmiddlewaretoken": token}, csrftoken=token
        )
    assert not await dave.agents.aexists()
