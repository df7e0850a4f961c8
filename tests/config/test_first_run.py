"""What a new installation finds of the examples, and keeps as its operators leave it."""

import json
from pathlib import Path
from typing import Any

import pytest

from accounts.models import User
from config import first_run
from examples.servers import example_servers
from registry import services
from registry.models import Tool

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def only_reports(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    settings.STDIO_CATALOGUE = tmp_path / "commands.json"
    reports = [one for one in example_servers(tmp_path / "outbox") if one.slug == "reports"]
    monkeypatch.setattr(first_run, "example_servers", lambda outbox: reports)


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


def test_an_example_waits_for_two_people_where_two_publish_what_is_red(
    only_reports: None, bob: User, settings: Any
) -> None:
    settings.RED_NEEDS_TWO = True

    first_run.add_examples(services.create_toolset("desk", by=bob), bob)

    states = dict(Tool.objects.values_list("exposed_name", "state"))
    assert states.pop("reports.write_report") == Tool.State.NEW
    assert set(states.values()) <= {Tool.State.PUBLISHED}
