"""What is forgotten is gone from rows, pages, exports and search, and every proof still holds."""

import json
import os
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from accounts.roles import Role
from approvals.record_checks import unrecorded
from audit.bodies import forgotten_details, read, readable
from audit.exporting import proof
from audit.leaves import places
from audit.live import check_live
from audit.models import Checkpoint, Entry, EntryRow, Name
from audit.services import SYSTEM, of, record
from audit.signing import keys
from audit.tree import Tree
from audit.verify import FORGOTTEN, check_export
from config.installation import APP_URL
from tests.approvals.test_quorum import TWO, hold, say
from tests.audit.test_seal import outsider
from tests.console import scenery
from tests.database import Databases, manage
from tests.sealing import seal_all

pytestmark = [pytest.mark.alone, pytest.mark.django_db(transaction=True)]

WHY = "Asked for by the person."


@pytest.fixture
def held(scout: Agent, olga: User) -> Any:
    tool = scenery.server("mailer", olga, scenery.SEND).tools.get()
    return hold(scout, scenery.offered(scout, tool), TWO)


@pytest.fixture
def ada(held: Any) -> User:
    """Who decided and wrote, and has left."""
    made = scenery.person("ada", Role.APPROVER)
    say(held, made, reason="Fine with Ada.")
    record("note.made", actor=of(made), reason="Talk to Ada, not to adam.", person="ada", number=1)
    record("note.made", actor=SYSTEM, reason="adamant", number=2)
    seal_all()
    User.objects.filter(pk=made.pk).update(is_active=False)
    return made


def forget(*arguments: str) -> str:
    """As the host's administrator: in a process that is the database's owner."""
    owner = os.environ["DATABASE_OWNER_URL"]
    env = {"DATABASE_URL": owner, "DATABASE_OWNER_URL": owner, APP_URL: os.environ["DATABASE_URL"]}
    return manage(["audit_forget", *arguments, "--reason", WHY], env=env)


def everything(databases: Databases) -> str:
    """All that the record's tables hold, in words."""
    with databases.superuser(os.environ) as link:
        rows = link.execute(
            "SELECT audit_name::text FROM audit_name"
            " UNION ALL SELECT details::text FROM audit_entryrow WHERE details IS NOT NULL"
        ).fetchall()
    return "\n".join(text for (text,) in rows)


def test_without_yes_it_only_shows(ada: User, databases: Databases) -> None:
    before = everything(databases)

    said = forget("--person", "ada")

    assert "person: ada\nreason: Fine with Ada." in said
    assert "reason: Talk to Ada, not to adam." in said
    assert "1 person, 2 reason, 1 details would be forgotten." in said
    assert "adamant" not in said
    assert everything(databases) == before


def test_a_person_is_forgotten_and_every_proof_holds(
    ada: User, databases: Databases, tmp_path: Path, client: Client, alice: User
) -> None:
    anchor = Checkpoint.objects.latest("pk").note
    note = Entry.objects.get(details__number=1)

    said = forget("--person", "ada", "--yes")
    seal_all()

    assert said == "1 person, 2 reason, 1 details forgotten.\n"
    # As a word: digests may hold its letters.
    assert not re.search(r"\bada\b", everything(databases), re.IGNORECASE)
    kept = Entry.objects.get(pk=note.pk)
    assert (kept.actor, kept.actor_id, kept.reason) == ("(forgotten)", None, "(forgotten)")
    assert kept.details == {"forgotten": True}
    # Online, with an anchor of before, and by a stranger.
    found = check_live([anchor])
    assert (found.wrong, found.anchors) == ([], 1)
    assert found.notes == [
        "4 names or details were forgotten: the entries that had them hold, and do not say them."
    ]
    done = outsider(tmp_path, anchor)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("4 names or details were forgotten")
    # Votes beside the record are compared all the same.
    assert unrecorded() == []
    # What kinds, and not what.
    declared = Entry.objects.filter(action=FORGOTTEN).order_by("id")
    assert [entry.details["kinds"] for entry in declared] == [
        {"person": 1, "reason": 2},
        {"details": 1},
    ]
    assert {entry.reason for entry in declared} == {WHY}
    # Pages say so, and nobody finds the name.
    client.force_login(scenery.person("rita", Role.AUDITOR))
    page = client.get(reverse("audit:detail", args=[note.pk]))
    assert "(forgotten)" in page.text
    assert "Talk to" not in page.text
    listed = client.get(reverse("audit:list"), {"person": "ada"}).text
    assert reverse("audit:detail", args=[note.pk]) not in listed


def test_a_proof_of_one_entry_holds_as_well(ada: User, tmp_path: Path) -> None:
    note = Entry.objects.get(details__number=1).pk
    forget("--entry", str(note), "--yes")
    seal_all()
    checkpoint = Checkpoint.objects.latest("pk")

    line = proof(read(note), places([note])[note], Tree(checkpoint.size))
    lines = [{"checkpoint": checkpoint.note}, line]

    assert line["entry"]["details"] == {"forgotten": True}
    assert check_export(map(json.dumps, lines), keys()).wrong == []
    # Nor can anybody say anything in its place.
    for said in ({}, {"number": 1}, {"forgotten": True, "number": 1}):
        line["entry"]["details"] = said
        assert check_export(map(json.dumps, lines), keys()).wrong != []


@pytest.mark.parametrize(
    ("only", "reason", "details"),
    [
        ("reason", "(forgotten)", {"person": "ada", "number": 1}),
        ("details", "Talk to Ada, not to adam.", {"forgotten": True}),
    ],
)
def test_one_field_of_an_entry_is_forgotten(
    ada: User, only: str, reason: str, details: dict[str, Any]
) -> None:
    note = Entry.objects.get(details__number=1).pk

    forget("--entry", str(note), "--only", only, "--yes")
    seal_all()

    entry = Entry.objects.get(pk=note)
    assert (entry.actor, entry.reason, entry.details) == ("ada", reason, details)
    assert check_live().wrong == []


def test_digests_beside_forgotten_details_are_still_proved(
    held: Any, databases: Databases, tmp_path: Path
) -> None:
    seal_all()
    opened = EntryRow.objects.get(call_id=held, seq=1)
    assert opened.details
    assert opened.arguments

    forget("--entry", str(opened.pk), "--only", "details", "--yes")
    seal_all()

    assert check_live().wrong == []
    assert outsider(tmp_path).returncode == 0
    with databases.superuser(os.environ) as link:
        link.execute("SET session_replication_role = replica")
        link.execute(
            "UPDATE audit_entryrow SET arguments = sha256('other') WHERE id = %s", [opened.pk]
        )
    assert f"Entry {opened.pk} was changed" in check_live().wrong[0]
    assert outsider(tmp_path).returncode == 1


def test_what_was_written_about_a_call_is_forgotten(held: Any, alice: User) -> None:
    say(held, alice, reason="I know what this is about.")
    record("approval.commented", actor=of(alice), call_id=held, text="Words of mine.")

    assert "reason: I know what this is about." in forget("--call", str(held))
    forget("--call", str(held), "--yes")
    seal_all()

    entries = Entry.objects.of_call(held)
    assert not entries.filter(reason="I know what this is about.").exists()
    assert entries.get(action="approval.commented").details == {"forgotten": True}
    # What other calls say too stays: it tells nothing of this one.
    assert entries.get(seq=1).actor == "scout"
    assert check_live().wrong == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--person", "bob"], "bob still signs in: disable the account first."),
        (["--agent", "scout"], "scout still calls: disable the agent first."),
        (["--person", "nobody"], "The record says nothing of it."),
        (["--entry", "7"], "The record says nothing of it."),
    ],
)
def test_what_cannot_be_forgotten_is_said(held: Any, arguments: list[str], said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        forget(*arguments, "--yes")


RESTORED = (
    "INSERT INTO audit_entry (action, actor_kind, actor, details)"
    " VALUES ('record.restored', 'system', 'x', '{\"ends\": [\"… +ada/ …\"]}') RETURNING id"
)


def test_what_the_record_says_of_itself_is_never_forgotten(ada: User) -> None:
    """Checkpoints in it are text in which any letters may stand."""
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as owner:
        (restored,) = owner.execute(RESTORED).fetchone() or (0,)

    assert f"details of entry {restored}" not in forget("--person", "ada")
    with pytest.raises(SystemExit, match="The record says nothing of it"):
        forget("--entry", str(restored), "--yes")


def test_entries_of_the_first_format_keep_their_words(ada: User, databases: Databases) -> None:
    with databases.superuser(os.environ) as link:
        link.execute("SET session_replication_role = replica")
        link.execute("UPDATE audit_entryrow SET format = 1 WHERE details ? 'number'")

    said = forget("--person", "ada", "--yes")

    assert said.endswith("; 3 stay: entries of the first format are sealed with their words.\n")
    assert Name.objects.filter(kind="person", text="ada").exists()


REFUSED = (psycopg.errors.InsufficientPrivilege, psycopg.errors.RaiseException)
# As whoever has a way into the database, without the command.
EMPTY = "UPDATE audit_name SET salt = NULL, subject = NULL, text = '' WHERE text = 'ada'"
SAID = (
    "INSERT INTO audit_entry (action, actor_kind, actor, details)"
    " SELECT 'record.forgotten', 'system', 'x',"
    " jsonb_build_object('commitments', jsonb_build_array(encode(commitment, 'hex')))"
    " FROM audit_name WHERE text = 'ada'"
)


@pytest.mark.parametrize("role", ["app", "seal"])
def test_the_application_and_the_sealer_forget_nothing(
    ada: User, databases: Databases, role: str
) -> None:
    """Nor with an entry that says so."""
    seal = databases.seal_url(os.environ)
    with psycopg.connect(os.environ["DATABASE_URL"] if role == "app" else seal) as link:
        for sql in (SAID, EMPTY, "UPDATE audit_entryrow SET salt = NULL, details = '{}'"):
            with pytest.raises(REFUSED), link.transaction():
                link.execute(sql)


def test_the_owner_forgets_nothing_without_its_entry_and_changes_nothing_else(ada: User) -> None:
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as owner:
        with pytest.raises(psycopg.errors.RaiseException, match="without an entry"):
            owner.execute(EMPTY)
        owner.rollback()
        owner.execute(SAID)
        for sql in (
            "UPDATE audit_name SET text = 'eve' WHERE text = 'ada'",
            "UPDATE audit_name SET salt = NULL, subject = NULL, text = 'eve' WHERE text = 'ada'",
            "UPDATE audit_name SET salt = NULL, text = '' WHERE text = 'call.running'",
            "UPDATE audit_entryrow SET details = '{}'",
            "UPDATE audit_entryrow SET salt = NULL",
            "UPDATE audit_entryrow SET salt = NULL, details = '{}', at = now()",
        ):
            refused = pytest.raises(psycopg.errors.RaiseException, match="only forgotten")
            with refused, owner.transaction():
                owner.execute(sql)


def test_what_is_emptied_without_an_entry_is_named(
    ada: User, databases: Databases, tmp_path: Path
) -> None:
    note = Entry.objects.get(details__number=1).pk
    kept = forgotten_details(read(note))
    with databases.superuser(os.environ) as link:
        link.execute("SET session_replication_role = replica")
        link.execute(EMPTY)
        link.execute(
            "UPDATE audit_entryrow SET salt = NULL, details = %s WHERE id = %s",
            [json.dumps(kept), note],
        )

    name = Name.objects.get(kind="person", salt=None)
    assert check_live().wrong == [
        f"Name {name.pk} was forgotten, and no entry says so.",
        f"What entry {note} said in its details was forgotten, and no entry says so.",
    ]
    done = outsider(tmp_path)
    assert done.returncode == 1
    assert "says less than was sealed, and no entry says that it was forgotten" in done.stderr


def test_a_new_name_of_nobody_is_no_forgotten_one(ada: User) -> None:
    forget("--person", "ada", "--yes")
    with connection.cursor() as cursor:
        cursor.execute("SELECT audit_name_number('person', NULL, '')")
        number = cursor.fetchone()[0]

    assert Name.objects.get(pk=number).salt is not None


def test_exports_for_people_say_forgotten(ada: User, client: Client) -> None:
    note = Entry.objects.get(details__number=1).pk
    forget("--entry", str(note), "--yes")

    said = readable(read(note))

    assert (said["actor"], said["reason"]) == ("ada", "(forgotten)")
    assert said["details"] == {"forgotten": True}


def legal_hold(*arguments: str) -> str:
    owner = os.environ["DATABASE_OWNER_URL"]
    env = {"DATABASE_URL": owner, "DATABASE_OWNER_URL": owner, APP_URL: os.environ["DATABASE_URL"]}
    return manage(["legal_hold", *arguments], env=env)


@pytest.mark.parametrize("what", ["--everything", "--person", "--agent", "--call"])
def test_what_is_under_legal_hold_is_not_forgotten_until_it_is_lifted(
    ada: User, held: Any, what: str
) -> None:
    """Holds on what the person did for a call cover the person as well."""
    given = {"--everything": [], "--person": ["ada"], "--agent": ["scout"], "--call": [str(held)]}
    placed = legal_hold(what, *given[what], "--reason", "A dispute.")
    number = re.findall(r"[0-9]+", placed)[0]

    with pytest.raises(SystemExit, match=f"is under legal hold {number}: {what[2:]}"):
        forget("--person", "ada", "--yes")
    assert Name.objects.filter(kind="person", text="ada").exists()
    assert "A dispute." in legal_hold()
    assert legal_hold("--lift", number, "--reason", "It ended.") == f"Hold {number} is lifted.\n"
    assert legal_hold() == ""

    forget("--person", "ada", "--yes")
    seal_all()
    assert not Name.objects.filter(kind="person", text="ada").exists()
    assert check_live().wrong == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--everything"], "Give a --reason"),
        (["--person", "nobody", "--reason", "x"], "names no person nobody"),
        (["--lift", "7", "--reason", "x"], "No hold 7 is in force"),
    ],
)
def test_a_hold_that_cannot_be_is_said(held: Any, arguments: list[str], said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        legal_hold(*arguments)
