"""Policy files as texts: what is read, what is not, and exports that change nothing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import Group
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from inspection.results import ResultRules
from policies.as_code import documents
from policies.as_code.differences import all_changes, changes
from policies.as_code.documents import PolicyMistakes, export, read_file
from policies.as_code.yaml_reader import MAX_BYTES, BadPolicyFile, read_yaml
from policies.models import Effect, Limit, Rule
from registry import result_rules, services
from registry.labels import Label
from registry.models import Server, Tool, Toolset
from tests.console import scenery

RULES, LIMITS = "version: 1\nrules:\n", "version: 1\nlimits:\n"


def test_values_are_what_stands_there() -> None:
    read = read_yaml("a: yes\nb: 0.50\nc: 12\nd: true\ne: '12'\nf:\ng: 2026-11-27\nh: 0o17\n")

    assert read.value == {
        "a": "yes",
        "b": "0.50",
        "c": 12,
        "d": True,
        "e": "12",
        "f": None,
        "g": "2026-11-27",
        "h": "0o17",
    }


def test_each_member_has_its_line() -> None:
    read = read_yaml(
        "version: 1\nrules:\n  - name: a\n    when: |\n      x\n      y\n    mode: b\n"
    )

    assert read.line(("rules", 0, "mode")) == 7
    assert read.line(("rules", 0, "nothing")) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x 1\nb: *x\n", "Line 1: Anchors and aliases"),
        ("a: 1\nb: *x\n", "Line 2: Anchors and aliases"),
        ("a: !!python/object/apply:os.system ['true']\n", "Line 1: Tags"),
        ("a: !x 1\n", "Line 1: Tags"),
        ("a: 1\na: 2\n", "Line 2: “a” stands here twice"),
        ("<<: {a: 1}\n? [a]\n: 1\n", "Line 2: A name is a text"),
        ("a: 1\n---\nb: 1\n", "Line 2: A policy file is one document"),
        ("a: [1\n", "this is not YAML"),
        ("a: \x07\n", "this is not YAML"),
        ('a: "x\\0y"\n', "Line 1: A text cannot contain NUL"),
        ('"a\\0": 1\n', "Line 1: A text cannot contain NUL"),
        ("a: [" + "1," * 60_000 + "1]", "at most 50,000 values"),
        ("a: " + "[" * 40, "nested too deeply"),
        ("a: " + "[" * 200_000, "nest"),
        ("a: '" + "x" * MAX_BYTES + "'", "at most 1 MiB"),
    ],
)
def test_what_is_not_read(text: str, said: str) -> None:
    with pytest.raises(BadPolicyFile) as caught:
        read_yaml(text)

    assert said in str(caught.value)


def mistakes(text: str) -> list[str]:
    with pytest.raises(PolicyMistakes) as caught:
        read_file(text)
    return str(caught.value).splitlines()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Line 1, the file: A policy file is a map"),
        ("version: 2\n", "Line 1, version: must be 1"),
        ("rules: []\n", "Line 1, version: is required"),
        (f"{RULES}  - {{name: a, effect: maybe}}\n", "Line 3, rules[0].effect: must be one of"),
        (
            f"{RULES}  - name: a\n    effect: ask\n    nam: b\n",
            "Line 5, rules[0].nam: is not a known property. There are: name, mode",
        ),
        (f"{RULES}  - name: a\n    effect: ask\n    unnamed: yes\n", "Line 5, rules[0].unnamed"),
        (
            f"{RULES}  - name: a\n    effect: ask\n    agents: [nobody]\n",
            "rules[0].agents[0]: ",
        ),
        (f"{RULES}  - name: a\n    effect: ask\n    when: args.x >\n", "Line 5, rules[0].when:"),
        (f"{RULES}  - {{name: a, effect: allow, hint: writes}}\n", "cannot rest on a server"),
        (
            f"{RULES}  - {{name: a, effect: ask}}\n  - {{name: a, effect: ask}}\n",
            "Line 4, ",
        ),
        (f"{RULES}  - {{name: 'rest ', effect: allow}}\n", "rules[0].name: Remove the spaces"),
        (f"{RULES}  - {{name: a, effect: deny, tool: ' x'}}\n", "rules[0].tool: Remove the"),
        (
            f"{LIMITS}  - {{name: a, effect: deny, kind: calls, amount: 1.5, period: day}}\n",
            "Line 3, limits[0].amount: Give a whole number.",
        ),
        (f"{LIMITS}  - {{name: a, effect: allow, kind: calls, amount: 1}}\n", "limits[0].effect"),
        (
            "version: 1\nservers:\n  nowhere: {enabled: true}\n",
            "Line 3, servers.nowhere: ",
        ),
        ("version: 1\nservers:\n  a: {url: 'http://x'}\n", "There are: enabled, relays"),
        ("version: 1\ntools:\n  a.b: {labels: {sink: no}}\n", "Line 3, tools.a.b: There is no"),
        ("version: 1\ntoolsets:\n  a: {tools: [x.y]}\n", "toolsets.a.tools[0]: There is no"),
        ("version: 1\ntoolsets:\n  'a b': {}\n", "Line 3, toolsets.a b"),
    ],
)
def test_a_mistake_names_line_path_and_what_is_right(text: str, said: str) -> None:
    assert any(said in one for one in mistakes(text)), mistakes(text)


@pytest.mark.django_db
def test_all_mistakes_are_named_at_once() -> None:
    text = f"{RULES}  - {{name: a, effect: x}}\n  - {{name: b, effect: y}}\nlimits: 3\n"

    assert [one.partition(",")[0] for one in mistakes(text)] == ["Line 3", "Line 4", "Line 5"]


@pytest.mark.django_db
def test_of_very_many_mistakes_the_first_are_named() -> None:
    text = "version: 1\nrules: [" + "{a: 1}," * 20_000 + "]\n"

    assert len(mistakes(text)) == documents.MISTAKES_MAX


SECRET: Any = {"headers": {"X-Key": "hush-hush-1"}, "credential": "hush-hush-2"}


@pytest.fixture
def office(scout: Agent) -> Server:
    olga = scenery.person("olga", Role.OPERATOR)
    mailer = scenery.server("mailer", olga, scenery.SEND, scenery.ADD)
    send = Tool.objects.get(server=mailer, name="send_mail")
    scenery.offered(scout, send)
    services.set_labels(send, dict(zip(Label, ("yes", "no", ""), strict=True)), by=olga)
    services.set_relays(mailer, ["roots"], by=olga)
    result_rules.set_server_result_rules(mailer, ResultRules(secrets=True, hosts="a.b"), by=olga)
    services.set_connection(mailer, url="http://127.0.0.1:9/mcp", by=olga, **SECRET)
    return mailer


@pytest.mark.django_db
def test_an_export_has_no_secret_and_no_address(office: Server) -> None:
    text = export()

    assert "mailer" in text
    assert "hush" not in text
    assert "127.0.0.1" not in text


@pytest.mark.django_db
def test_an_export_of_everything_changes_nothing(office: Server) -> None:
    file = read_file(export())

    assert all_changes(file) == []
    assert [*file.wanted] == ["servers", "tools", "toolsets", "rules", "limits", "schedules"]
    assert file.wanted["tools"]["mailer.send_mail"]["labels"] == {
        "untrusted": "yes",
        "sensitive": "no",
        "sink": "hinted",
    }
    assert Toolset.objects.get().slug in file.wanted["toolsets"]


@pytest.mark.django_db
def test_a_file_says_whether_users_sign_in_agents(office: Server) -> None:
    toolset = Toolset.objects.get()
    services.set_agent_sign_in(toolset, True, by=None)
    text = export()

    assert "agent_sign_in: true" in text
    services.set_agent_sign_in(toolset, False, by=None)
    (change,) = all_changes(read_file(text))
    assert "agent_sign_in" in str(change)
    off = f"version: 1\ntoolsets:\n  {toolset.slug}: {{agent_sign_in: maybe}}\n"
    assert any("agent_sign_in" in one for one in mistakes(off))


@pytest.mark.django_db
def test_a_file_says_who_reads_a_registry(office: Server) -> None:
    toolset = Toolset.objects.get()
    services.set_registry_readers(toolset, "tokens", by=None)
    text = export()

    assert "registry_readers: tokens" in text
    services.set_registry_readers(toolset, "none", by=None)
    (change,) = all_changes(read_file(text))
    assert "registry_readers" in str(change)


@pytest.mark.django_db
def test_what_could_not_be_saved_today_can_stay(office: Server) -> None:
    """A rule whose tool has other arguments by now, and one whose decider has left."""
    Rule.objects.create(
        name="old", effect="allow", server="mailer", tool="add", when="args.gone == 1"
    )
    Rule.objects.create(name="left", effect="ask", thresholds=[{"from": "person:gone"}])
    text = export()

    assert all_changes(read_file(text)) == []
    assert any(
        "rules[0].when" in one for one in mistakes(text.replace("effect: allow", "effect: ask"))
    )


@pytest.mark.django_db
def test_an_export_after_a_server_was_deleted_changes_nothing(office: Server) -> None:
    services.delete_server(office, by=None, has_open_calls=lambda server: False)

    assert all_changes(read_file(export())) == []


@pytest.mark.django_db
def test_hidden_characters_are_escaped_in_an_export() -> None:
    Rule.objects.create(name="a\u202eb", effect="ask", reason="审批\u200b人")
    Rule.objects.create(name="审批", effect="ask")

    text = export()

    assert "\u202e" not in text
    assert "\u200b" not in text
    assert "审批\n" in text
    assert all_changes(read_file(text)) == []


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
CONDITIONS = st.sampled_from(
    ["", "args.a > 1", "agent.name == 'x'\n", "now.getHours() < 8", "  true"]
)
NAMES = st.lists(TEXTS.filter(lambda one: one.strip()), unique=True, max_size=4)
THRESHOLD = st.fixed_dictionaries(
    {"approve": st.just(1), "deny": st.integers(1, 3)},
    optional={
        "distinct": st.sampled_from(["person", "team"]),
        "step_up": st.sampled_from(["", "totp"]),
    },
)
RULE = st.fixed_dictionaries(
    {
        "effect": st.sampled_from(Effect.values),
        "mode": st.sampled_from(Rule.Mode.values),
        "server": TEXTS.filter(bool),
        "tool": st.sampled_from(["*", "send_*", "1", "true", "~", "- a", "0.5"]),
        "when": CONDITIONS,
        "reason": TEXTS,
        "instead": TEXTS,
        "unnamed": st.booleans(),
        "confirm_grants": st.booleans(),
        "decide_within": st.none() | st.integers(1, 30 * 24 * 3600),
        "thresholds": st.lists(THRESHOLD, max_size=2),
    }
)
LIMIT = st.fixed_dictionaries(
    {
        "effect": st.sampled_from(["ask", "deny"]),
        "kind": st.sampled_from(Limit.Kind.values),
        "amount": st.integers(1, 10**9),
        "fraction": st.integers(0, 999_999),
        "period": st.sampled_from(Limit.Period.values),
        "burst": st.none() | st.integers(1, 10**6),
        "per": st.lists(st.sampled_from(Limit.Per.values), unique=True),
        "unit": TEXTS.map(lambda one: one[:19]).filter(lambda one: one.strip()),
        "reason": TEXTS,
    }
)


class TestRoundTrip(TestCase):
    """What is exported and read again is what was there, whatever it says."""

    # Finding a smaller example of a failure would take minutes.
    @pytest.mark.long
    @settings(
        max_examples=40,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
    )
    @given(st.data())
    def test_an_export_changes_nothing(self, data: Any) -> None:
        bob = User.objects.create_user("bob")
        scout = accounts.create_agent("scout", owner=bob, by=bob)
        scenery.person("alice", Role.APPROVER)
        group = Group.objects.create(name="审批 “x”: y")
        for place, name in enumerate(data.draw(NAMES)):
            made = Rule(name=name, position=place, **data.draw(RULE))
            made.save()
            made.agents.set([scout][: place % 2])
            made.owner_groups.set([group][: place // 2])
        for name in data.draw(NAMES):
            _limit(name, **data.draw(LIMIT))

        file = read_file(export())

        assert changes(file.present, file.wanted) == []
        assert yaml.safe_load(export())["version"] == 1


def _limit(name: str, fraction: int, amount: int, **values: Any) -> None:
    exact = Decimal(amount) + Decimal(fraction) / 1_000_000
    is_cost = values["kind"] == "cost"
    made = Limit(name=name, amount=exact if is_cost else amount, **values)
    made.cost = Decimal("0.25") if is_cost else None
    made.clean()
    made.save()


def test_the_schema_is_one() -> None:
    found = documents.schema()

    assert found["properties"]["rules"]["items"]["properties"]["effect"]["enum"] == Effect.values
    assert found["additionalProperties"] is False
