"""Who ran what: each sentence, and all of them together, against the entries that they tell of."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import editing, services
from approvals.editing import Edit
from approvals.models import Approval
from approvals.services import DecisionRefused
from audit.models import Entry
from audit.report import Verdict
from audit.services import SYSTEM
from calls import services as calls
from calls.models import Call
from calls.record.states import Executed, State
from calls.record.transitions import Move, move_now
from policies.thresholds import Threshold
from registry.models import Tool
from tests.console import scenery

Course = Callable[[UUID, User], None]

RULE = "Mail is asked about"
RULES_SAID = "It leaves the company."


@pytest.fixture
def as_ines(client: Client, ines: User) -> Client:
    client.force_login(ines)
    return client


@pytest.fixture
def deciders(alice: User) -> dict[str, User]:
    return {"alice": alice} | {
        name: scenery.person(name, Role.APPROVER) for name in ("carol", "dan")
    }


@pytest.fixture
def agents(scout: Agent, send_mail: Tool) -> dict[str, Agent]:
    """Of two owners."""
    other = Agent.objects.create(name="clerk", owner=scenery.person("zoe"))
    for agent in (scout, other):
        scenery.offered(agent, send_mail)
    return {"scout": scout, "clerk": other}


def told(client: Client, **asked: str) -> str:
    """What is read between the tags, but for the filters."""
    page = client.get(reverse("audit:report"), asked).text
    page = re.sub(r'<form class="filters".*?</form>', "", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page))


def cast(call_id: UUID, by: User, *, approve: bool, reason: str = "") -> None:
    approval = Approval.objects.for_queue().get(pk=call_id)
    digest = approval.call.call_digest
    services.vote(approval, by=by, approve=approve, seen_digest=digest, reason=reason)


def edit(call_id: UUID, by: User, subject: str) -> None:
    approval = Approval.objects.for_queue().get(pk=call_id)
    arguments = b'{"to": ["ana@example.org"], "subject": "%s", "body": "x"}' % subject.encode()
    editing.edit(approval, Edit(approval.call.call_digest, arguments), by=by)


def refused(agent: Agent, tool: Tool, effect: str = "", **details: str) -> UUID:
    invalid = details.get("refusal") in ("invalid", "unknown_tool", "key")
    state = State.INVALID if invalid else State.REFUSED
    return scenery.call(agent, tool, {}, state, effect=effect, reason="No.", details=details)


def test_all_time_can_be_chosen_and_is_said(as_ines: Client, scout: Agent, send_mail: Tool) -> None:
    refused(scout, send_mail, "deny", refusal="policy")

    assert "last 24 hours" in told(as_ines)
    page = told(as_ines, range="", person="", agent="scout")
    assert "Agent scout, all time" in page
    assert "1 call of 1 tool" in page


@pytest.mark.long
def test_what_happened_to_a_call_finds_it(
    as_ines: Client, held: UUID, alice: User, scout: Agent, send_mail: Tool
) -> None:
    cast(held, alice, approve=False, reason="Not today.")
    refused(scout, send_mail, "deny", refusal="policy")

    for asked in ({"state": "denied"}, {"person": "alice"}, {"action": "approval.voted"}):
        text = told(as_ines, **asked)
        assert "1 call of 1 tool: 1 Denied" in text, asked
        assert "Denied by alice." in text
        assert "Blocked" not in text.partition("Summary")[2]
    assert "State Denied, last 24 hours" in told(as_ines, state="denied")


@pytest.mark.long
@pytest.mark.parametrize(
    ("effect", "refusal", "sentence"),
    [
        ("", "invalid", "Invalid request: nobody was asked."),
        ("", "unknown_tool", "Invalid request: nobody was asked."),
        ("", "frozen", "Stopped by an emergency stop: nobody was asked."),
        ("", "sign_in", "Nobody had signed in at the server: nothing was sent."),
        ("", "scope", "Outside the scope of the agent's token: nothing was sent."),
        ("", "", "Blocked before policy was evaluated."),
        ("", "limit", "Blocked by policy."),
        ("ask", "policy", "It needed approval, and was not to wait for it: nobody was asked."),
        ("deny", "policy", "Blocked by policy."),
    ],
)
def test_nobody_is_said_to_be_silent_who_was_not_asked(
    as_ines: Client, scout: Agent, send_mail: Tool, effect: str, refusal: str, sentence: str
) -> None:
    refused(scout, send_mail, effect, refusal=refusal)

    text = told(as_ines)

    assert sentence in text
    assert "Pending" not in text
    assert "in time" not in text


def test_a_standing_approval_is_called_one(as_ines: Client, scout: Agent, send_mail: Tool) -> None:
    given_ = {"grant": 7, "granted_by": "alice"}
    scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED, effect="ask", details=given_)

    assert "Allowed by a standing approval of alice." in told(as_ines)


@pytest.mark.long
def test_what_rules_say_is_no_persons_word(as_ines: Client, held: UUID, alice: User) -> None:
    cast(held, alice, approve=False, reason="Not today.")

    text = told(as_ines)

    assert "alice: Not today." in text
    assert "Policy: No rule covers this call, so a person decides." in text


@pytest.mark.long
def test_who_edited_is_named_and_votes_of_before_are_not(
    as_ines: Client, agents: dict[str, Agent], deciders: dict[str, User], send_mail: Tool
) -> None:
    two = (Threshold(approve=2),)
    call = scenery.call(
        agents["clerk"], send_mail, scenery.MAIL, State.HELD, thresholds=two, reason=RULES_SAID
    )
    cast(call, deciders["carol"], approve=True, reason="As it was.")
    edit(call, deciders["dan"], "Other")

    text = told(as_ines)

    assert "Pending approval. Arguments edited by dan." in text
    assert "carol" not in text
    assert "As it was." not in text


@pytest.mark.long
def test_a_vote_that_does_not_count_approved_nothing(
    as_ines: Client, agents: dict[str, Agent], deciders: dict[str, User], send_mail: Tool
) -> None:
    two = (Threshold(approve=2),)
    call = scenery.call(agents["clerk"], send_mail, scenery.MAIL, State.HELD, thresholds=two)
    cast(call, deciders["carol"], approve=True, reason="Before I left.")
    deciders["carol"].groups.clear()
    for name in ("alice", "dan"):
        cast(call, deciders[name], approve=True)

    text = told(as_ines)

    assert "Approved by alice, dan." in text
    assert "carol" not in text


@pytest.mark.long
@pytest.mark.parametrize("end", ["expired", "withdrawn", "superseded"])
def test_all_who_voted_without_deciding_are_named(
    as_ines: Client, agents: dict[str, Agent], deciders: dict[str, User], send_mail: Tool, end: str
) -> None:
    many = (Threshold(approve=3, deny=2),)
    call = held_call(agents["clerk"], send_mail, end, many)
    cast(call, deciders["alice"], approve=True)
    cast(call, deciders["dan"], approve=False)
    END[end](call, agents["clerk"])

    text = told(as_ines)

    assert "alice, dan voted; that did not decide it." in text
    assert "Denied by dan" not in text


def held_call(agent: Agent, tool: Tool, end: str, thresholds: Any) -> UUID:
    return scenery.call(
        agent, tool, scenery.MAIL, State.HELD, thresholds=thresholds, rule=RULE, reason=RULES_SAID
    )


def expire(call: UUID, agent: Agent) -> None:
    Approval.objects.filter(pk=call).update(decide_by="2020-01-01T00:00Z")
    services.expire()


def withdraw(call: UUID, agent: Agent) -> None:
    assert services.cancel(call, by=agent.actor)


def supersede(call: UUID, agent: Agent) -> None:
    assert move_now(Move(call, State.HELD, State.SUPERSEDED, SYSTEM, reason="The tool changed."))


def lose(call: UUID, agent: Agent) -> None:
    assert move_now(Move(call, State.HELD, State.UNKNOWN, SYSTEM, reason="A backup was restored."))


def leave(call: UUID, agent: Agent) -> None:
    """It still waits."""


END = {
    "held": leave,
    "expired": expire,
    "withdrawn": withdraw,
    "superseded": supersede,
    "unknown": lose,
}


def to_state(call: UUID, source: State, target: State, **details: Any) -> None:
    assert move_now(Move(call, source, target, SYSTEM, reason="So it was.", **details))


def ends(state: State) -> Course:
    def run_and_end(call: UUID, person: User) -> None:
        scenery.run(call)
        scenery.finish(call, None, state)

    return run_and_end


def expire_in_the_queue(call: UUID, person: User) -> None:
    Call.objects.filter(pk=call).update(start_by="2020-01-01T00:00Z")
    calls.end_the_late()


def resolve(call: UUID, person: User) -> None:
    ends(State.UNKNOWN)(call, person)
    calls.resolve(call, by=person, executed=Executed.YES, note="It is there.")


def run_twice(call: UUID, person: User) -> None:
    scenery.run(call)
    to_state(call, State.RUNNING, State.QUEUED, executed=Executed.NO)
    ends(State.SUCCEEDED)(call, person)


# What becomes of a call that may run, by whatever leave.
COURSE: dict[str, Course] = {
    "queued": lambda call, person: None,
    "cancelled in the queue": lambda call, person: keep(calls.cancel(call, by=person.actor)),
    "expired in the queue": expire_in_the_queue,
    "superseded": lambda call, person: to_state(call, State.QUEUED, State.SUPERSEDED),
    "restored": lambda call, person: to_state(call, State.QUEUED, State.UNKNOWN),
    "running": lambda call, person: scenery.run(call),
    "resolved": resolve,
    "run twice": run_twice,
    **{
        state.value: ends(state)
        for state in (
            *(State.SUCCEEDED, State.TOOL_ERROR, State.FAILED),
            *(State.TIMED_OUT, State.CANCELLED, State.UNKNOWN),
        )
    },
}


def keep(done: bool) -> None:
    assert done


# What happens to a held call, in turn: somebody votes, takes that back, or edits.
STEPS = st.tuples(
    st.sampled_from(["yes", "no", "back", "edit"]),
    st.sampled_from(["alice", "carol", "dan"]),
    st.sampled_from(["", "It is fine.", "Not today."]),
)
COURSES = st.sampled_from(sorted(COURSE))
HELD = st.tuples(
    st.sampled_from(sorted(END)), st.lists(STEPS, max_size=5), st.integers(1, 3), COURSES
)
REFUSALS = ("invalid", "unknown_tool", "key", "frozen", "sign_in", "scope", "")
UNASKED = st.sampled_from([*REFUSALS, "ask", "deny"])
RUN = st.tuples(st.sampled_from(["allow", "grant"]), COURSES)
STORY = st.tuples(
    st.sampled_from(["scout", "clerk"]),
    st.one_of(
        st.tuples(st.just("held"), HELD),
        st.tuples(st.just("unasked"), UNASKED),
        st.tuples(st.just("run"), RUN),
    ),
)
# Of what is asked of the page.
FILTERS = st.sampled_from(
    [
        {},
        {"agent": "scout"},
        {"behalf": "zoe"},
        {"tool": "mailer.send_mail"},
        {"state": "succeeded"},
        {"state": "denied", "agent": "clerk"},
        {"person": "alice"},
        {"action": "call.amended"},
    ]
)


@contextmanager
def undone() -> Iterator[None]:
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@pytest.mark.long
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(stories=st.lists(STORY, min_size=1, max_size=6), asked=FILTERS)
def test_the_report_adds_up(
    as_ines: Client,
    agents: dict[str, Agent],
    deciders: dict[str, User],
    send_mail: Tool,
    stories: list[Any],
    asked: dict[str, str],
) -> None:
    with undone():
        tell(stories, agents, send_mail, deciders)
        check(as_ines.get(reverse("audit:report"), asked).text, asked)


@pytest.mark.long
def test_it_adds_up_for_every_end_that_there_is(
    as_ines: Client, agents: dict[str, Agent], deciders: dict[str, User], send_mail: Tool
) -> None:
    yes, no = ("yes", "alice", "It is fine."), ("no", "dan", "Not today.")
    edited = [("edit", "carol", ""), yes]
    tell(
        [
            *(("scout", ("run", ("allow", course))) for course in COURSE),
            *(("clerk", ("run", ("grant", course))) for course in COURSE),
            *(("scout", ("held", ("held", edited, 1, course))) for course in COURSE),
            *(("clerk", ("held", (end, [yes, no], 3, "queued"))) for end in END),
            ("scout", ("held", ("held", [no], 1, "queued"))),
            *(("scout", ("unasked", why)) for why in (*REFUSALS, "ask", "deny")),
        ],
        agents,
        send_mail,
        deciders,
    )

    found = [facts(one.call_id) for one in Entry.objects.filter(seq=1) if one.call_id]
    # Approved is a call only until it is queued, in the same moment.
    assert {state for _agent, _verdict, state, *_people in found} == {*State} - {State.APPROVED}
    assert {verdict for _agent, verdict, *_rest in found} == {*Verdict}
    for asked in ({}, {"agent": "scout"}, {"behalf": "zoe"}):
        check(as_ines.get(reverse("audit:report"), asked).text, asked)


def tell(stories: list[Any], agents: dict[str, Agent], tool: Tool, people: dict[str, User]) -> None:
    for number, (agent, (kind, what)) in enumerate(stories):
        HAPPENS[kind](agents[agent], tool, people, number, what)


def happens_held(agent: Agent, tool: Tool, people: dict[str, User], number: int, what: Any) -> None:
    end, steps, needed, course = what
    # So that no call joins another.
    call = scenery.call(
        agent,
        tool,
        {**scenery.MAIL, "subject": str(number)},
        State.HELD,
        thresholds=(Threshold(approve=needed, deny=min(needed, 2)),),
        rule=RULE,
        reason=RULES_SAID,
    )
    for at, (step, name, reason) in enumerate(steps):
        try:
            with transaction.atomic():
                take_step(call, people[name], step, reason, f"{number}.{at}")
        except (DecisionRefused, editing.EditRefused):
            # By who voted or edited before, or once it is decided: as on the page.
            continue
    match Call.objects.get(pk=call).state:
        case State.HELD:
            END[end](call, agent)
        case State.QUEUED:
            COURSE[course](call, people["alice"])


def take_step(call: UUID, by: User, step: str, reason: str, subject: str) -> None:
    if step == "edit":
        edit(call, by, subject)
    elif step == "back":
        services.take_back(Approval.objects.for_queue().get(pk=call), by=by)
    else:
        cast(call, by, approve=step == "yes", reason=reason)


def happens_unasked(agent: Agent, tool: Tool, people: Any, number: int, what: str) -> None:
    if what in ("ask", "deny"):
        refused(agent, tool, what, refusal="policy")
    else:
        refused(agent, tool, **({"refusal": what} if what else {}))


def happens_run(agent: Agent, tool: Tool, people: Any, number: int, what: Any) -> None:
    how, course = what
    grant = {"effect": "ask", "details": {"grant": 1, "granted_by": "dan"}}
    call = scenery.call(
        agent, tool, {"n": number}, State.QUEUED, rule=RULE, **(grant if how == "grant" else {})
    )
    COURSE[course](call, people["alice"])


HAPPENS = {"held": happens_held, "unasked": happens_unasked, "run": happens_run}


# -- What entries say, call by call ------------------------------------------------------------


def facts(call: UUID) -> tuple[str, str, str, frozenset[str], frozenset[str]]:
    """The call's agent, verdict and state, who voted to that end, and who edited."""
    first, *rest = Entry.objects.of_call(call)
    state, verdict = first.to_state, born(first)
    votes: dict[str, bool] = {}
    editors: set[str] = set()
    decided_by: set[int] | None = None
    ids: dict[str, int] = {}
    for entry in rest:
        if entry.action == "approval.voted":
            votes[entry.actor], ids[entry.actor] = entry.details["approve"], entry.actor_id or 0
        elif entry.action == "approval.taken_back":
            votes.pop(entry.actor)
        elif entry.action == "call.amended":
            editors.add(entry.actor)
            votes.clear()
        elif entry.seq is not None:
            if entry.from_state == "held":
                verdict, decided_by = entry.to_state, set(entry.details.get("decided_by", []))
            state = entry.to_state
    if verdict in ("approved", "denied"):
        wanted = verdict == "approved"
        votes = {n: v for n, v in votes.items() if v is wanted and ids[n] in (decided_by or ())}
    return first.agent, verdict, state, frozenset(votes), frozenset(editors)


def born(first: Entry) -> str:
    effect, refusal = first.details["effect"], first.details.get("refusal", "")
    match first.to_state:
        case "held":
            return "held"
        case "queued" | "running":
            return "standing" if "grant" in first.details else "allowed"
    if effect:
        return {"deny": "blocked", "ask": "not_waited"}[effect]
    known = {"": "refused", "limit": "blocked"} | {
        one: one for one in ("frozen", "sign_in", "scope")
    }
    return known.get(refusal, "invalid")


GROUP = re.compile(
    r'<li class="card told" data-verdict="(\w+)">(.*?)</li>\s*(?=<li class="card|</ol>)', re.S
)
ASKED = re.compile(r"(\w+), for (\w+), asked (once|\d+ times) for")
NAMED = {
    "approved": r"Approved by ([\w, ]+)\.",
    "denied": r"Denied by ([\w, ]+)\.",
    "standing": r"standing approval of (\w+)\.",
}
VOTED = r"([\w, ]+?) voted; that d\w+ not decide it"


def names(pattern: str, text: str) -> frozenset[str]:
    found = re.search(pattern, text)
    return frozenset(found[1].strip().split(", ")) if found else frozenset()


# What the filters ask of an entry: of any of the call's.
FITS: dict[str, Callable[[Entry, str], bool]] = {
    "agent": lambda entry, name: entry.agent == name,
    "behalf": lambda entry, name: entry.person == name,
    "tool": lambda entry, name: entry.tool == name,
    "state": lambda entry, state: entry.action == f"call.{state}",
    "person": lambda entry, name: entry.actor == name,
    "action": lambda entry, action: entry.action == action,
}


def asked_for(asked: dict[str, str]) -> list[UUID]:
    """The calls that such filters are to find."""
    entries = [entry for entry in Entry.objects.all() if entry.call_id]
    fitting = {
        entry.call_id
        for entry in entries
        if all(FITS[name](entry, value) for name, value in asked.items())
    }
    return [call_id for call_id in fitting if call_id]


def check(page: str, asked: dict[str, str]) -> None:
    wanted = asked_for(asked)
    if not wanted:
        assert 'data-verdict="asked"' not in page
        return
    expected = Counter(
        (agent, verdict, voters if verdict != "standing" else frozenset({"dan"}), editors)
        for agent, verdict, _state, voters, editors in map(facts, wanted)
    )
    found: Counter[Any] = Counter()
    for verdict, html in GROUP.findall(page):
        text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html)).strip()
        agent, person, times = ASKED.search(text).groups()  # type: ignore[union-attr]
        assert person == {"scout": "bob", "clerk": "zoe"}[agent]
        count = 1 if times == "once" else int(times.split()[0])
        who = names(NAMED.get(verdict, VOTED), text)
        found[agent, verdict, who, names(r"Arguments edited by ([\w, ]+)\.", text)] += count
        check_quotes(text)
        assert ("nobody decided in time" in text) == (verdict == "expired")
        assert ("nobody was asked" in text) == (verdict in ("invalid", "frozen", "not_waited"))
    assert found == expected

    tally = {v: int(n) for v, n in re.findall(r'<dd data-verdict="(\w+)">\D*(\d+)', page)}
    assert tally.pop("asked") == len(wanted) == sum(tally.values())
    verdicts = Counter(facts(call)[1] for call in wanted)
    assert tally == dict(verdicts)
    states = Counter(State(facts(call)[2]).label.lower() for call in wanted)
    summary = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page)).split(" of 1 tool: ")[1]
    said = summary.split(". ")[0].rstrip(".").lower()
    assert {w: int(n) for n, w in (one.split(" ", 1) for one in said.split(", "))} == states


def check_quotes(text: str) -> None:
    for who, quoted in re.findall(r"(\w+): (It is fine\.|Not today\.)", text):
        assert Entry.objects.filter(action="approval.voted", actor=who, reason=quoted).exists()
    for label in re.findall(rf"(\S+) {re.escape(RULES_SAID)}", text):
        assert label == "Policy:"


@pytest.mark.long
def test_lists_of_calls_name_who_edited_one(
    as_ines: Client, held: UUID, alice: User, scout: Agent, send_mail: Tool
) -> None:
    other = scenery.call(scout, send_mail, {**scenery.MAIL, "body": "b"}, State.HELD)
    edit(held, alice, "Second thoughts")

    for address in ("/calls/", f"/tools/{send_mail.exposed_name}/calls/", "/queue/"):
        text = as_ines.get(address).text
        assert text.count("Edited by alice") >= 1, address
        assert str(other) in text
    assert as_ines.get("/calls/").text.count("Edited by alice") == 1
