import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from psycopg.conninfo import conninfo_to_dict

from config import children
from config.embedded.postgres import MAINTENANCE, SUPERUSER, Postgres
from config.installation import MAINTAIN_EVERY_S
from tests.config.up import ROOT
from tests.docs.test_settings_table import in_table
from tests.services import running

OURS = ("migrate", "web", "agents", "worker", "beat", "seal", "maintain")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    text = (ROOT / "docker-compose.yml").read_text()
    return dict(yaml.safe_load(text)["services"])


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

    for name in re.findall(r"\$\{(\w*(?:PASSWORD|SECRET)\w*)(?!:\?)\}", text):
        pytest.fail(f"{name} has to be demanded with :?")
    assert not re.search(r"://\w*:(?!\$\{)", text)


def test_only_the_migration_knows_the_owner(services):
    for name in OURS:
        url = services[name]["environment"]["DATABASE_OWNER_URL"]
        assert bool(url) == (name == "migrate"), name


def test_only_the_sealer_has_its_role_and_key_and_no_other_secret(services):
    for name in OURS:
        environment = services[name]["environment"]
        told = "SEAL_PASSWORD" in str(environment), "COUNTERSIGN_SEAL_KEY_FILE" in environment
        assert told == ((name == "seal"),) * 2, name
        assert ("seal:/seal" in services[name]["volumes"]) == (name == "seal"), name
    assert "{SECRET_KEY" not in str(services["seal"]["environment"])
    assert "APP_PASSWORD" not in str(services["seal"]["environment"])


def test_only_the_maintenance_may_remove_anything_and_it_knows_no_other_secret(services):
    for name in OURS:
        told = "MAINTENANCE_PASSWORD" in str(services[name]["environment"])
        assert told == (name == "maintain"), name
    maintain = services["maintain"]
    assert {name for name, value in maintain["environment"].items() if value} == {
        "DATABASE_URL",
        "COUNTERSIGN_SECRET_KEY",
    }
    assert "{" not in maintain["environment"]["COUNTERSIGN_SECRET_KEY"]
    assert (maintain["networks"], maintain["volumes"]) == (["inside"], [])
    script = maintain["command"][-1]
    assert "python manage.py maintain ||" in script
    assert f"sleep {MAINTAIN_EVERY_S:.0f};" in script
    # By name alone.
    grants = services["migrate"]["environment"]["DATABASE_MAINTENANCE_URL"]
    assert conninfo_to_dict(grants)["user"] == MAINTENANCE


def test_the_example_of_an_environment_names_all_that_is_demanded():
    demanded = re.findall(r"\$\{(\w+):\?\}", (ROOT / "docker-compose.yml").read_text())
    given = (ROOT / "docker" / "env.example").read_text()

    assert {name for name in demanded if f"\n{name}=\n" not in given} == set()


def test_every_setting_can_be_given(services):
    # The image's own, the owner's alone, one for development, and one for `up` with its PostgreSQL.
    elsewhere = {"COUNTERSIGN_DATA", "COUNTERSIGN_DEBUG", "DATABASE_SEAL_URL"}
    elsewhere.add("COUNTERSIGN_WAL_ARCHIVE")
    given = {name for one in OURS for name in services[one]["environment"]}

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


def test_the_roles_of_the_container_are_those_of_the_embedded_database(tmp_path: Path):
    data = tmp_path / "data"
    data.mkdir(mode=0o711)
    postgres = Postgres(data, settings={"fsync": "off", "shared_buffers": "16MB"})
    with running(postgres, data / "log"):
        at = {"PGHOST": str(postgres.sockets), "PGPASSWORD": password_of(postgres)}
        names = {"POSTGRES_USER": SUPERUSER, "OWNER_PASSWORD": "own'er", "APP_PASSWORD": "app"}
        names |= {"SEAL_PASSWORD": "seal", "MAINTENANCE_PASSWORD": "maintenance"}
        path = f"{postgres.programs}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(
            ["sh", str(ROOT / "docker" / "roles.sh")],
            env={**at, **names, "PATH": path},
            check=True,
            capture_output=True,
        )

        made = roles(postgres)
        postgres.make_roles()
        assert made == roles(postgres)
        assert MAINTENANCE in [row[0] for row in made]


def roles(postgres: Postgres) -> list[Any]:
    with psycopg.connect(postgres.url(SUPERUSER, "postgres")) as connection:
        return connection.execute(
            "SELECT rolname, rolsuper, rolcreaterole, rolbypassrls, rolconfig FROM pg_roles"
            " WHERE rolname LIKE 'countersign%' ORDER BY rolname"
        ).fetchall()


def password_of(postgres: Postgres) -> str:
    return str(json.loads((postgres.data / "passwords.json").read_text())[SUPERUSER])
