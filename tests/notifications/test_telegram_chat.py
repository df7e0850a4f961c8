"""A Telegram bot's token is enough: the chat that the bot was added to is found."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from audit.models import Entry
from notifications import telegram
from notifications.models import Delivery, Webhook
from notifications.sending import send_due
from tests.notifications.chats import Telegram, chat_server

pytestmark = pytest.mark.django_db
TOKEN = "1234:AAsecretsecretsecret"
GROUP = -1001234567890
OTHER = -100555


@pytest.fixture
def chat(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Telegram]:
    settings.UPSTREAM_NETWORKS = ["127.0.0.0/8"]
    with chat_server("telegram") as chat:
        assert isinstance(chat, Telegram)
        monkeypatch.setattr(telegram, "API", chat.url.partition("/bot")[0])
        yield chat
        assert chat.faults == []


def added(number: int, title: str, status: str = "member") -> dict[str, Any]:
    """As the bot is told when it is added to a group."""
    about = {"id": number, "title": title, "type": "supergroup"}
    member = {"status": status, "user": {"id": 1234, "is_bot": True}}
    return {"update_id": 1, "my_chat_member": {"chat": about, "new_chat_member": member}}


def save(client: Client, url: str = TOKEN) -> str:
    form = {"name": "team", "format": "telegram", "language": "en", "url": url}
    return client.post(reverse("notifications:add_webhook"), form, follow=True).text


def test_the_group_is_found_and_named_and_gets_the_test_message(
    as_olga: Client, chat: Telegram
) -> None:
    chat.updates = [added(GROUP, "Approvals")]

    page = save(as_olga, f" {TOKEN} ")

    assert f"Its messages go to the chat “Approvals” ({GROUP})." in page
    webhook = Webhook.objects.get()
    as_olga.post(reverse("notifications:test_webhook", args=[webhook.pk]))
    send_due()
    assert Delivery.objects.get().state == Delivery.State.SENT
    assert chat.bodies[0]["chat_id"] == str(GROUP)
    # The token is in no page and no entry.
    assert TOKEN not in page
    assert TOKEN not in str(list(Entry.objects.values_list("details", flat=True)))


def test_of_several_chats_a_person_chooses(as_olga: Client, chat: Telegram) -> None:
    chat.updates = [added(OTHER, "A stranger’s\u202e"), added(GROUP, "Approvals")]

    page = save(as_olga)

    assert "the number of one of the bot’s chats: " in page
    assert f"“Approvals” ({GROUP})" in page
    # Hidden characters are spelled out.
    assert "\u202e" not in page
    assert TOKEN not in page
    assert not Webhook.objects.exists()

    assert "“team” is saved." in save(as_olga, f"{TOKEN} {GROUP}")
    assert Webhook.objects.get().url.endswith("…7890")


def test_chats_that_it_left_and_direct_messages_do_not_count(
    as_olga: Client, chat: Telegram
) -> None:
    direct = {"message": {"chat": {"id": 77, "first_name": "mallory", "type": "private"}}}
    moved = {"message": {"chat": {"id": -5, "title": "Approvals"}, "migrate_to_chat_id": GROUP}}
    left = [added(OTHER, "Former"), added(OTHER, "Former", "kicked")]
    chat.updates = [direct, *left, added(-5, "Approvals"), moved, added(GROUP, "Approvals")]

    assert f"Its messages go to the chat “Approvals” ({GROUP})." in save(as_olga)


@pytest.mark.parametrize("updates", [[], [None, 5, {"message": None}, {"message": {"chat": 1}}]])
def test_a_bot_in_no_chat_says_what_to_do(
    as_olga: Client, chat: Telegram, updates: list[Any]
) -> None:
    chat.updates = updates

    page = save(as_olga)

    assert "The bot was added to no group or channel in the last 24 hours" in page
    assert not Webhook.objects.exists()


def test_a_wrong_token_is_answered_with_telegrams_words(as_olga: Client, chat: Telegram) -> None:
    page = save(as_olga, "1234:AAwrongwrongwrongwrong")

    assert "Telegram answered: Unauthorized." in page
    assert "AAwrong" not in page
    assert not Webhook.objects.exists()


def test_only_operators_have_chats_searched(client: Client, chat: Telegram, alice: Any) -> None:
    chat.updates = [added(GROUP, "Approvals")]
    client.force_login(alice)

    assert "Access denied" in save(client)
    assert not Webhook.objects.exists()
