"""Rules in the console: written, ordered, removed; what they cover, and which never matter."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import consequences
from audit.models import Entry
from audit.services import SYSTEM
from calls.record.states import State
from calls.views import rule_figures
from policies import picks
from policies.coverage import covered_tools, shadows
from policies.models import Rule
from policies.services import save_rule
from policies.thresholds import deciders
from registry.models import Server, Tool
from tests.console import scenery
from tests.console.test_overview import make_call
from tests.policies.shadowing import shadowed

LIST = "/policies/"


@pytest.fixture
def ada(db: None) -> User:
    """An administrator."""
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def as_ada(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def rule(name: str, effect: str = "ask", **given: Any) -> Rule:
    position = given.pop("position", (Rule.objects.count() + 1) * 10)
    agents, groups = given.pop("agents", ()), given.pop("owner_groups", ())
    made = Rule(name=name, effect=effect, position=position, **given)
    return save_rule(made, by=SYSTEM, agents=agents, owner_groups=groups)


def given(**changes: Any) -> dict[str, Any]:
    plain = {"name": "Mails", "effect": "ask", "server": "mailer", "tool": "*", "mode": "enforce"}
    return {**plain, **changes}


def names(client: Client) -> list[str]:
    return [one.name for one, *_hints in client.get(LIST).context["rules"]]


NOBODY = "Nobody can approve what it asks for."


def test_a_threshold_that_nobody_can_meet_any_more_is_said(as_ada: Client) -> None:
    payments = Group.objects.create(name="payments")
    people = [scenery.person(name, Role.APPROVER) for name in ("carol", "dave")]
    payments.user_set.set(people)
    rule("Two", thresholds=[{"approve": 2, "from": "group:payments"}])
    rule("Or one", thresholds=[{"approve": 2, "from": "group:payments"}, {"approve": 1}])
    assert NOBODY not in as_ada.get(LIST).text

    payments.user_set.remove(people[0])

    page = as_ada.get(LIST).text
    assert page.count(NOBODY) == 1
    assert "It needs 2 approvals of payments, and 1 person may give one." in page
    assert "nobody may decide" not in page


def test_rules_that_nobody_can_satisfy_together_are_said(as_ada: Client) -> None:
    payments, desk = (Group.objects.create(name=name) for name in ("payments", "desk"))
    for name in ("carol", "dave"):
        scenery.person(name, Role.APPROVER).groups.add(payments, desk)
    server = scenery.server("mailer", scenery.person("olga", Role.OPERATOR), scenery.SEND)
    rule("Two", server=server.slug, thresholds=[{"approve": 2}])
    rule("Teams", thresholds=[{"approve": 1, "distinct": "team"}])

    page = as_ada.get(LIST).text

    said = "It needs 2 approvals of different teams, and there are not so many teams."
    assert f"Where “Teams” requires approval too: {said}" in page
    assert "Where “Two” requires approval too" not in page
    desk_only = scenery.person("erin", Role.APPROVER)
    assert NOBODY not in as_ada.get(LIST).text
    desk_only.groups.add(desk)
    assert NOBODY in as_ada.get(LIST).text


def test_where_nobody_may_decide_the_page_says_so(as_ada: Client) -> None:
    User.objects.exclude(username="ada").delete()
    assert not deciders()

    assert "nobody may decide. Give a user the role of an approver." in as_ada.get(LIST).text

    scenery.person("carol", Role.APPROVER)
    assert "nobody may decide" not in as_ada.get(LIST).text


def test_a_rule_is_made_at_the_end_and_recorded(as_ada: Client, scout: Agent) -> None:
    rule("First")

    page = as_ada.post(
        reverse("policies:add_rule"), given(agents=[scout.pk], hint="destructive"), follow=True
    )

    assert "is saved." in page.text
    assert names(as_ada) == ["First", "Mails"]
    assert list(Rule.objects.get(name="Mails").agents.all()) == [scout]
    entry = Entry.objects.filter(action="rule.saved").first()
    assert entry
    assert entry.actor == "ada"
    assert entry.details["rule_agents"] == ["scout"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": ""}, "required"),
        ({"name": "First"}, "already exists"),
        ({"effect": "maybe"}, "valid choice"),
        ({"effect": "allow", "hint": "writes"}, "cannot rest on a server"),
        ({"server": ""}, "required"),
        ({"reason": "x" * 301}, "at most 300"),
        ({"when": "args.amount >"}, "when"),
        ({"mode": "sometimes"}, "valid choice"),
    ],
)
def test_a_rule_that_cannot_be_is_said_and_not_saved(
    as_ada: Client, changes: dict[str, str], said: str
) -> None:
    rule("First")

    page = as_ada.post(reverse("policies:add_rule"), given(**changes))

    assert said in str(page.context["form"].errors)
    assert Rule.objects.count() == 1


def test_a_rule_is_changed(as_ada: Client) -> None:
    changed = rule("Mails", "deny", server="mailer")

    as_ada.post(reverse("policies:rule", args=[changed.pk]), given(effect="allow", mode="off"))

    changed.refresh_from_db()
    assert (changed.effect, changed.mode, changed.position) == ("allow", "off", 10)


@pytest.mark.long
def test_rules_change_places(as_ada: Client) -> None:
    _a, _b, c = rule("a"), rule("b"), rule("c")
    move = reverse("policies:move_rule", args=[c.pk])

    page = as_ada.post(move, {"way": "earlier"}, follow=True)

    assert names(as_ada) == ["a", "c", "b"]
    assert page.redirect_chain[0][0] == f"/policies/?moved={c.pk}&way=earlier"
    assert page.text.count("autofocus") == 1
    as_ada.post(move, {"way": "earlier"})
    as_ada.post(move, {"way": "earlier"})
    assert names(as_ada) == ["c", "a", "b"]
    as_ada.post(move, {"way": "later"})
    assert names(as_ada) == ["a", "c", "b"]
    assert Entry.objects.filter(action="rule.moved", actor="ada").count() == 3


def test_rules_with_one_position_are_parted_by_a_move(as_ada: Client) -> None:
    _a, b = rule("a", position=100), rule("b", position=100)

    as_ada.post(reverse("policies:move_rule", args=[b.pk]), {"way": "earlier"})

    assert names(as_ada) == ["b", "a"]


def test_removing_asks_first(as_ada: Client) -> None:
    gone = rule("Mails", "deny")
    remove = reverse("policies:remove_rule", args=[gone.pk])

    assert "Remove “Mails”?" in as_ada.get(remove).text
    assert Rule.objects.exists()
    page = as_ada.post(remove, follow=True)

    assert "“Mails” is removed." in page.text
    assert not Rule.objects.exists()
    assert Entry.objects.get(action="rule.removed").actor == "ada"
    assert as_ada.post(remove).status_code == 404


@pytest.mark.long
@pytest.mark.parametrize(
    ("patterns", "count"),
    [
        ({"server": "*", "tool": "*"}, 2),
        ({"server": "mail*", "tool": "send_?ail"}, 1),
        ({"server": "*", "tool": "*", "hint": "destructive"}, 1),
        ({"server": "mailer", "tool": "add"}, 0),
        ({"server": "[", "tool": "*", "hint": "nonsense"}, 0),
    ],
)
def test_the_form_counts_what_is_covered(
    as_ada: Client, olga: User, mailer: Server, patterns: dict[str, str], count: int
) -> None:
    scenery.server("calculator", olga, scenery.ADD)
    scenery.server("unread", olga, {**scenery.ADD, "name": "new"}, publish=False)

    page = as_ada.get(reverse("policies:covers"), patterns)

    assert page.context["covers"] == (count, 0)


def covers(client: Client, **asked: Any) -> str:
    page = client.get(reverse("policies:covers"), {"server": "*", "tool": "*", **asked})
    return str(page.text)


def test_the_form_counts_calls_of_the_last_week(
    as_ada: Client, send_mail: Tool, scout: Agent, olga: User
) -> None:
    raven = Agent.objects.create(name="raven", owner=olga)
    add = scenery.server("reckoner", olga, scenery.ADD).tools.get()
    for agent, tool in ((scout, send_mail), (scout, add), (raven, add)):
        make_call(agent, tool, State.SUCCEEDED, timedelta(days=6))
    make_call(scout, add, State.SUCCEEDED, timedelta(days=8))

    assert "<strong>3</strong> calls in the last 7 days." in covers(as_ada)
    assert "<strong>2</strong> calls in the last 7 days." in covers(as_ada, server="reckoner")
    operators = Group.objects.get(name=Role.OPERATOR)
    for narrowed in ({"agents": [raven.pk]}, {"owner_groups": [operators.pk]}):
        assert "<strong>1</strong> call in the last 7 days." in covers(as_ada, **narrowed)
    of_one = covers(as_ada, server="reckoner", agents=[scout.pk])
    assert "<strong>1</strong> call in the last 7 days." in of_one
    both = {"agents": [scout.pk], "owner_groups": [operators.pk]}
    assert "<strong>0</strong> calls in the last 7 days." in covers(as_ada, **both)


def test_only_so_many_calls_are_read_and_the_page_says_so(
    as_ada: Client, send_mail: Tool, scout: Agent, olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rule_figures, "MOST", 3)
    add = scenery.server("reckoner", olga, scenery.ADD).tools.get()
    for tool in (send_mail, send_mail, add, send_mail, send_mail):
        make_call(scout, tool, State.SUCCEEDED, timedelta(days=1))

    said = covers(as_ada, server="mailer")

    assert "<strong>2</strong> of the newest 3 calls; older ones are not read." in said
    assert "<strong>1</strong> call in the last 7 days." in covers(as_ada, server="reckoner")


def test_without_a_script_a_button_counts_and_saves_nothing(as_ada: Client, held: UUID) -> None:
    page = as_ada.post(reverse("policies:add_rule"), given(count="1"))

    assert "Covers <strong>1</strong> published tool today." in page.text
    assert "<strong>1</strong> call in the last 7 days." in page.text
    assert page.context["form"]["name"].value() == "Mails"
    assert not Rule.objects.exists()


@pytest.mark.long
def test_methods_are_no_tools_wherever_tools_are_counted(as_ada: Client, olga: User) -> None:
    read = {**scenery.ADD, "name": "resources/read"}
    library = scenery.server("library", olga, scenery.ADD, read)
    rule("every")
    of_one = "Covers <strong>1</strong> published tool today."
    method = "And <strong>1</strong> MCP method, such as resources/read."

    for page in (covers(as_ada), as_ada.get(LIST).text):
        assert f"{of_one} {method}" in page
    picked = as_ada.get(reverse("policies:pick_server"), {"server": "lib"}).text
    assert '· 1 published tool"' in picked
    as_olga = Client()
    as_olga.force_login(olga)
    assert "1 of 1 tools published" in as_olga.get(reverse("registry:servers")).text
    assert "1 of 1" in as_olga.get(reverse("registry:server", args=["library"])).text
    shown = consequences.of_server(library).figures[0]
    assert (shown.label, shown.number) == ("Published tools", 1)


def test_the_list_counts_too(as_ada: Client, mailer: Server) -> None:
    rule("every")
    rule("none", server="nowhere")

    assert "Covers <strong>1</strong> published tool today." in as_ada.get(LIST).text
    assert "Covers no published tool today." in as_ada.get(LIST).text


SHADOWS: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"effect": "deny"}, {"effect": "ask", "server": "mailer"}, True),
    ({"effect": "ask"}, {"effect": "deny", "server": "mailer"}, False),
    ({"effect": "ask"}, {"effect": "ask", "server": "mailer"}, True),
    ({"effect": "ask", "position": 99}, {"effect": "ask", "server": "mailer"}, False),
    ({"effect": "deny", "mode": "off"}, {"effect": "ask"}, False),
    ({"effect": "deny", "server": "mail*"}, {"effect": "ask", "server": "mailer"}, True),
    ({"effect": "deny", "server": "mail*"}, {"effect": "ask", "server": "mailer-*"}, True),
    ({"effect": "deny", "server": "mailer-*"}, {"effect": "ask", "server": "mail*"}, False),
    ({"effect": "deny", "tool": "*_mail"}, {"effect": "ask", "tool": "s*_mail"}, False),
    ({"effect": "deny", "hint": "writes"}, {"effect": "ask", "hint": "destructive"}, True),
    ({"effect": "deny", "hint": "destructive"}, {"effect": "ask", "hint": "writes"}, False),
    ({"effect": "deny", "hint": "writes"}, {"effect": "ask"}, False),
    ({"effect": "deny", "hint": "open_world"}, {"effect": "ask", "hint": "writes"}, False),
    ({"effect": "deny", "when": "args.a == 1"}, {"effect": "ask"}, False),
    ({"effect": "deny", "mode": "shadow"}, {"effect": "ask"}, False),
    ({"effect": "deny"}, {"effect": "ask", "when": "args.a == 1"}, True),
    ({"effect": "allow"}, {"effect": "allow", "when": "args.a == 1"}, False),
    ({"effect": "ask"}, {"effect": "allow", "when": "args.a == 1"}, True),
    # All that ask have to be satisfied: one that asks for more always matters.
    ({"effect": "ask"}, {"effect": "ask", "thresholds": [{"approve": 2}]}, False),
    ({"effect": "ask", "thresholds": [{"approve": 2}]}, {"effect": "ask"}, True),
    ({"effect": "ask"}, {"effect": "ask", "decide_within": 60}, False),
    ({"effect": "ask", "decide_within": 60}, {"effect": "ask", "decide_within": 90}, True),
    ({"effect": "ask"}, {"effect": "ask", "confirm_grants": True}, False),
    ({"effect": "deny", "instead": "Less."}, {"effect": "ask", "server": "mailer"}, True),
    ({"effect": "deny"}, {"effect": "ask", "thresholds": [{"approve": 2}]}, True),
]


@pytest.mark.parametrize(("wide", "narrow", "never"), SHADOWS)
@pytest.mark.django_db
def test_a_rule_that_never_matters_is_known(
    wide: dict[str, Any], narrow: dict[str, Any], never: bool
) -> None:
    for name in ("dora", "erik"):
        scenery.person(name, Role.APPROVER)
    other, one = rule("wide", **wide), rule("narrow", **narrow)

    assert (shadowed([other, one]).get(one.pk) == other) is never


def test_agents_and_groups_are_minded(as_ada: Client, scout: Agent, bob: User) -> None:
    clerk = Agent.objects.create(name="clerk", owner=bob)
    viewers = Group.objects.get(name=Role.VIEWER)
    for_scout = rule("for scout", "deny", agents=[scout])
    of_viewers = rule("of viewers", "deny", owner_groups=[viewers])
    everybody = rule("everybody", "ask")
    scouts = rule("scouts", "ask", agents=[scout])
    both = rule("both", "ask", agents=[scout, clerk])
    viewed = rule("viewed", "allow", agents=[clerk], owner_groups=[viewers])

    found = shadowed([for_scout, of_viewers, everybody, scouts, both, viewed])

    assert {one: other.name for one, other in found.items()} == {
        scouts.pk: "for scout",
        both.pk: "everybody",
        viewed.pk: "of viewers",
    }
    assert "Shadowed by “for scout”, which covers all that it covers" in (
        page := as_ada.get(LIST).text
    )
    assert "Adds nothing: “everybody” already requires the same or more." in page


def test_a_hinted_rule_shadows_by_what_is_published(as_ada: Client, olga: User) -> None:
    scenery.server("mailer", olga, scenery.SEND)
    scenery.server("calculator", olga, scenery.ADD)
    writing = rule("writing", "ask", hint="writes")
    mails = rule("mails", "allow", server="mailer")
    every = rule("every", "allow")

    known = [writing, mails, every]
    of_writing, of_mails, of_every = shadows(known, covered_tools(known))

    assert [(one.rule, one.is_whole) for one in of_writing.cast] == [(mails, True), (every, False)]
    assert of_mails.whole
    assert (of_mails.whole.other, of_mails.whole.always) == (writing, False)
    assert [(one.other, one.tools, one.of) for one in of_every.partial] == [(writing, 1, 2)]
    page = as_ada.get(LIST).text
    assert "Shadowed by “writing”, which goes first on every published tool" in page
    assert "Shadowed by “writing” on 1 of its 2 tools and methods." in page
    assert "Shadows: “mails”, “every” on 1 of its 2 tools and methods" in page


def picked(client: Client, what: str, **asked: str) -> list[tuple[str, str]]:
    page = client.get(reverse(f"policies:pick_{what}"), asked)
    return [(pick.value, pick.label) for pick in page.context["picks"]]


@pytest.mark.long
def test_names_are_offered_while_they_are_typed(as_ada: Client, mailer: Server, olga: User) -> None:
    scenery.server("calculator", olga, scenery.ADD, {**scenery.SEND, "name": "send_sum"})
    scenery.server("other", olga, scenery.ADD)
    scenery.server("unread", olga, {**scenery.ADD, "name": "new"}, publish=False)

    assert picked(as_ada, "server", server="Mail*er") == [("mailer", "1 published tool")]
    assert picked(as_ada, "server", server="unread") == [("unread", "0 published tools")]
    assert picked(as_ada, "tool", tool="ad", server="*") == [("add", "of 2 servers")]
    sends = [("send_mail", "of 1 server"), ("send_sum", "of 1 server")]
    assert picked(as_ada, "tool", tool="send?", server="m*") == sends
    assert picked(as_ada, "tool", tool="", server="mailer") == sends[:1]
    assert picked(as_ada, "tool", tool="new") == []
    assert picked(as_ada, "exposed", tool="calculator.s") == [
        ("calculator.send_sum", "Destructive")
    ]


def test_of_many_names_few_are_offered(
    as_ada: Client, mailer: Server, monkeypatch: pytest.MonkeyPatch, olga: User
) -> None:
    monkeypatch.setattr(picks, "MOST", 2)
    for n in range(3):
        scenery.server(f"server-{n}", olga, {**scenery.ADD, "name": f"add_{n}"})

    assert len(picked(as_ada, "server", server="server")) == 2
    assert len(picked(as_ada, "tool", tool="add")) == 2
    assert len(picked(as_ada, "exposed", tool="add")) == 2


@pytest.mark.long
def test_a_folded_part_with_something_in_it_is_open(as_ada: Client, scout: Agent) -> None:
    plain, told = rule("Plain"), rule("Told", agents=[scout], decide_within=60, mode="shadow")

    def opened(one: Rule) -> int:
        page: str = as_ada.get(reverse("policies:rule", args=[one.pk])).text
        return page.count('<details class="section" open>')

    assert opened(plain) == 0
    assert opened(told) == 3
    wrong = as_ada.post(reverse("policies:add_rule"), given(start_within="-1"))
    assert wrong.text.count('<details class="section" open>') == 1


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.APPROVER, Role.AUDITOR])
def test_others_read_rules_and_change_none(client: Client, db: None, role: Role) -> None:
    kept = rule("Mails")
    client.force_login(scenery.person("somebody", role))

    page = client.get(LIST)
    assert "Mails" in page.text
    assert '<button class="button quiet small" name="way"' not in page.text
    for name, args in [("add_rule", []), ("rule", [kept.pk]), ("remove_rule", [kept.pk])]:
        address = reverse(f"policies:{name}", args=args)
        assert client.get(address).status_code == 403
        assert client.post(address, given()).status_code == 403
    move = reverse("policies:move_rule", args=[kept.pk])
    assert client.post(move, {"way": "later"}).status_code == 403
    assert Rule.objects.count() == 1


@pytest.mark.parametrize("who", ["vera", "mallory"])
def test_who_may_not_see_rules_does_not(
    client: Client, request: pytest.FixtureRequest, who: str
) -> None:
    client.force_login(request.getfixturevalue(who))

    assert client.get(LIST).status_code == 403
    for name in ("covers", "pick_server", "pick_tool", "pick_exposed"):
        assert client.get(reverse(f"policies:{name}")).status_code == 403


def test_changes_need_a_post_and_the_forms_own_token(as_ada: Client, ada: User) -> None:
    kept = rule("Mails")
    move = reverse("policies:move_rule", args=[kept.pk])
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)

    assert as_ada.get(move).status_code == 405
    assert as_ada.post(LIST).status_code == 405
    for address in (move, reverse("policies:remove_rule", args=[kept.pk])):
        assert strict.post(address).status_code == 403


def test_no_rules_yet_says_what_to_do(as_ada: Client) -> None:
    page = as_ada.get(LIST).text

    assert "No rules yet" in page
    assert reverse("policies:add_rule") in page


def threshold(n: int = 0, **parts: Any) -> dict[str, str]:
    return {f"thresholds-{n}-{part.strip('_')}": value for part, value in parts.items()}


def test_who_decides_is_said_in_rows_of_the_form(as_ada: Client, bob: User) -> None:
    scenery.person("carol", Role.APPROVER).groups.add(Group.objects.create(name="payments"))
    rows = threshold(approve="1", deny="", from_="group:payments", step_up="passkey")
    rows |= threshold(2, approve="1", deny="1", from_="person:bob")

    page = as_ada.post(
        reverse("policies:add_rule"), given(**rows, decide_within="600"), follow=True
    )

    made = Rule.objects.get(name="Mails")
    assert made.decide_within == 600
    assert [(one["approve"], one["from"]) for one in made.thresholds] == [
        (1, "group:payments"),
        (1, "person:bob"),
    ]
    assert (
        "1 approval of payments, confirmed by passkey; 1 denial decides, or approval of bob"
        in page.text
    )
    form = as_ada.get(reverse("policies:rule", args=[made.pk])).text
    assert '<option value="group:payments" selected>payments</option>' in form
    assert '<option value="person:bob" selected>bob</option>' in form


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"approve": "x"}, "Threshold 1: “approve” must be a whole number"),
        ({"approve": "0"}, "whole number from 1 to 50"),
        ({"approve": "1", "from_": "moon"}, "must be “group:NAME”"),
        ({"approve": "7"}, "can never be met: everybody: 1 may decide"),
    ],
)
def test_thresholds_that_cannot_be_are_said_beside_them(
    as_ada: Client, alice: User, row: dict[str, Any], said: str
) -> None:
    page = as_ada.post(reverse("policies:add_rule"), given(**threshold(**row)))

    assert said in page.text
    assert not Rule.objects.exists()


def test_a_rule_is_put_where_it_was_dragged_to(as_ada: Client) -> None:
    made = [rule(name) for name in "abcd"]

    def put(n: int, place: str) -> list[str]:
        as_ada.post(reverse("policies:move_rule", args=[made[n].pk]), {"place": place})
        return names(as_ada)

    assert put(0, "3") == ["b", "c", "a", "d"]
    assert put(3, "1") == ["d", "b", "c", "a"]
    before = Entry.objects.filter(action="rule.moved").count()
    for nowhere in ("0", "9", "1"):
        assert put(3, nowhere)[:1] == ["d"]
    assert Entry.objects.filter(action="rule.moved").count() == before
