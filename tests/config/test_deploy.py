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

from config import children, sbom
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


def plain(argv: list[str]) -> list[str]:
    """Without what `up` adds for those who run it as root."""
    return argv[argv.index("-m") :]


@pytest.mark.parametrize("version", ["1.30", kubernetes_validate.latest_version()])
def test_manifests_are_valid(version: str) -> None:
    for one in manifests():
        kubernetes_validate.validate(one, version, strict=True)


def test_kubernetes_starts_what_up_starts() -> None:
    found = pods()

    assert found.keys() == {*STARTED, "migrate", "maintain"}
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
        for variable in container["env"]:
            if reference := variable.get("valueFrom"):
                secrets.setdefault(reference["secretKeyRef"]["name"], set()).add(name)
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert ("seal" in volumes) == (name == "seal")
    assert secrets.pop("countersign") == {*STARTED, "migrate"}
    assert secrets == {
        "countersign-owner": {"migrate"},
        "countersign-seal": {"seal"},
        "countersign-maintenance": {"maintain"},
    }


def test_settings_in_manifests_exist() -> None:
    generated = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())
    literals = generated["configMapGenerator"][0]["literals"]
    named = {one.partition("=")[0] for one in literals}
    named |= {v["name"] for pod in pods().values() for c in pod["containers"] for v in c["env"]}

    assert named <= in_table().keys()


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
        *(f"countersign-{name}.service" for name in (*STARTED, "migrate", "maintain")),
    }


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
    names = {one["name"] for one in found["components"]}
    assert {"django", "psycopg", "cryptography", "zstandard"} <= names
    assert "pytest" not in names
    unknown = [one["name"] for one in found["components"] if "unknown" in str(one["licenses"])]
    assert unknown == []
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", found["serialNumber"])
