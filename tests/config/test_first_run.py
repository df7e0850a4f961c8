"""What a new installation finds of the examples, and keeps as its operators leave it."""

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command

from accounts.models import User
from config import first_run
from core import seal
from examples.servers import example_servers
from notifications import push_keys
from notifications.models import PushKey
from registry import services
from registry.models import Tool, Toolset
from tests.database import manage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def only_reports(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    settings.STDIO_CATALOGUE = tmp_path / "commands.json"
    reports = [one for one in example_servers(tmp_path / "outbox") if one.slug == "reports"]
    monkeypatch.setattr(first_run, "example_servers", lambda outbox: reports)


@pytest.mark.long
def test_the_first_start_makes_the_key_for_push_services_once(
    fresh_database: dict[str, str],
) -> None:
    """Each start prepares the database."""
    found = []
    for _start in range(2):
        manage(["prepare", "--only-migrate"], env=fresh_database)
        with psycopg.connect(fresh_database["DATABASE_URL"]) as link:
            found += link.execute("SELECT sealed_private FROM notifications_pushkey").fetchall()

    first, second = (bytes(sealed) for (sealed,) in found)
    assert first == second
    key = PushKey(sealed_private=first)
    private = seal.unseal(push_keys.PURPOSE, first, place=f"notifications_pushkey|{key.pk}")
    assert len(private) == 32


@pytest.mark.long
def test_what_the_examples_call_read_only_is_confirmed_once(
    only_reports: None, bob: User, settings: Any
) -> None:
    toolset = services.create_toolset("desk", by=bob)
    first_run.add_examples(toolset, bob)
    report = Tool.objects.filter(exposed_name="reports.write_report")
    assert report.get().confirmed_read_only

    report.update(confirmed_read_only=False)
    first_run.add_examples(toolset, bob)

    assert not report.get().confirmed_read_only
    assert json.loads(settings.STDIO_CATALOGUE.read_text()).keys() == {"reports"}


@pytest.mark.long
def test_a_command_adds_the_examples_later(
    only_reports: None, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("add_examples")
    call_command("add_examples")

    assert Toolset.objects.get().servers.get().slug == "reports"
    assert Tool.objects.get(exposed_name="reports.write_report").state == Tool.State.PUBLISHED
    assert capsys.readouterr().out == "The example servers are in the toolset default.\n" * 2


def test_an_example_waits_for_two_people_where_two_publish_what_is_found(
    only_reports: None, bob: User, settings: Any
) -> None:
    settings.RED_NEEDS_TWO = True

    first_run.add_examples(services.create_toolset("desk", by=bob), bob)

    states = dict(Tool.objects.values_list("exposed_name", "state"))
    assert states.pop("reports.write_report") == Tool.State.NEW
    assert set(states.values()) <= {Tool.State.PUBLISHED}
