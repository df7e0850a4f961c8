"""A worker that is killed between sending and writing it down: the same id comes once more."""

from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from audit.models import Entry
from audit.services import SYSTEM, record
from config.embedded.service import wait_until
from config.embedded.valkey import Valkey
from notifications import services
from notifications.models import Delivery, Webhook
from tests.console import scenery
from tests.notifications.receivers import webhook_receiver
from tests.processes import Stack
from tests.services import running

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.long]


def test_a_killed_sender_loses_nothing_and_repeats_one_id(own_stack: Stack) -> None:
    own_stack.env["COUNTERSIGN_UPSTREAM_NETWORKS"] = "127.0.0.0/8"
    with webhook_receiver() as hook:
        webhook = Webhook(name="ledger", url=hook.url)
        hook.secrets = [services.add_webhook(webhook, by=scenery.person("olga"))]
        worker = own_stack.worker
        # Between the receiver's taking it and the sender's hearing so.
        hook.before_answer = worker.process.kill
        record("server.lost", actor=SYSTEM, server="mailer", reason="It is gone.")
        assert wait_until(lambda: worker.process.poll() is not None, seconds=20)
        sent = Delivery.objects.get()
        assert (sent.state, sent.attempts) == ("pending", 1)
        assert list(hook.received) == [str(sent.pk)]

        hook.before_answer = lambda: None
        # The time that the dead sender had is over.
        Delivery.objects.update(next_at=timezone.now() - timedelta(seconds=1))
        worker.start()
        assert wait_until(lambda: Delivery.objects.get().state == "sent", seconds=20)

    assert [message_id for message_id, _body in hook.requests] == [str(sent.pk)] * 2


def time_passes() -> None:
    """Of what dead senders had, and of pauses before further attempts."""
    Delivery.objects.pending().update(next_at=timezone.now() - timedelta(seconds=1))


@pytest.mark.proof
def test_of_a_thousand_events_none_is_lost_and_few_come_twice(
    own_stack: Stack, tmp_path: Path
) -> None:
    """Workers are killed while they send, in the middle of others, and so is the broker."""
    (tmp_path / "broker").mkdir()
    broker = Valkey(tmp_path / "broker")
    own_stack.env |= {"COUNTERSIGN_UPSTREAM_NETWORKS": "127.0.0.0/8", **broker.urls()}
    with webhook_receiver() as hook:
        webhook = Webhook(name="ledger", url=hook.url)
        hook.secrets = [services.add_webhook(webhook, by=scenery.person("olga"))]
        with running(broker, tmp_path / "first.log") as process:
            worker = own_stack.worker
            for n in range(1000):
                record("server.lost", actor=SYSTEM, server=f"s{n}")
            for count in (50, 250, 450, 650):
                hook.before_answer = lambda count=count: (  # type: ignore[misc]
                    worker.process.kill() if len(hook.requests) >= count else None
                )
                assert wait_until(lambda: worker.process.poll() is not None, seconds=60)
                hook.before_answer = lambda: None
                time_passes()
                worker.start()
            process.kill()
        # Without any broker: the sweep finds them.
        reached = len(hook.received)
        assert wait_until(lambda: len(hook.received) >= min(1000, reached + 100), seconds=60)
        with running(broker, tmp_path / "second.log"):
            assert wait_until(lambda: not Delivery.objects.pending().exists(), seconds=120)

    times = Counter(message_id for message_id, _body in hook.requests)
    told = [body["data"]["server"] for body in hook.received.values()]
    assert sorted(told) == sorted(f"s{n}" for n in range(1000))
    assert Delivery.objects.filter(state="sent").count() == 1000
    # However often one was sent, the record has it once.
    recorded = Entry.objects.filter(action="notification.sent")
    assert len({(one.details or {})["delivery"] for one in recorded}) == recorded.count() == 1000
    print(f"{len(hook.requests)} requests; {sum(n > 1 for n in times.values())} came again")  # noqa: T201
    assert max(times.values()) <= 2
