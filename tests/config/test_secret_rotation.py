"""`rotate_secret`: another secret opens everything that the old one sealed, and only that one may
start afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest
from django.apps import apps
from django.db.models import BinaryField

from config.secret_rotation import SEALED
from core.secrets import fingerprint_of
from tests.config.conftest import Manage

FILL = """
import json
from accounts import one_time_codes, services, tokens
from accounts.models import Agent, User
from core import seal
from core.spool import Spool
from django.conf import settings
from notifications import devices, services as notifications, slack_apps
from notifications.subscriptions import PushSubscription
from notifications.models import SlackApp, Webhook
from registry import services as registry
alice = User.objects.create(username="alice")
server = registry.register("mailer", transport="http", url="https://mail.example/mcp", owner=alice,
    by=alice, headers={"X-Key": "s3cret"}, credential="t0ken")
hook = Webhook(name="hook", url="https://hook.example/")
notifications.add_webhook(hook, by=alice)
chat = Webhook(name="chat", format="slack")
notifications.add_webhook(chat, by=alice, address="https://hooks.slack.example/T/B/x")
app = SlackApp(team_id="T1", channel="C1")
slack_apps.save(Webhook(name="app"), app, by=alice, token="xoxb-1", signing_secret="5igning")
one_time_codes.begin(alice)
devices.add(alice, PushSubscription("https://push.example/x", b"point", b"auth"), user_agent="")
agent = Agent.objects.create(name="scout", owner=alice)
spool = Spool(settings.DATA_DIR / "spool", "gone")
spool.keep("reply", b"kept")
from audit.signing import note_secret
note_secret()
print(json.dumps({"token": services.issue_token(agent, by=alice)}))
"""
READ = """
import json, sys
from accounts import one_time_codes, tokens
from accounts.models import CodeApp
from core.spool import Spool
from django.conf import settings
from notifications.models import PushDevice, SlackApp, Webhook
from notifications import push_keys, slack_secrets, subscriptions, webhook_requests
from registry.connections import connection
from registry.models import Server
app = SlackApp.objects.get()
hook, chat = (Webhook.objects.get(name=name) for name in ("hook", "chat"))
spool = Spool(settings.DATA_DIR / "spool", "next")
spooled = [list(folder.read()) for folder in spool.left_behind()]
print(json.dumps({
    "headers": dict(connection(Server.objects.get(), {}).headers),
    "secret": webhook_requests.valid_secrets(hook),
    "address": webhook_requests.address(chat),
    "slack": [slack_secrets.token(app), slack_secrets.signing_secret(app)],
    "device": subscriptions.opened(PushDevice.objects.get()).url,
    "push": push_keys.public_key(),
    "code": one_time_codes.secret(CodeApp.objects.get()),
    "token": tokens.look_up(%r) is not None,
    "spool": [value.decode() for folder in spooled for _name, value in folder],
}))
"""


MORE = """
from accounts.models import User
from notifications import services as notifications
from notifications.models import Webhook
notifications.add_webhook(Webhook(name="more", url="https://hook.example/"),
    by=User.objects.get(username="alice"))
"""
ALTERED = """
from accounts.models import CodeApp, User
CodeApp.objects.create(person=User.objects.create(username="alice"), sealed_secret=b"altered" * 9)
"""


def output(manage: Manage, script: str) -> dict[str, object]:
    done = manage("shell", "-v", "0", "-c", script)
    assert done.returncode == 0, done.stderr
    read: dict[str, object] = json.loads(done.stdout)
    return read


@pytest.mark.long
def test_what_the_old_secret_sealed_opens_with_the_new_one_alone(
    manage: Manage, urls: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    read = READ % output(manage, FILL)["token"]
    before = output(manage, read)
    old = (data / "secret.key").read_text().strip()

    # Running processes know the old one.
    with psycopg.connect(urls["DATABASE_URL"]):
        refused = manage("rotate_secret")
    assert (refused.returncode, "stop it" in refused.stderr) == (1, True)
    assert (data / "secret.key").read_text().strip() == old

    done = manage("rotate_secret")

    assert done.returncode == 0, done.stderr
    assert "9 values are sealed with the new secret" in done.stdout
    assert "1 tokens of agents are recognised by the old secret" in done.stdout
    assert (data / "secret.key.old").read_text().split() == [old]
    assert {file.stat().st_mode & 0o777 for file in data.glob("secret.key*")} == {0o600}
    assert output(manage, read) == before
    with psycopg.connect(urls["DATABASE_URL"]) as link:
        row = link.execute("SELECT details FROM audit_entry WHERE action = 'secret.rotated'")
        (details,) = row.fetchone() or ({},)
    new = fingerprint_of((data / "secret.key").read_text().strip())
    assert details == {"fingerprint": new, "resealed": 9, "unopened": []}

    # Without the old one only tokens, and what is outside of the database, are unknown.
    (data / "secret.key.old").unlink()
    assert output(manage, read) == before | {"token": False, "spool": []}
    # And the old one starts nothing here.
    refused = manage("prepare", "--only-migrate", COUNTERSIGN_SECRET_KEY=old)
    assert "belongs to the secret with the fingerprint " + new in refused.stderr


@pytest.mark.long
def test_one_that_broke_off_is_finished_before_anything_starts(
    manage: Manage, tmp_path: Path
) -> None:
    read = READ % output(manage, FILL)["token"]
    before = output(manage, read)
    backup = tmp_path / "backup.tar"
    manage("pause")
    assert manage("backup", str(backup)).returncode == 0
    begun = "from django.conf import settings; from config import secret as s;"
    manage("shell", "-v", "0", "-c", begun + "s.replace_secret(settings.DATA_DIR)")
    written = (tmp_path / "data" / "secret.key").read_text()

    refused = manage("prepare")
    assert "is still sealed with that: python3 manage.py rotate_secret" in refused.stderr
    done = manage("rotate_secret")

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data" / "secret.key").read_text() == written
    assert output(manage, read) == before
    # A backup from before opens too, and is sealed anew.
    done = manage("restore", str(backup))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "data" / "secret.key").read_text() == written
    assert output(manage, read) == before
    assert manage("prepare", "--only-migrate").returncode == 0


@pytest.mark.long
def test_a_secret_of_the_environment_is_replaced_by_who_keeps_it(
    manage: Manage,
) -> None:
    old, new = {"COUNTERSIGN_SECRET_KEY": "old" * 9}, {"COUNTERSIGN_SECRET_KEY": "new" * 9}
    assert "start Countersign on it once" in manage("rotate_secret", **old).stderr
    assert manage("prepare", "--only-migrate", **old).returncode == 0
    manage("shell", "-v", "0", "-c", ALTERED, **old)
    assert "set another there, and the present one as" in manage("rotate_secret", **old).stderr
    assert "belongs to the secret" in manage("rotate_secret", **new).stderr
    done = manage("rotate_secret", **new, COUNTERSIGN_OLD_SECRET_KEYS=old["COUNTERSIGN_SECRET_KEY"])

    assert done.returncode == 0, done.stderr
    # The key of pushes, which the first start made.
    assert "1 values are sealed" in done.stdout
    assert "No secret opens what is at person " in done.stderr
    assert manage("prepare", "--only-migrate", **new).returncode == 0


@pytest.mark.long
def test_processes_that_know_the_next_secret_go_on_while_everything_is_sealed_with_it(
    manage: Manage, urls: dict[str, str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    read = READ % output(manage, FILL)["token"]
    before = output(manage, read)
    old = (data / "secret.key").read_text().strip()
    with psycopg.connect(urls["DATABASE_URL"]):
        assert manage("rotate_secret", "--announce").returncode == 0
        # It began before: its process knows the old one alone.
        refused = manage("rotate_secret")
        assert (refused.returncode, "--announce" in refused.stderr) == (1, True)
    following = (data / "secret.key.next").read_text().strip()

    # A process that started since then, and what it holds while everything is sealed anew.
    with psycopg.connect(urls["DATABASE_URL"]):
        running = {"COUNTERSIGN_SECRET_KEY": old, "COUNTERSIGN_OLD_SECRET_KEYS": following}
        assert manage("shell", "-v", "0", "-c", read, **running).stdout
        done = manage("rotate_secret")
        assert done.returncode == 0, done.stderr
        assert "9 values are sealed with the new secret" in done.stdout
        assert "rotate_secret --again" in done.stdout
        went_on = manage("shell", "-v", "0", "-c", read, **running)
        assert json.loads(went_on.stdout) == before
        # It still seals with the old one, which the new one reads.
        assert manage("shell", "-v", "0", "-c", MORE, **running).returncode == 0
        again = manage("rotate_secret", "--again")
        assert "10 values are sealed with the present secret" in again.stdout, again.stderr

        # Nothing was announced since: the next secret would be none that it knows.
        assert manage("rotate_secret").returncode == 1

    assert (data / "secret.key").read_text().strip() == following
    assert not (data / "secret.key.next").exists()
    (data / "secret.key.old").unlink()
    assert output(manage, read) == before | {"token": False, "spool": []}
    with psycopg.connect(urls["DATABASE_URL"]) as link:
        rows = link.execute("SELECT action FROM audit_entry WHERE action LIKE 'secret.%'")
        assert [action for (action,) in rows.fetchall()] == [
            "secret.announced",
            "secret.rotated",
            "secret.resealed",
        ]


@pytest.mark.long
def test_a_next_secret_of_the_environment_stands_among_the_old_ones(manage: Manage) -> None:
    old, new = "old" * 9, "new" * 9
    before = {"COUNTERSIGN_SECRET_KEY": old}
    assert manage("prepare", "--only-migrate", **before).returncode == 0
    assert "add the next one" in manage("rotate_secret", "--announce", **before).stderr
    both = {**before, "COUNTERSIGN_OLD_SECRET_KEYS": new}
    assert manage("rotate_secret", "--announce", **both).returncode == 0

    done = manage("rotate_secret", COUNTERSIGN_SECRET_KEY=new, COUNTERSIGN_OLD_SECRET_KEYS=old)

    assert done.returncode == 0, done.stderr
    # Who still has the old one first does not turn everything back.
    assert "belongs to the secret" in manage("rotate_secret", **both).stderr


def test_no_sealed_column_is_forgotten() -> None:
    columns = {
        (model, field.name)
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, BinaryField) and field.name.startswith("sealed")
    }

    assert {(field.model, field.name) for field in SEALED} == columns
