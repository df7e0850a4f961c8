"""Files for deploying: they start what `up` starts, with settings that exist."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.conf import settings
from django.core.management import load_command_class

from config import children, sbom, secret_files
from tests.config.up import ROOT
from tests.docs.test_settings_table import in_table

KUBERNETES, SYSTEMD = ROOT / "deploy" / "kubernetes", ROOT / "deploy" / "systemd"
STARTED = {
    "web": children.web("0.0.0.0", 8000),
    "agents": children.agents("0.0.0.0", 8001),
    "worker": children.worker(),
    "beat": children.beat(),
    "seal": children.seal(),
}
# Daily and weekly.
BACKUPS = ("backup", "check-restore")
PROBED = {"web": 8000, "agents": 8001, "worker": 9100, "beat": 9101, "seal": 9102}


def manifests() -> list[dict[str, Any]]:
    listed = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["resources"]
    assert set(listed) == {path.name for path in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml"}
    return [one for name in listed for one in yaml.safe_load_all((KUBERNETES / name).read_text())]


def pods() -> dict[str, dict[str, Any]]:
    found = {}
    for one in manifests():
        spec = one["spec"].get("jobTemplate", one)["spec"]
        if "template" in spec:
            found[one["metadata"]["name"]] = spec["template"]["spec"]
    return found


def secret_keys(pod: dict[str, Any]) -> dict[str, set[str]]:
    """By secret, those that a pod knows: as files, and a few as variables."""
    found: dict[str, set[str]] = {}
    for volume in pod["volumes"]:
        if secret := volume.get("secret"):
            keys = {item["key"] for item in secret["items"]}
            found.setdefault(secret["secretName"], set()).update(keys)
    for variable in pod["containers"][0]["env"]:
        if reference := variable.get("valueFrom", {}).get("secretKeyRef"):
            found.setdefault(reference["name"], set()).add(reference["key"])
    return found


def kustomization() -> dict[str, Any]:
    return dict(yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text()))


def pod_labels() -> dict[str, dict[str, str]]:
    """As kustomize writes them."""
    (added,) = kustomization()["labels"]
    common = added["pairs"] if added.get("includeTemplates") else {}
    templates = {
        one["metadata"]["name"]: one["spec"].get("jobTemplate", one)["spec"]["template"]
        for one in manifests()
        if one["kind"] in ("Deployment", "Job", "CronJob")
    }
    return {name: {**one["metadata"]["labels"], **common} for name, one in templates.items()}


def selected(selector: dict[str, Any]) -> set[str]:
    """The names of those whose pods a label selector selects."""
    wanted = {key: [value] for key, value in selector.get("matchLabels", {}).items()}
    for one in selector.get("matchExpressions", []):
        assert one["operator"] == "In"
        wanted[one["key"]] = one["values"]
    return {
        name
        for name, labels in pod_labels().items()
        if all(labels.get(key) in values for key, values in wanted.items())
    }


def plain(argv: list[str]) -> list[str]:
    """Without what `up` adds for those who run it as root."""
    return argv[argv.index("-m") :]


@pytest.mark.long
@pytest.mark.parametrize("version", ["1.30", kubernetes_validate.latest_version()])
def test_manifests_are_valid(version: str) -> None:
    for one in manifests():
        kubernetes_validate.validate(one, version, strict=True)


def test_kubernetes_starts_what_up_starts() -> None:
    found = pods()

    assert found.keys() == {*STARTED, "migrate", "maintain", *BACKUPS}
    for name, argv in STARTED.items():
        (container,) = found[name]["containers"]
        assert plain(container["command"]) == plain(argv)
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[probe]["httpGet"]["port"] == PROBED[name]
            assert container[probe]["timeoutSeconds"] == 3


def test_containers_have_no_rights_and_secrets_only_where_they_are_needed() -> None:
    secrets: dict[str, set[str]] = {}
    for name, pod in pods().items():
        (container,) = pod["containers"]
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"]
        assert not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        for secret in secret_keys(pod):
            secrets.setdefault(secret, set()).add(name)
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert ("seal" in volumes) == (name in ("seal", "backup"))
    assert secrets.pop("countersign") == {*STARTED, "migrate", *BACKUPS}
    assert secrets == {
        "countersign-owner": {"migrate", *BACKUPS},
        "countersign-seal": {"seal"},
        "countersign-maintenance": {"maintain"},
    }


def test_every_pod_is_closed_and_only_console_and_endpoint_are_published() -> None:
    policies = {
        one["metadata"]["name"]: one["spec"]
        for one in manifests()
        if one["kind"] == "NetworkPolicy"
    }

    assert selected(policies["countersign"]["podSelector"]) == pods().keys()
    assert selected(policies["published"]["podSelector"]) == {"web", "agents"}


@pytest.mark.long
def test_deployments_services_and_budgets_select_their_own_pods() -> None:
    for one in manifests():
        if one["kind"] in ("Deployment", "PodDisruptionBudget"):
            assert selected(one["spec"]["selector"]) == {one["metadata"]["name"]}
        if one["kind"] == "Service":
            assert selected({"matchLabels": one["spec"]["selector"]}) == {one["metadata"]["name"]}


def test_the_instructions_create_every_secret_with_the_keys_that_pods_demand() -> None:
    written = (KUBERNETES / "kustomization.yaml").read_text()
    demanded: dict[str, set[str]] = {}
    for pod in pods().values():
        for secret, keys in secret_keys(pod).items():
            demanded.setdefault(secret, set()).update(keys)

    created = re.findall(
        r"create secret generic (\S+) --from-env-file=\S+\.env$", written, re.MULTILINE
    )
    assert set(created) == demanded.keys()
    for language in ("en", "zh-hans"):
        page = (ROOT / "docs" / language / "guides" / "containers.md").read_text()
        for name, keys in demanded.items():
            row = re.search(rf"^\| `{name}` \| (.*?) \|", page, re.MULTILINE)
            assert row
            assert keys == set(re.findall(r"`(\w+)`", row[1])), name


def test_secrets_are_files_that_a_pod_mounts_and_the_settings_read() -> None:
    for name, pod in pods().items():
        (container,) = pod["containers"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        files = {
            f"{mount['mountPath']}/{item['path']}"
            for mount in container["volumeMounts"]
            for item in volumes[mount["name"]].get("secret", {}).get("items", ())
        }
        given = {
            variable["name"].removesuffix("_FILE"): variable["value"]
            for variable in container["env"]
            if variable.get("value", "").startswith("/run/secrets/")
        }

        assert set(given.values()) == files, name
        assert given.keys() <= set(secret_files.NAMES), name
        # A file has to be there, and this one may be left out.
        assert {v["name"] for v in container["env"] if "valueFrom" in v} <= {"EMAIL_URL"}, name


def test_settings_in_manifests_exist() -> None:
    literals = kustomization()["configMapGenerator"][0]["literals"]
    named = {one.partition("=")[0] for one in literals}
    named |= {v["name"] for pod in pods().values() for c in pod["containers"] for v in c["env"]}
    known = in_table().keys()

    assert {one for one in named if one.removesuffix("_FILE") not in known} <= known


def unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[method-assign,assignment]
    parser.read(path)
    return parser


def test_systemd_starts_what_up_starts() -> None:
    for name, argv in STARTED.items():
        service = unit(SYSTEMD / f"countersign-{name}.service")["Service"]
        started = shlex.split(service["ExecStart"])
        expected = [one.replace("0.0.0.0", "127.0.0.1") for one in plain(argv)]
        assert plain(started) == expected
        assert (service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "strict")
    files = {path.name for path in SYSTEMD.iterdir()}
    assert files == {
        "countersign.target",
        "countersign-maintain.timer",
        *(f"countersign-{name}.service" for name in (*STARTED, "migrate", "maintain", *BACKUPS)),
        *(f"countersign-{name}.timer" for name in BACKUPS),
    }


def services() -> dict[str, configparser.SectionProxy]:
    return {path.stem: unit(path)["Service"] for path in SYSTEMD.glob("*.service")}


def test_the_sealers_key_belongs_to_a_user_and_a_directory_of_its_own() -> None:
    found = services()
    seal = found.pop("countersign-seal")
    (key,) = re.findall(r"COUNTERSIGN_SEAL_KEY_FILE=(\S+)", seal["Environment"])

    assert Path(key).parent == Path("/var/lib") / seal["StateDirectory"]
    assert seal["StateDirectoryMode"] == "0700"
    for backup in BACKUPS:
        assert "User" not in found.pop(f"countersign-{backup}")
    for name, service in found.items():
        assert service["User"] != seal["User"], name
        assert service["StateDirectory"] != seal["StateDirectory"], name
        # It shares the data directory by its group: workers read the checkpoints that it writes.
        assert service["Group"] == seal["Group"], name
        assert service["StateDirectoryMode"] == "0770", name
        assert f"/var/lib/{service['StateDirectory']}" == seal["ReadWritePaths"], name
    assert seal["UMask"] == "0027"


@pytest.mark.parametrize("name", BACKUPS)
def test_backups_are_made_and_checked_by_timers(name: str) -> None:
    """With Kubernetes and systemd by the same command, but for the folder."""
    (scheduled,) = pods()[name]["containers"]
    service = unit(SYSTEMD / f"countersign-{name}.service")["Service"]
    started = service["ExecStart"].replace("/var/backups/countersign", "/backups").split()

    assert started[1:] == scheduled["command"][1:]
    assert "/var/backups/countersign" in service["ReadWritePaths"]
    command = load_command_class("config", scheduled["command"][2])
    command.create_parser("manage.py", name).parse_args(scheduled["command"][3:])
    assert unit(SYSTEMD / f"countersign-{name}.timer")["Timer"]["OnCalendar"]


def test_a_stop_reaches_the_process_alone_which_ends_its_tool_servers_after_their_calls() -> None:
    for name, service in services().items():
        assert service["KillMode"] == "mixed", name
        assert int(service["TimeoutStopSec"]) > settings.STOP_WITHIN_S, name


def test_the_image_has_no_tests_and_has_a_bill_of_materials() -> None:
    ignored = (ROOT / ".dockerignore").read_text().split()
    built = (ROOT / "Dockerfile").read_text()

    assert {"tests", "benchmarks", ".git", "var"} <= set(ignored)
    assert "python -m config.sbom > /app/sbom.json" in built
    assert "requirements/product.txt" in built
    assert "test.txt" not in built


def test_the_bill_of_materials_has_each_locked_package_with_its_licence() -> None:
    argv = [sys.executable, "-m", "config.sbom"]
    written = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = json.loads(written)

    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.6")
    assert found == sbom.bill()
    listed = [one["name"] for one in found["components"]]
    names = set(listed)
    assert len(listed) == len(names)
    assert {"django", "psycopg", "cryptography", "zstandard"} <= names
    assert "pytest" not in names
    unknown = [one["name"] for one in found["components"] if "unknown" in str(one["licenses"])]
    assert unknown == []
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", found["serialNumber"])
