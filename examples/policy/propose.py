"""Proposes a policy file to Countersign from CI: `python3 propose.py policy.yaml`.

Needs COUNTERSIGN_URL, and in COUNTERSIGN_TOKEN a token of a service account that may propose plans.
Writes the plan's Markdown to PLAN_MARKDOWN (plan.md) and its digest to PLAN_DIGEST (plan.digest).

Exit code 0: the file changes nothing; 2: it does; 1: an error. With --apply DIGEST a plan that
people confirmed in the console is applied; that takes a token that may apply.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

WAIT_S = 180


def ask(path: str, body: dict[str, Any]) -> Any:
    """The answer; None where there is nothing to plan."""
    request = urllib.request.Request(  # noqa: S310 the address is the pipeline's own setting
        f"{os.environ['COUNTERSIGN_URL'].rstrip('/')}/api/v1/policy/{path}",
        data=json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['COUNTERSIGN_TOKEN']}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=WAIT_S) as answer:  # noqa: S310
        text = answer.read()
    return json.loads(text) if text else None


def propose(file: Path) -> int:
    origin = os.environ.get("PLAN_ORIGIN", "")
    plan = ask("plans", {"proposal": file.read_text(encoding="utf-8"), "origin": origin})
    if plan is None:
        print("The file changes nothing.")
        return 0
    Path(os.environ.get("PLAN_MARKDOWN", "plan.md")).write_text(plan["markdown"], encoding="utf-8")
    Path(os.environ.get("PLAN_DIGEST", "plan.digest")).write_text(plan["digest"] + "\n")
    print(plan["markdown"])
    return 2


def apply(digest: str) -> int:
    ask(f"plans/{digest}/apply", {})
    print(f"Applied {digest}.")
    return 0


def main(arguments: list[str]) -> int:
    try:
        if arguments[:1] == ["--apply"] and len(arguments) == 2:
            return apply(arguments[1])
        if len(arguments) == 1:
            return propose(Path(arguments[0]))
    except urllib.error.HTTPError as error:
        problem = json.loads(error.read() or b"{}")
        print(problem.get("detail", error), file=sys.stderr)
        return 1
    except (OSError, KeyError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(__doc__, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
