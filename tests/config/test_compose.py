import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from django.core.management import get_commands
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from config import children
from config.embedded.postgres import MAINTENANCE, OWNER, SUPERUSER, Postgres
from config.embedded.wal_archive import BASE_BACKUPS, KEEP_DAYS
from config.installation import MAINTAIN_EVERY_S
from config.secret_files import NAMES
from tests.config.up import ROOT
from tests.docs.test_settings_table import in_table
from tests.services import running

MAKE_SECRETS = ROOT / "docker" / "make-secrets.sh"
OURS = ("migrate", "web", "agents", "worker", "beat", "seal", "maintain", "backup", "examples")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "docker-compose.yml").read_text()))


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    return dict(compose["services"])


def test_compose_runs_what_up_runs(services):
    def plain(argv: list[str]) -> list[str]:
        # `up` also silences a warning to those who run it as root, which nobody is here.
        at = argv.index("-m")
        return ["python", *argv[at:]]

    assert services["web"]["command"] == plain(children.web("0.0.0.0", 8000))
    assert services["agents"]["command"] == plain(children.agents("0.0.0.0", 8001))
    assert services["worker"]["command"] == plain(children.worker())
    assert services["beat"]["command"] == plain(children.beat())
    assert services["seal"]["command"] == plain(children.seal())


def test_the_image_starts_the_console_by_default(services):
    command = re.search(r"^CMD (\[.*\])$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)

    assert command
    assert json.loads(command[1]) == services["web"]["command"]


def test_no_password_stands_in_the_file():
    text = (ROOT / "docker-compose.yml").read_text()

    assert not re.findall(r"\$\{\w*(?:PASSWORD|TOKEN|_URL_).*?\}", text)
    assert not re.search(r"://\w*:(?!\$\{)", text)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Secrets as its script makes them."""
    subprocess.run(["sh", str(MAKE_SECRETS), str(tmp_path / "made")], check=True)
    return tmp_path / "made"


def test_each_secret_is_a_file_that_a_script_makes_once(made: Path) -> None:
    before = {path.name: path.read_text() for path in made.iterdir()}
    (made / "seal_url").unlink()

    subprocess.run(["sh", str(MAKE_SECRETS), str(made)], check=True)

    after = {path.name: path.read_text() for path in made.iterdir()}
    assert {name for name in after if after[name] != before[name]} == {"seal_url"}
    assert len(set(after.values())) == len(after)
    assert made.stat().st_mode & 0o777 == 0o700
    # By the user of whichever image it is mounted into.
    assert {path.stat().st_mode & 0o777 for path in made.iterdir()} == {0o444}
    assert conninfo_to_dict(after["owner_url"].strip())["user"] == OWNER
    assert len(after["secret_key"]) > 50


def test_each_secret_is_mounted_where_a_setting_names_its_file(
    compose: dict[str, Any], made: Path
) -> None:
    files = {name: one["file"] for name, one in compose["secrets"].items()}
    assert files == {path.name: f"${{SECRETS:-./secrets}}/{path.name}" for path in made.iterdir()}
    for name, service in compose["services"].items():
        mounted = {f"/run/secrets/{one}" for one in service.get("secrets", [])}
        named = set(re.findall(r"/run/secrets/\w+", str({**service, "secrets": None})))
        # The script of the roles reads those of all.
        assert (named < mounted) if name == "postgres" else (named == mounted), name
    for name in OURS:
        for setting, path in compose["services"][name]["environment"].items():
            if setting.endswith("_FILE") and str(path).startswith("/run/"):
                assert setting.removesuffix("_FILE") in NAMES


def test_only_the_migration_knows_the_owner(services):
    for name in OURS:
        assert ("owner_url" in services[name]["secrets"]) == (name in ("migrate", "backup")), name


def test_only_the_sealer_has_its_role_and_key_and_no_other_secret(services):
    for name in OURS:
        environment = services[name]["environment"]
        assert ("seal_url" in services[name]["secrets"]) == (name == "seal"), name
        # A backup has the key, and cannot replace it.
        has_key = name in ("seal", "backup")
        assert ("COUNTERSIGN_SEAL_KEY_FILE" in environment) == has_key, name
        assert ("seal:/seal" in services[name]["volumes"]) == (name == "seal"), name
        assert ("seal:/seal:ro" in services[name]["volumes"]) == (name == "backup"), name
    assert services["seal"]["secrets"] == ["seal_url", "metrics_token"]


def test_only_the_maintenance_may_remove_anything_and_it_knows_no_other_secret(services):
    for name in OURS:
        assert ("maintenance_url" in services[name]["secrets"]) == (name == "maintain"), name
    maintain = services["maintain"]
    assert {name for name, value in maintain["environment"].items() if value} == {
        "DATABASE_URL_FILE",
        "COUNTERSIGN_SECRET_KEY",
    }
    assert maintain["secrets"] == ["maintenance_url"]
    assert "{" not in maintain["environment"]["COUNTERSIGN_SECRET_KEY"]
    assert (maintain["networks"], maintain["volumes"]) == (["inside"], [])
    script = maintain["command"][-1]
    assert "python manage.py maintain ||" in script
    assert f"sleep {MAINTAIN_EVERY_S:.0f};" in script
    # By name alone.
    grants = services["migrate"]["environment"]["DATABASE_MAINTENANCE_URL"]
    assert conninfo_to_dict(grants)["user"] == MAINTENANCE


def test_a_backup_is_made_once_a_day_and_the_oldest_are_removed(services):
    backup, example = services["backup"], (ROOT / "docker" / "env.example").read_text()
    script = backup["command"][-1].replace("$$", "$")
    commands = re.findall(r"python manage\.py (.*?)(?: \|\||; fi)", script)

    assert commands == [
        'backup /backups --keep "$BACKUPS_KEEP"',
        "check_restore /backups --scratch /backups",
    ]
    assert "sleep 86400" in script
    subprocess.run(["sh", "-n", "-c", script], check=True)
    assert backup["profiles"] == ["backup"]
    assert "\nCOMPOSE_PROFILES=backup\n" in example


def test_no_log_fills_the_disk(services):
    options = services["web"]["logging"]["options"]
    assert options == {"max-size": "${LOG_SIZE:-20m}", "max-file": "${LOG_FILES:-5}"}
    for name, service in services.items():
        assert service["logging"] == {"driver": "json-file", "options": options}, name


def test_the_examples_are_a_profile_and_are_added_by_a_command(services):
    examples = services["examples"]
    assert (examples["profiles"], examples["restart"]) == (["examples"], "no")
    command, *arguments = examples["command"][2:]
    assert (command in get_commands(), arguments) == (True, [])


def test_what_may_be_several_has_no_name_and_no_single_port(services):
    for name in ("web", "agents", "worker"):
        assert "container_name" not in services[name]
        assert "hostname" not in services[name]
    # A worker's probes are inside its container.
    assert "ports" not in services["worker"]


def test_neither_secrets_nor_environment_get_into_the_image_or_the_repository():
    for name, names in (
        (".dockerignore", {"secrets", ".env"}),
        (".gitignore", {"secrets/", ".env"}),
    ):
        assert names <= set((ROOT / name).read_text().splitlines()), name


def test_every_setting_can_be_given(services):
    # The image's own, the owner's alone, one for development, those for `up` with its PostgreSQL.
    elsewhere = {"COUNTERSIGN_DATA", "COUNTERSIGN_DEBUG", "DATABASE_SEAL_URL"}
    elsewhere |= {"COUNTERSIGN_WAL_ARCHIVE", KEEP_DAYS, BASE_BACKUPS}
    given = {name for one in OURS for name in services[one]["environment"]}
    given |= {name.removesuffix("_FILE") for name in given}

    assert set(in_table()) - given == elsewhere


def test_our_processes_have_no_rights_and_write_to_volumes_alone(services):
    for name in OURS:
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]
        assert services[name]["security_opt"] == ["no-new-privileges:true"]


def test_only_console_and_endpoint_are_published_and_on_loopback(services):
    published = {name: service.get("ports", []) for name, service in services.items()}

    assert {name for name, ports in published.items() if ports} == {"web", "agents"}
    for port in published["web"] + published["agents"]:
        assert port.startswith("${LISTEN:-127.0.0.1}:")


@pytest.mark.parametrize(
    ("name", "setting", "inner"), [("web", "WEB_PORTS", 8000), ("agents", "AGENT_PORTS", 8001)]
)
def test_consoles_and_endpoints_can_be_several_each_at_a_port_of_a_range(
    services, name: str, setting: str, inner: int
) -> None:
    """Of a range of the host's ports each container gets one; a single port only one can have."""
    assert services[name]["ports"] == [
        f"${{LISTEN:-127.0.0.1}}:${{{setting}:-{inner}}}:{inner}",
    ]
    assert re.search(rf"^#{setting}=\d+-\d+$", (ROOT / "docker/env.example").read_text(), re.M)
    assert "container_name" not in services[name]


@pytest.mark.long
def test_the_roles_of_the_container_are_those_of_the_embedded_database(
    tmp_path: Path, made: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o711)
    postgres = Postgres(data, settings={"fsync": "off", "shared_buffers": "16MB"})
    with running(postgres, data / "log"):
        at = {"PGHOST": str(postgres.sockets), "PGPASSWORD": password_of(postgres)}
        names = {"POSTGRES_USER": SUPERUSER, "SECRETS": str(made)}
        path = f"{postgres.programs}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(
            ["sh", str(ROOT / "docker" / "roles.sh")],
            env={**at, **names, "PATH": path},
            check=True,
            capture_output=True,
        )

        for role in ("owner", "app", "seal", "maintenance"):
            given = conninfo_to_dict((made / f"{role}_url").read_text().strip())
            known = {"user": given["user"], "password": given["password"]}
            psycopg.connect(make_conninfo(postgres.url(SUPERUSER), **known)).close()
        found = roles(postgres)
        postgres.make_roles()
        assert found == roles(postgres)
        assert MAINTENANCE in [row[0] for row in found]


def roles(postgres: Postgres) -> list[Any]:
    with psycopg.connect(postgres.url(SUPERUSER, "postgres")) as connection:
        return connection.execute(
            "SELECT rolname, rolsuper, rolcreaterole, rolbypassrls, rolconfig FROM pg_roles"
            " WHERE rolname LIKE 'countersign%' ORDER BY rolname"
        ).fetchall()


def password_of(postgres: Postgres) -> str:
    return str(json.loads((postgres.data / "passwords.json").read_text())[SUPERUSER])
