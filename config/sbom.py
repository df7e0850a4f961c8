"""A bill of materials (CycloneDX 1.6) with licences: `python -m config.sbom`.

The same packages give the same bytes: it has no time and no random number.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "product.txt"
PINNED = re.compile(r"^([a-z0-9-]+)==", re.MULTILINE)
# Beside Python packages: fonts in static/fonts.
FONTS = {
    "type": "library",
    "bom-ref": "atkinson-hyperlegible",
    "name": "Atkinson Hyperlegible Next and Mono",
    "licenses": [{"license": {"id": "OFL-1.1"}}],
}
CLASSIFIER = "License :: OSI Approved :: "


def bill() -> dict[str, Any]:
    components = [*_packages(), FONTS]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    serial = uuid5(NAMESPACE_URL, json.dumps(components))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "countersign",
                "name": "countersign",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": "countersign", "dependsOn": [c["bom-ref"] for c in components]}],
    }


def _packages() -> Iterator[dict[str, Any]]:
    """Locked packages that are installed, once each: others, and other versions, are for other
    platforms."""
    for name in dict.fromkeys(PINNED.findall(LOCK.read_text())):
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        purl = f"pkg:pypi/{name}@{found.version}"
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": found.version,
            "purl": purl,
            "licenses": [_licence(found)],
        }


def _licence(package: Distribution) -> dict[str, Any]:
    """An SPDX expression where the package has one, and else its own words."""
    found = package.metadata
    if "License-Expression" in found:
        return {"expression": found["License-Expression"]}
    classifiers = [one.removeprefix(CLASSIFIER) for one in found.get_all("Classifier") or ()
                   if one.startswith(CLASSIFIER)]  # fmt: skip
    written = (found.get_all("License") or [""])[0].strip().splitlines()
    name = " AND ".join(classifiers) or "".join(written[:1]) or _title_of_file(package)
    return {"license": {"name": name or "unknown"}}


def _title_of_file(package: Distribution) -> str:
    """The first line of the licence itself, as in "MIT License"."""
    named = package.metadata.get_all("License-File") or []
    texts = [package.read_text(f"licenses/{name}") or "" for name in named]
    return next((text.strip().splitlines()[0] for text in texts if text.strip()), "")


if __name__ == "__main__":
    json.dump(bill(), sys.stdout, indent=1)
    sys.stdout.write("\n")
