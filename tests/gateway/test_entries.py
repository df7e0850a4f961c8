"""What entries of calls say: the words of their time, by whatever numbers they are stored."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connection

from accounts import services as accounts
from accounts.models import User
from audit.models import Entry, Name
from policies.models import Effect, Rule
from registry.models import Toolset
from tests.gateway.agent import MODERN
from tests.gateway.conftest import AddRule, Play
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

SAID = ("actor", "agent", "person", "server", "tool", "reason", "details__rule", "to_state")


@sync_to_async
def said() -> list[tuple[Any, ...]]:
    entries = Entry.objects.filter(action__startswith="call.").order_by("id")
    return list(entries.values_list(*SAID))


async def test_every_call_of_a_tool_says_the_same_words_as_the_first(
    play: Play, toolset: Toolset, upstream: Recorder
) -> None:
    agent = play(MODERN)
    for text in ("one", "two", "three"):
        await agent.call("rec.echo", {"text": text})

    first, *others = [words for words in await said() if words[-1] == "running"]

    assert first[:5] == ("scout", "scout", "bob", "rec", "rec.echo")
    assert first[6]
    assert others == [first, first]
    assert await Name.objects.filter(kind="tool", text="rec.echo").acount() == 1


async def test_a_rule_that_was_renamed_is_called_so_from_the_next_call_on(
    play: Play, toolset: Toolset, upstream: Recorder, rule: AddRule
) -> None:
    agent = play(MODERN)
    await agent.call("rec.echo", {"text": "one"})
    await Rule.objects.filter(name="allow *").aupdate(name="everyday")
    # By its return the gateway has read everything anew.
    await rule(Effect.DENY, "rec.erase")
    await agent.call("rec.echo", {"text": "two"})

    before, after = [words for words in await said() if words[-1] == "running"]

    assert (before[6], after[6]) == ("allow *", "everyday")


async def test_a_renamed_person_is_called_by_both_names(
    play: Play, toolset: Toolset, upstream: Recorder, rule: AddRule, bob: User
) -> None:
    agent = play(MODERN)
    await agent.call("rec.echo", {"text": "one"})
    await sync_to_async(accounts.rename)(bob, "robert", by=bob)
    # By its return the gateway has read everything anew.
    await rule(Effect.DENY, "rec.erase")
    await agent.call("rec.echo", {"text": "two"})

    people = [words[2] for words in await said() if words[-1] == "running"]

    assert people == ["bob", "robert"]


@pytest.mark.usefixtures("db")
def test_a_name_is_added_once_and_found_again() -> None:
    with connection.cursor() as cursor:
        numbers = []
        for subject, text in ((1, "scout"), (1, "scout"), (2, "scout"), (1, "x" * 700), (1, "s")):
            cursor.execute("SELECT audit_name_number('agent', %s, %s)", [subject, text])
            numbers.append(cursor.fetchone()[0])

    assert numbers[0] == numbers[1]
    assert len(set(numbers)) == 4
    assert all(number >= 100 for number in numbers)
