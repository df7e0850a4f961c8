"""Which rule, why, and what else came close."""

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation

from accounts.models import Agent, User
from accounts.roles import Role
from audit.services import SYSTEM
from calls.models import Call
from calls.record.states import Executed, State
from calls.record.transitions import Outcome, ended, move_now
from inspection.results import ResultRules
from inspection.words import result_sentences
from policies.models import Effect, Limit, LimitCounter, LimitUse, Rule
from policies.simulate import suppose
from registry.models import Tool, Toolset
from registry.result_rules import set_result_rules, set_server_result_rules
from tests.console import scenery
from tests.gateway.limiting import add_limit

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def mailer(olga: User, alice: User) -> None:
    scenery.server("mailer", olga, scenery.SEND)


def explained(*words: str) -> list[str]:
    out = StringIO()
    call_command("explain", *words, stdout=out)
    return out.getvalue().splitlines()


def rule(name: str, effect: Effect, **values: object) -> Rule:
    return Rule.objects.create(name=name, effect=effect, **values)


def test_it_names_the_rule_and_those_that_came_close(scout: Agent, bob: User) -> None:
    rule("mail leaves", Effect.ASK, server="mailer", reason="Mail leaves the house.")
    rule("all", Effect.ALLOW)
    rule("big ones", Effect.DENY, when="args.n > 9")
    rule("others", Effect.DENY).agents.add(Agent.objects.create(name="clerk", owner=bob))
    rule("far away", Effect.DENY, server="db", tool="drop")

    lines = explained("scout", "mailer.send_mail", '{"n": 5}')

    assert lines == [
        "ask: Mail leaves the house.",
        "  ask “mail leaves”: covers it; says ask",
        "  allow “all”: covers it; says allow",
        "  deny “big ones”: its condition does not hold",
        "    args.n = 5",
        "  deny “others”: not for this, it is for other agents",
        "  labels: untrusted, sink",
    ]


def test_it_says_who_decides_later(scout: Agent, alice: User) -> None:
    later = [{"from": "person:alice"}, {"after_min": 15}]
    rule("later others", Effect.ASK, thresholds=later)

    assert (
        "Decided by: approval of alice; 1 denial decides, or 1 approval; 1 denial decides; "
        "only after 15 minutes" in explained("scout", "mailer.send_mail")
    )


def test_it_says_that_nobody_can_approve_it(scout: Agent, bob: User, alice: User) -> None:
    desk = Group.objects.create(name="desk")
    bob.groups.add(desk, Group.objects.get(name=Role.APPROVER))
    alice.groups.add(desk)
    rule("two of the desk", Effect.ASK, thresholds=[{"approve": 2, "from": "group:desk"}])

    # bob may decide on others' calls, and has no vote on his own agent's.
    assert "Nobody can approve it. It needs 2 approvals of desk, and 1 person may give one." in (
        explained("scout", "mailer.send_mail")
    )

    scenery.person("carol", Role.APPROVER).groups.add(desk)
    assert "Nobody" not in "\n".join(explained("scout", "mailer.send_mail"))


def test_arguments_make_the_difference(scout: Agent) -> None:
    rule("big ones", Effect.DENY, when="args.n > 9")

    assert explained("scout", "mailer.send_mail", '{"n": 10}')[0].startswith("deny: ")


def test_a_watched_rule_says_what_it_would(scout: Agent) -> None:
    rule("soon", Effect.DENY, mode=Rule.Mode.SHADOW)

    lines = explained("scout", "mailer.send_mail")

    assert lines[1] == "Watched rule “soon” would make it deny."
    assert "(only watched)" in lines[2]


def test_a_condition_that_fails_is_told(scout: Agent) -> None:
    rule("careful", Effect.ALLOW, when="args.n > 9")

    lines = explained("scout", "mailer.send_mail")

    assert 'there is no member "n"' in lines[0]
    assert lines[1].endswith("covers it; says ask")


def test_nothing_is_called(scout: Agent) -> None:
    explained("scout", "mailer.send_mail")

    assert not Call.objects.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nobody", "mailer.send_mail"), "no agent “nobody”"),
        (("scout", "mailer.nope"), "No tool is published as “mailer.nope”"),
        (("scout", "mailer.send_mail", '{"a": 1, "a": 2}'), "The arguments: "),
        (("scout", "mailer.send_mail", "--toolset", "attic"), "no toolset “attic”"),
    ],
)
def test_it_says_what_is_not_there(scout: Agent, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        explained(*words)


def test_it_says_which_limits_would_apply(scout: Agent) -> None:
    rule("all", Effect.ALLOW)
    few = add_limit(amount=2, name="Few", period="hour")
    add_limit("cost", "10", name="Money", cost_argument="total", mode="shadow")
    add_limit("concurrency", 1, name="Each", per=["toolset"])
    add_limit(name="Others", tool="receive")
    LimitCounter.objects.create(
        limit=few, key=f"agent:{scout.pk}", tat=timezone.now() + timedelta(hours=1)
    )

    lines = explained("scout", "mailer.send_mail", '{"total": 10.5}')

    assert lines[-4:-1] == [
        "  limit “Few” (2 calls per hour): would be reached: deny; scout: 2 of 2 used",
        "  limit “Money” (10 EUR per minute) (only watched): would be reached: deny; scout: 0 of 10"
        " EUR used",
        "  limit “Each” (1 call at the same time): covers it; counted for each toolset",
    ]
    assert "has to be a number" in explained("scout", "mailer.send_mail")[-3]
    Toolset.objects.create(slug="desk")
    assert explained("scout", "mailer.send_mail", "--toolset", "desk")[-2] == (
        "  limit “Each” (1 call at the same time): leaves room; desk: 0 of 1 used"
    )
    page = suppose("scout", "mailer.send_mail", '{"total": 1}')
    assert [found.is_over for found in page.limits] == [True, False, False]


def test_it_says_that_a_limit_only_warns(client: Client, alice: User, scout: Agent) -> None:
    rule("all", Effect.ALLOW)
    add_limit("cost", 10, name="Money", cost_argument="total", effect="warn")

    lines = explained("scout", "mailer.send_mail", '{"total": 11}')

    assert (
        "  limit “Money” (10 EUR per minute): would be reached: warn; scout: 0 of 10 EUR used"
        in (lines)
    )
    assert not [one for one in lines if "would make it" in one]
    client.force_login(alice)
    arguments = {"agent": "scout", "tool": "mailer.send_mail", "arguments": '{"total": 11}'}
    page = client.get(reverse("policies:explain"), arguments)
    assert "the call runs, and its agent is warned" in page.text


def test_the_answer_says_that_a_limit_is_stricter(
    client: Client, alice: User, scout: Agent
) -> None:
    rule("all", Effect.ALLOW)
    add_limit("cost", 10, name="Money", cost_argument="total", effect="ask")

    assert "A limit would make it ask." in explained("scout", "mailer.send_mail", '{"total": 11}')
    # No approval makes up for a cost that nobody can say.
    assert "A limit would make it deny." in explained("scout", "mailer.send_mail")
    assert suppose("scout", "mailer.send_mail", '{"total": 9}').limit_effect is None
    client.force_login(alice)
    page = client.get(reverse("policies:explain"), {"agent": "scout", "tool": "mailer.send_mail"})
    assert "A limit would change it to: Deny." in page.text
    Limit.objects.update(mode="shadow")
    assert suppose("scout", "mailer.send_mail", '{"total": 11}').limit_effect is None


def test_a_count_by_toolset_is_not_said_to_leave_room(
    client: Client, alice: User, scout: Agent
) -> None:
    rule("all", Effect.ALLOW)
    add_limit("cost", 10, name="Money", cost_argument="total", per=["toolset"])
    client.force_login(alice)
    asked = {"agent": "scout", "tool": "mailer.send_mail", "arguments": '{"total": 1}'}

    page = client.get(reverse("policies:explain"), asked).text

    assert "Depends on the toolset" in page
    assert "Leaves room" not in page
    Toolset.objects.create(slug="desk")
    page = client.get(reverse("policies:explain"), {**asked, "toolset": "desk"}).text
    assert "Depends on the toolset" not in page
    assert "Leaves room" in page
    assert suppose("scout", "mailer.send_mail").limit_effect == Effect.DENY


def test_ended_calls_leave_room_and_failures_trip_before_the_next_call(scout: Agent) -> None:
    rule("all", Effect.ALLOW)
    tool = Tool.objects.get(exposed_name="mailer.send_mail")
    call_id = scenery.call(scout, tool, scenery.MAIL, State.RUNNING)
    assert move_now(ended(call_id, 1, Outcome(State.FAILED, "No.", Executed.UNKNOWN), SYSTEM))
    for kind in ("concurrency", "failures"):
        made = add_limit(kind, 1, minutes=5, name=kind)
        counter = LimitCounter.objects.create(
            limit=made, key=f"agent:{scout.pk}", spent=1 if kind == "concurrency" else 0
        )
        LimitUse.objects.create(counter=counter, call_id=call_id, amount=1)

    found = {one.limit.name: one.is_over for one in suppose("scout", "mailer.send_mail").limits}

    assert found == {"concurrency": False, "failures": True}
    # Nothing is kept: it only looked.
    assert LimitUse.objects.count() == 2


def test_it_says_what_is_done_to_results(scout: Agent, olga: User) -> None:
    rule("all", Effect.ALLOW)
    tool = Tool.objects.get(name="send_mail")
    rules = ResultRules(schema="block", hidden="show", secrets=True, personal=True, max_bytes=9_000)
    set_result_rules(tool, rules, by=olga)

    # It has no output schema.
    assert explained("scout", "mailer.send_mail")[-5:-1] == [
        "  results: Hidden characters and terminal commands are written out.",
        "  results: Secrets are masked.",
        "  results: Personal data is masked.",
        "  results: Results of more than 9,000 bytes are cut.",
    ]
    set_result_rules(tool, ResultRules("note", "remove", tracebacks=True), by=olga)
    assert explained("scout", "mailer.send_mail")[-3:-1] == [
        "  results: Hidden characters and terminal commands are removed.",
        "  results: Tracebacks are left out.",
    ]


EACH_RULE = [
    *(ResultRules(schema="note"), ResultRules(hidden="show"), ResultRules(secrets=True)),
    *(ResultRules(personal=True), ResultRules(tracebacks=True), ResultRules(max_bytes=9_000)),
    *(ResultRules(links=True), ResultRules(marking="found"), ResultRules(patterns="order: O-1")),
]


def test_every_choice_for_results_has_a_sentence_of_its_own() -> None:
    said = [result_sentences(rules) for rules in EACH_RULE]

    # Hosts belong to links.
    assert len(said) == len(ResultRules._fields) - 1
    assert all(len(sentences) == 1 for sentences in said)
    assert len({sentences[0] for sentences in said}) == len(said)
    own = result_sentences(ResultRules(patterns="order: O-1\nticket: T-1"))
    assert own == ["Matches of its operator's patterns are masked: order, ticket."]
    hosts = result_sentences(ResultRules(links=True, hosts="example.org *.corp.cn"))
    assert hosts == ["Links and images are deactivated, except those of example.org, *.corp.cn."]


def test_it_says_what_a_server_has_done_to_results(scout: Agent, olga: User) -> None:
    tool = Tool.objects.select_related("server").get(name="send_mail")
    set_server_result_rules(tool.server, ResultRules(secrets=True, marking="all"), by=olga)

    lines = explained("scout", "mailer.send_mail")
    assert "  results: Secrets are masked." in lines
    assert "  results: All texts are marked as data." in lines

    set_result_rules(tool, ResultRules(links=True), by=olga)
    page = suppose("scout", "mailer.send_mail")
    assert page.results == ["Links and images are deactivated."]


def test_the_simulator_says_it_in_the_language_of_the_page(scout: Agent, olga: User) -> None:
    set_result_rules(Tool.objects.get(name="send_mail"), ResultRules(secrets=True), by=olga)
    client = Client()
    client.force_login(olga)
    address = "/policies/explain/?tool=mailer.send_mail&agent=scout&arguments="

    assert "Secrets are masked." in client.get(address).text
    client.cookies["django_language"] = "zh-hans"
    # A request leaves its language behind, which other tests would speak.
    with translation.override("en"):
        shown = client.get(address).text
    assert "Secrets are masked." not in shown
    assert "机密会被脱敏。" in shown


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("{", "此处应为双引号括起的属性名（第 1 个字符）"),
        ('{"n": "x"}', "无法评估规则“careful”的条件：“&gt;”不能用于文本和整数。"),
        ("{}", "无法评估规则“careful”的条件：没有成员 &quot;n&quot;。"),
    ],
)
def test_what_is_wrong_with_values_is_in_the_language_of_the_page(
    scout: Agent, olga: User, arguments: str, shown: str
) -> None:
    rule("careful", Effect.ALLOW, when="args.n > 9")
    client = Client()
    client.force_login(olga)
    client.cookies["django_language"] = "zh-hans"
    asked = {"tool": "mailer.send_mail", "agent": "scout", "arguments": arguments}

    with translation.override("en"):
        page = client.get("/policies/explain/", asked).text

    assert shown in page


@pytest.fixture
def token_groups(settings: Any, tmp_path: Path) -> None:
    """A provider whose tokens are taken of agents, with two groups that rules know."""
    settings.OIDC_FILE = tmp_path / "oidc.json"
    company = {
        "issuer": "https://login.example",
        "client_id": "countersign",
        "agent_tokens": True,
        "token_groups": {"17": "payments", "18": "<ops>"},
    }
    settings.OIDC_FILE.write_text(json.dumps({"providers": {"company": company}}))


def test_it_supposes_groups_in_the_token(
    scout: Agent, alice: User, token_groups: None, client: Client
) -> None:
    rule("all", Effect.ALLOW)
    rule("not paid", Effect.DENY, when="'payments' in token.groups")
    asked: dict[str, Any] = {"agent": "scout", "tool": "mailer.send_mail"}
    client.force_login(alice)

    def decided(**more: Any) -> str:
        answer = client.get(reverse("policies:explain"), asked | more)
        decision: str = answer.context["explained"].decision.effect
        return decision

    assert decided() == Effect.ALLOW
    assert decided(token_group=["payments", "<ops>"]) == Effect.DENY
    # Only those that the file names.
    assert decided(token_group=["others"]) == Effect.ALLOW
    assert explained("scout", "mailer.send_mail", "--token-group", "payments")[0].startswith("deny")

    page = client.get(reverse("policies:explain"), asked | {"token_group": "<ops>"}).text
    assert 'value="&lt;ops&gt;" checked' in page
    assert 'value="payments">' in page


def test_without_groups_in_tokens_none_are_asked_for(
    scout: Agent, alice: User, client: Client
) -> None:
    client.force_login(alice)

    assert "token_group" not in client.get(reverse("policies:explain")).text
