"""A worker that is killed between sending and writing it down: the same id comes once more."""

import random
import subprocess
import threading
from collections import Counter
from datetime import timedelta
from itertools import product
from pathlib import Path

import pytest
from django.utils import timezone

from audit.models import Entry
from audit.services import SYSTEM, record
from config.embedded.service import wait_until
from config.embedded.valkey import Valkey
from core import die_with_parent
from notifications import services
from notifications.models import Delivery, Webhook
from tests.console import scenery
from tests.notifications.receivers import Hook, webhook_receiver
from tests.processes import Running, Stack

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


Process = subprocess.Popen[bytes]


class Broker:
    """A Valkey of the test's own, which keeps its port and its file when it is killed."""

    def __init__(self, home: Path) -> None:
        home.mkdir()
        self.valkey, self.log = Valkey(home), home / "broker.log"
        self.valkey.prepare()
        self.start()

    def start(self) -> None:
        argv, env = self.valkey.command()
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                argv,
                env=env,
                stdin=subprocess.DEVNULL,
                pass_fds=die_with_parent.lifelines(),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        assert wait_until(lambda: self.valkey.is_ready(self.process.pid), seconds=30)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Killing:
    """Rounds of events in which somebody is killed, and started again afterwards."""

    def __init__(self, worker: Running, broker: Broker, hook: Hook) -> None:
        self.worker, self.broker, self.hook = worker, broker, hook
        self.chance = random.Random(18)
        self.made = 0
        # Deliveries on their way when their sender died, by id.
        self.hit: Counter[str] = Counter()
        self.kills: Counter[str] = Counter()

    def go_round(self, place: str, victims: str) -> None:
        for _n in range(EACH):
            record("server.lost", actor=SYSTEM, server=f"s{self.made}")
            self.made += 1
        named = {"worker": self.worker.process, "broker": self.broker.process}
        struck = [process for name, process in named.items() if name in victims]
        PLACES[place](self, struck)
        for process in struck:
            process.wait(60)
        self.kills[f"{victims}, {place}"] += 1
        self._start_again(victims)

    def at_any_time(self, struck: list[Process]) -> None:
        """Anywhere in what a round takes: entries are read each second, and sent at once."""
        threading.Event().wait(self.chance.uniform(0, 1.5))
        for process in struck:
            process.kill()

    def before_the_answer(self, struck: list[Process]) -> None:
        self._at("before_answer", struck)

    def after_the_answer(self, struck: list[Process]) -> None:
        self._at("after_answer", struck)

    def _at(self, place: str, struck: list[Process]) -> None:
        """Kills in the receiver's own thread, at one of the requests of this round."""
        until = len(self.hook.requests) + self.chance.randrange(EACH // 2)

        def strike() -> None:
            if len(self.hook.requests) > until:
                for process in struck:
                    process.kill()

        setattr(self.hook, place, strike)
        assert wait_until(lambda: all(one.poll() is not None for one in struck), seconds=60)
        setattr(self.hook, place, lambda: None)

    def _start_again(self, victims: str) -> None:
        if "broker" in victims:
            self.broker.start()
        if "worker" not in victims:
            return
        claimed = Delivery.objects.pending().filter(attempts__gt=0)
        left = [str(pk) for pk in claimed.values_list("pk", flat=True)]
        self.hit.update(left)
        time_passes()
        self.worker.start()
        # Each kill hits others: nobody is sent for the third time.
        known = Delivery.objects.pending().filter(pk__in=left)
        assert wait_until(lambda: not known.exists(), seconds=120)


PLACES = {
    "at any time": Killing.at_any_time,
    "before the answer": Killing.before_the_answer,
    "after the answer": Killing.after_the_answer,
}
# Of each twelve: 48 kills, 1,008 events.
EACH, ROUNDS = 21, 4
VICTIMS = ("worker", "worker", "broker", "worker and broker")


@pytest.mark.proof
def test_of_a_thousand_events_none_is_lost_and_few_come_twice(
    own_stack: Stack, tmp_path: Path
) -> None:
    """Workers and the broker are killed at any moment: while entries are read, deliveries made,
    claimed, sent, answered and written down."""
    broker = Broker(tmp_path / "broker")
    own_stack.env |= {"COUNTERSIGN_UPSTREAM_NETWORKS": "127.0.0.0/8", **broker.valkey.urls()}
    with webhook_receiver() as hook:
        webhook = Webhook(name="ledger", url=hook.url)
        hook.secrets = [services.add_webhook(webhook, by=scenery.person("olga"))]
        killing = Killing(own_stack.worker, broker, hook)
        try:
            for victims, place in product(VICTIMS, PLACES):
                for _time in range(ROUNDS):
                    killing.go_round(place, victims)
            assert wait_until(lambda: len(hook.received) >= killing.made, seconds=120)
            assert wait_until(lambda: not Delivery.objects.pending().exists(), seconds=120)
        finally:
            own_stack.end_worker()
            broker.kill()

    times = Counter(message_id for message_id, _body in hook.requests)
    again = {message_id for message_id, count in times.items() if count > 1}
    print(  # noqa: T201
        f"{killing.made} events, {killing.kills.total()} kills {dict(killing.kills)}: "
        f"{len(hook.requests)} requests; {len(killing.hit)} were on their way when their sender "
        f"died, {len(again)} came again"
    )
    told = [body["data"]["server"] for body in hook.received.values()]
    assert sorted(told) == sorted(f"s{n}" for n in range(killing.made))
    assert Delivery.objects.filter(state="sent").count() == killing.made >= 1000
    # However often one was sent, the record has it once.
    recorded = Entry.objects.filter(action="notification.sent")
    ids = {(one.details or {})["delivery"] for one in recorded}
    assert len(ids) == recorded.count() == killing.made
    assert max(times.values()) == max(killing.hit.values()) + 1 == 2
    assert again <= set(killing.hit)
