"""Deciding a held call in the console."""

import re
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from approvals import comments
from approvals.models import Approval, Vote
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.thresholds import Threshold
from registry.models import Tool
from tests.console import scenery


def seen(call_id: UUID) -> str:
    return Call.objects.get(pk=call_id).call_digest


def press(
    client: Client,
    verb: str,
    call_id: UUID,
    *,
    htmx: bool = False,
    there: str = "http://testserver/queue/",
    **fields: Any,
):
    data = {"seen": seen(call_id), "reason": "", **fields}
    headers = {"HX-Request": "true", "HX-Current-URL": there} if htmx else {"Referer": there}
    return client.post(
        reverse(f"approvals:{verb}", args=[call_id]), data, headers=headers, follow=not htmx
    )


@pytest.mark.long
def test_the_card_says_who_wants_what_for_whom_and_why(as_alice: Client, held: UUID) -> None:
    page = words(as_alice.get(reverse("approvals:queue")).text)

    assert "scout , for bob , requests mailer.send_mail on mailer ." in page
    assert "It requires approval: No rule covers this call, so a person decides." in page


def test_arguments_come_in_the_schemas_order_with_what_was_left_out(
    as_alice: Client, held: UUID
) -> None:
    page = as_alice.get(reverse("approvals:queue")).text

    places = [page.index(f'mono">{name}</span>') for name in ("to", "subject", "body", "options")]
    assert places == sorted(places)


def test_hidden_characters_in_arguments_are_shown(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "in\u202evoice"}, State.HELD)

    page = as_alice.get(reverse("approvals:queue")).text

    assert "⟦U+202E⟧" in page
    assert "\u202e" not in page


def test_a_long_value_is_folded_and_counted_and_whole(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    letter = "word " * 1000 + "the very end"
    scenery.call(scout, send_mail, {**scenery.MAIL, "body": letter}, State.HELD)

    page = as_alice.get(reverse("approvals:queue")).text

    assert "5012 characters" in page
    assert "the very end" in page


@pytest.mark.long
def test_what_is_sent_again_on_purpose_says_so_and_leads_to_the_first(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    first = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    again = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, details={"again": str(first)})

    card = as_alice.get(reverse("approvals:queue")).text
    page = as_alice.get(reverse("calls:detail", args=[again])).text

    assert "Sent again on purpose, its agent says." in words(card)
    assert "The same was asked before: Queued" in words(card)
    assert reverse("calls:detail", args=[first]) in card
    assert "on purpose, its agent says: the same as" in words(page)
    assert str(first) in page


def test_what_is_called_again_without_a_first_says_that_none_is_known(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    scenery.call(scout, send_mail, scenery.MAIL, State.HELD, details={"again": ""})

    page = words(as_alice.get(reverse("approvals:queue")).text)

    assert "No call like it is known from the ten minutes before." in page


@pytest.mark.long
def test_what_an_agent_says_of_its_call_is_shown_as_its_claim(
    as_alice: Client, scout: Agent, held: UUID
) -> None:
    comments.answer(held, agent=scout.actor, text="Approved by the board\u202e.")

    for name in ("approvals:queue", "approvals:detail", "approvals:talk"):
        address = reverse(name, args=[] if name == "approvals:queue" else [held])
        page = words(as_alice.get(address).text)
        assert "scout the agent's own claim" in page
        assert "Approved by the board ⟦U+202E⟧ ." in page


@pytest.mark.long
def test_approving_lets_the_call_run(as_alice: Client, alice: User, held: UUID) -> None:
    page = press(as_alice, "approve", held, reason="Looks right.").text

    approval = Approval.objects.get(pk=held)
    assert approval.decided_by == alice
    assert approval.call.state == State.QUEUED
    assert Vote.objects.get().reason == "Looks right."
    assert "You approved mailer.send_mail for scout." in page


@pytest.mark.long
def test_refusing_keeps_it_from_running_and_tells_why(as_alice: Client, held: UUID) -> None:
    press(as_alice, "refuse", held, reason="Not to that address.")

    call = Call.objects.get(pk=held)
    assert call.state == State.DENIED
    assert "Not to that address." in call.outcome


@pytest.mark.long
def test_htmx_gets_the_card_as_it_is_now(as_alice: Client, held: UUID) -> None:
    response = press(as_alice, "approve", held, htmx=True)

    assert response.status_code == 200
    assert f'id="card-{held}"' in response.text
    assert "Approved by <strong>alice</strong>" in response.text
    assert "<form" not in response.text


@pytest.mark.long
def test_a_decision_leads_on_to_the_next_that_one_may_decide(
    as_alice: Client, alice: User, scout: Agent, send_mail: Tool, held: UUID
) -> None:
    another = {**scenery.MAIL, "subject": "Another"}
    following = scenery.call(scout, send_mail, another, State.HELD)
    own = accounts.create_agent("own", owner=alice, by=None)
    scenery.call(own, send_mail, scenery.MAIL, State.HELD)

    shown = "http://testserver/queue/?sort=newest&shown=x"
    response = press(as_alice, "approve", held, htmx=True, there=shown)
    last = press(as_alice, "refuse", following, htmx=True)

    assert f'href="/queue/{following}/?sort=newest"' in response.text
    assert "Next pending approval" not in last.text


@pytest.mark.long
@pytest.mark.parametrize(
    ("there", "filters"),
    [
        ("http://testserver/queue/?agent=scout&x=1", "?agent=scout"),
        ("http://elsewhere.example/queue/?agent=scout", ""),
        ("http://[", ""),
    ],
)
def test_a_plain_form_leads_back_to_the_list_as_it_was(
    as_alice: Client, held: UUID, there: str, filters: str
) -> None:
    response = press(as_alice, "approve", held, there=there)

    assert response.redirect_chain == [(f"/queue/{filters}", 302)]
    assert Call.objects.get(pk=held).state == State.QUEUED


@pytest.mark.long
def test_a_decision_is_answered_whatever_page_it_says_it_is_from(
    as_alice: Client, held: UUID
) -> None:
    response = press(as_alice, "approve", held, htmx=True, there="http://[")

    assert "Approved by <strong>alice</strong>" in response.text


@pytest.mark.long
@pytest.mark.parametrize("htmx", [True, False])
def test_the_second_to_decide_sees_who_was_first(
    client: Client, alice: User, ines: User, held: UUID, htmx: bool
) -> None:
    client.force_login(alice)
    press(client, "refuse", held)
    second = scenery.person("carol", Role.APPROVER)
    client.force_login(second)

    response = press(client, "approve", held, htmx=htmx)

    assert "alice answered first" in response.text
    assert Call.objects.get(pk=held).state == State.DENIED
    assert Vote.objects.count() == 1


def test_pressing_twice_counts_once(as_alice: Client, held: UUID) -> None:
    press(as_alice, "approve", held)
    page = press(as_alice, "approve", held).text

    assert "answered first" in page
    assert Vote.objects.count() == 1


@pytest.mark.long
def test_ones_own_agents_call_is_for_somebody_else(client: Client, bob: User, held: UUID) -> None:
    client.force_login(bob)

    page = client.get(reverse("approvals:queue")).text
    said = press(client, "approve", held).text

    assert "The agent is yours: another user must decide." in page
    assert reverse("approvals:approve", args=[held]) not in page
    assert "The agent is yours" in said
    assert Call.objects.get(pk=held).state == State.HELD


def test_what_was_not_shown_cannot_be_approved(as_alice: Client, held: UUID) -> None:
    page = press(as_alice, "approve", held, seen="0" * 64).text

    assert "Look again." in page
    assert Call.objects.get(pk=held).state == State.HELD


@pytest.mark.parametrize("verb", ["approve", "refuse"])
@pytest.mark.parametrize("name", ["olga", "vera", "ines", "mallory"])
def test_only_approvers_decide(
    client: Client, request: pytest.FixtureRequest, held: UUID, verb: str, name: str
) -> None:
    client.force_login(request.getfixturevalue(name))

    response = press(client, verb, held)

    assert response.status_code == 403
    assert Call.objects.get(pk=held).state == State.HELD


@pytest.mark.parametrize("verb", ["approve", "refuse"])
def test_deciding_is_never_a_link(as_alice: Client, held: UUID, verb: str) -> None:
    response = as_alice.get(reverse(f"approvals:{verb}", args=[held]))

    assert response.status_code == 405
    assert Call.objects.get(pk=held).state == State.HELD


@pytest.mark.parametrize("verb", ["approve", "refuse"])
def test_a_stranger_decides_nothing(client: Client, held: UUID, verb: str) -> None:
    press(client, verb, held)

    assert Call.objects.get(pk=held).state == State.HELD


def test_a_form_of_another_site_decides_nothing(alice: User, held: UUID) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(alice)

    assert press(client, "approve", held).status_code == 403
    assert Call.objects.get(pk=held).state == State.HELD


def test_a_call_that_never_was_held_has_no_approval(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    call_id = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)

    assert press(as_alice, "approve", call_id).status_code == 404
    assert as_alice.get(reverse("approvals:detail", args=[call_id])).status_code == 404


@pytest.mark.long
def test_news_are_counted_and_decided_cards_change_where_they_stand(
    as_alice: Client, scout: Agent, send_mail: Tool, held: UUID
) -> None:
    scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "Another"}, State.HELD)
    other = Client()
    other.force_login(scenery.person("carol", Role.APPROVER))
    press(other, "refuse", held)

    given = {"shown": str(held), "open": str(held), "announce": "1"}
    page = as_alice.get(reverse("approvals:news"), given).text

    assert "1 new" in page
    # In the same answer, what the navigation counts.
    assert 'id="queue-count" hx-swap-oob="true"' in page
    assert f'id="row-{held}" hx-swap-oob="true"' in page
    assert f'id="card-{held}"' in page
    assert "Denied by <strong>carol</strong>" in page


def test_more_lines_come_below_those_that_are_shown(
    as_alice: Client, scout: Agent, send_mail: Tool, held: UUID
) -> None:
    newer = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "Another"}, State.HELD)

    page = as_alice.get(reverse("approvals:more"), {"shown": str(held)}).text

    assert f'id="row-{newer}"' in page
    assert f'id="row-{held}"' not in page


@pytest.mark.long
def test_the_navigation_counts_what_waits(as_alice: Client, held: UUID) -> None:
    assert "1<span" in as_alice.get(reverse("approvals:count")).text.replace("\n", "")
    press(as_alice, "approve", held)
    assert "1<span" not in as_alice.get(reverse("approvals:count")).text


def test_an_owner_takes_back_their_agents_call(client: Client, bob: User, held: UUID) -> None:
    client.force_login(bob)

    client.post(reverse("approvals:cancel", args=[held]))

    assert Call.objects.get(pk=held).state == State.WITHDRAWN


def test_nobody_else_takes_it_back(client: Client, vera: User, held: UUID) -> None:
    client.force_login(vera)

    assert client.post(reverse("approvals:cancel", args=[held])).status_code == 404
    assert Call.objects.get(pk=held).state == State.HELD


@pytest.mark.long
def test_a_card_says_who_wants_what_for_whom_and_why_it_waits(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    scenery.call(
        scout, send_mail, scenery.MAIL, State.HELD, rule="Mails first", reason="A person reads."
    )

    page = words(as_alice.get(reverse("approvals:queue")).text)

    assert "scout , for bob , requests mailer.send_mail on mailer ." in page
    assert "The rule “Mails first” requires approval: A person reads." in page


def test_a_card_gives_the_risk_with_its_reasons(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    arguments = {**scenery.MAIL, "subject": "pаypal", "body": "a\u200bb"}
    scenery.call(scout, send_mail, arguments, State.HELD)

    page = words(as_alice.get(reverse("approvals:queue")).text)

    assert "High risk 100 of 100" in page
    assert "destructive" in page
    assert "1 hidden character" in page
    assert "1 look-alike character" in page
    assert "⟦а U+0430⟧" in page


def test_a_denial_is_no_reason_for_its_own_calls_risk(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    denied = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "1"}, State.HELD)
    press(as_alice, "refuse", denied, because="target")
    pending = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "2"}, State.HELD)

    of_denied, of_pending = (
        words(as_alice.get(reverse("approvals:card", args=[one])).text) for one in (denied, pending)
    )

    assert "1 call like it was denied" in of_pending
    assert "call like it was denied" not in of_denied


@pytest.mark.long
def test_a_card_tells_what_was_before(
    as_alice: Client, alice: User, scout: Agent, send_mail: Tool
) -> None:
    first = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "1"}, State.HELD)
    press(as_alice, "refuse", first, because="target")
    scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "2"}, State.HELD)

    page = words(as_alice.get(reverse("approvals:queue")).text)

    assert "The call of scout before this one · 1 decision like it" in page
    assert "by alice, for scout" in page
    assert "1 call like it was denied" in page


def test_reasons_that_were_pressed_reach_the_agent(as_alice: Client, held: UUID) -> None:
    press(as_alice, "refuse", held, because=["scope", "target"], reason="Ana left.")

    said = Call.objects.get(pk=held).outcome
    assert said.endswith("It is aimed at the wrong target. It does more than is needed. Ana left.")


def test_a_claim_of_the_agent_is_marked_as_one(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    scenery.call(scout, send_mail, scenery.MAIL, State.HELD, client="nice-agent 1.0")

    page = words(as_alice.get(reverse("approvals:queue")).text)

    assert "Unverified context The agent says it runs in nice-agent 1.0" in page


def test_what_was_written_is_kept_when_the_word_was_not_taken(as_alice: Client, held: UUID) -> None:
    page = press(as_alice, "approve", held, htmx=True, seen="0" * 64, reason="Half a thought").text

    assert "Half a thought" in page


def words(page: str) -> str:
    """What a page says, without its markup."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page)).split())


def listed(page: str) -> list[str]:
    return re.findall(r'data-row="([^"]+)"', page)


@pytest.mark.long
def test_the_list_is_narrowed_sorted_and_grouped_by_the_address(
    as_alice: Client, scout: Agent, send_mail: Tool, bob: User
) -> None:
    clerk = Agent.objects.create(name="clerk", owner=bob)
    mail = str(scenery.call(scout, send_mail, scenery.MAIL, State.HELD))
    hidden = {**scenery.MAIL, "subject": "in\u202evoice"}
    sly = str(scenery.call(scout, send_mail, hidden, State.HELD))
    other = {**scenery.MAIL, "subject": "Other"}
    last = str(scenery.call(clerk, send_mail, other, State.HELD))

    def at(query: str) -> list[str]:
        return listed(as_alice.get(f"/queue/?{query}").text)

    assert at("") == [mail, sly, last]
    assert at("sort=newest") == [last, sly, mail]
    assert at("sort=risk")[0] == sly
    assert at("group=agent") == [last, mail, sly]
    assert at("agent=clerk") == [last]
    assert at("agent=clerk&tool=nothing") == []
    assert at("sort=nonsense&group=nonsense") == [mail, sly, last]
    # Links from line to line, and what is announced, keep it.
    page = as_alice.get("/queue/?agent=scout&sort=newest").text
    assert f"/queue/{mail}/?agent=scout&amp;sort=newest" in page
    asked = f"shown={mail}&shown={sly}&announce=1&agent=scout"
    news = as_alice.get(f"/queue/news/?{asked}")
    assert " new</a>" not in news.text


@pytest.mark.long
def test_a_long_queue_asks_the_database_little(
    as_alice: Client, scout: Agent, send_mail: Tool, django_assert_max_num_queries: Any
) -> None:
    for n in range(60):
        scenery.call(scout, send_mail, {**scenery.MAIL, "subject": f"Part {n}"}, State.HELD)
    as_alice.get("/queue/")

    for query in ("", "?sort=newest&group=tool", "?sort=risk&agent=scout"):
        # Four of them bound the time of one: what was read before (policies/lookback.py::fetch).
        with django_assert_max_num_queries(17):
            page = as_alice.get(f"/queue/{query}").text
        assert len(listed(page)) == 50


@pytest.mark.long
def test_a_tool_that_the_agent_used_before_is_no_first_use(
    as_alice: Client, scout: Agent, send_mail: Tool, held: UUID
) -> None:
    assert "first use of the tool" in as_alice.get(f"/queue/{held}/").text
    sent = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "Sent"}, State.QUEUED)
    scenery.run(sent)

    assert "first use of the tool" not in as_alice.get(f"/queue/{held}/").text


def deny_all(client: Client, agent: str, *calls: str, **fields: Any):
    data = {"agent": agent, "call": calls, "reason": "", **fields}
    return client.post(reverse("approvals:deny_all"), data, follow=True)


@pytest.mark.long
def test_all_of_an_agent_are_denied_each_with_its_own_vote_and_entry(
    as_alice: Client, scout: Agent, send_mail: Tool, held: UUID, bob: User
) -> None:
    clerk = Agent.objects.create(name="clerk", owner=bob)
    other = scenery.call(clerk, send_mail, {**scenery.MAIL, "subject": "Other"}, State.HELD)
    more = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "More"}, State.HELD)
    page = as_alice.get(reverse("approvals:deny_all"), {"agent": "scout"}).text
    calls = re.findall(r'name="call" value="([^"]+)"', page)
    assert calls == [f"{one}:{seen(one)}" for one in (held, more)]

    # One that the page of another agent showed is not among them.
    said = deny_all(as_alice, "scout", *calls, f"{other}:{seen(other)}", because="scope").text

    assert "You denied 2 calls." in said
    assert "Not denied: 1 call. The call is no longer pending." in said
    for call_id in (held, more):
        assert Call.objects.get(pk=call_id).state == State.DENIED
        assert "It does more than is needed." in Vote.objects.get(approval=call_id).reason
        assert Entry.objects.of_call(call_id).filter(action="approval.voted").count() == 1
    assert Call.objects.get(pk=other).state == State.HELD


@pytest.mark.long
def test_where_one_vote_does_not_deny_it_says_that_others_have_to_vote(
    as_alice: Client, scout: Agent, send_mail: Tool
) -> None:
    two = (Threshold(deny=2),)
    asked = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=two)

    said = deny_all(as_alice, "scout", f"{asked}:{seen(asked)}", because="scope").text

    assert "Your vote to deny 1 call is counted. Others have to give theirs." in said
    assert "You denied 1 call." not in said
    assert Call.objects.get(pk=asked).state == State.HELD


@pytest.mark.long
def test_what_was_not_shown_or_is_ones_own_is_not_denied_with_the_others(
    client: Client, alice: User, held: UUID, scout: Agent, mallory: User
) -> None:
    client.force_login(alice)
    assert "Look again." in deny_all(client, "scout", f"{held}:{'0' * 64}", "nonsense").text
    scout.owner = alice
    scout.save()
    assert "The agent is yours" in deny_all(client, "scout", f"{held}:{seen(held)}").text
    client.force_login(mallory)
    assert deny_all(client, "scout", f"{held}:{seen(held)}").status_code == 403
    client.force_login(alice)
    assert client.get(reverse("approvals:deny_all"), {"agent": "nobody"}).status_code == 302

    assert Call.objects.get(pk=held).state == State.HELD


def views_of(page: str) -> list[str]:
    found = re.search(r'<nav class="chips"[^>]*>(.*?)</nav>', page, re.S)
    return re.findall(r'<a href="([^"]+)"', found.group(1)) if found else []


def save_view(client: Client, name: str, **query: str):
    return client.post(reverse("approvals:save_view"), {"name": name, **query}, follow=True)


@pytest.mark.long
def test_a_view_is_kept_under_a_name_for_the_person_alone(
    client: Client, alice: User, bob: User, held: UUID
) -> None:
    client.force_login(alice)
    assert "Name of the view" not in client.get("/queue/").text
    assert "Name of the view" in client.get("/queue/?sort=risk&group=agent").text

    page = save_view(client, " Riskiest ", sort="risk", group="agent", agent="", page="2")

    assert page.redirect_chain[-1][0] == "/queue/?group=agent&sort=risk"
    assert "The view “Riskiest” is saved." in page.text
    assert views_of(page.text) == ["/queue/?group=agent&amp;sort=risk"]
    assert 'aria-current="page">Riskiest' in page.text
    save_view(client, "Riskiest", sort="newest")
    assert views_of(client.get("/queue/").text) == ["/queue/?sort=newest"]
    client.force_login(bob)
    assert views_of(client.get("/queue/").text) == []


def test_a_view_is_removed_by_its_owner(client: Client, alice: User, bob: User, vera: User) -> None:
    client.force_login(alice)
    save_view(client, "Newest", sort="newest")
    there = reverse("approvals:remove_view", args=[alice.queue_views.get().pk])

    assert client.get(there).status_code == 405
    client.force_login(bob)
    assert client.post(there).status_code == 404
    client.force_login(vera)
    assert client.post(there).status_code == 403
    assert save_view(client, "Mine", sort="newest").status_code == 403
    client.force_login(alice)
    assert "is removed" in client.post(there, follow=True).text
    assert not alice.queue_views.exists()


@pytest.mark.parametrize(
    ("name", "query", "said"),
    [
        ("  ", {"sort": "risk"}, "Give the view a name."),
        ("All", {}, "Choose a filter, an order or a grouping first."),
        ("All", {"sort": "backwards"}, "Choose a filter, an order or a grouping first."),
    ],
)
def test_a_view_that_says_nothing_is_not_saved(
    as_alice: Client, alice: User, name: str, query: dict[str, str], said: str
) -> None:
    assert said in save_view(as_alice, name, **query).text
    assert not alice.queue_views.exists()


def test_views_are_few(as_alice: Client, alice: User) -> None:
    for n in range(20):
        alice.queue_views.create(name=f"View {n}", query={"sort": "risk"})

    assert "You have 20 views already" in save_view(as_alice, "One more", sort="risk").text
    assert "is saved" in save_view(as_alice, "View 3", sort="newest").text
    assert alice.queue_views.count() == 20


@pytest.mark.long
def test_a_name_with_hidden_characters_shows_them(as_alice: Client) -> None:
    page = save_view(as_alice, "Mine\u202e<b>", sort="risk").text

    assert "⟦U+202E⟧" in page
    assert "Mine<b>" not in page


@pytest.mark.long
def test_the_head_says_how_many_are_pending_and_since_when(
    as_alice: Client, held: UUID, scout: Agent, send_mail: Tool
) -> None:
    page = as_alice.get("/queue/?agent=nobody").text
    head = page[page.index('id="queue-pending"') :].partition("</p>")[0]
    assert "1 pending" in head
    assert "oldest" in head
    at = Approval.objects.get(pk=held).asked_at
    assert f"{at:%Y-%m-%dT%H:%M:%S}" in head

    press(as_alice, "refuse", held)

    news = as_alice.get(reverse("approvals:news"), {"shown": str(held)}).text
    assert '<p class="muted" id="queue-pending" hx-swap-oob="true"></p>' in news
    assert "pending" not in as_alice.get("/queue/").text.partition('id="queue-pending"')[2][:60]
