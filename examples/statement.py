"""Asks people to countersign a statement, and verifies their signed decision before it acts."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

import jwt

POSITIVE = ("approved", "allowed")
WAIT_S = 45
RETRY_AFTER_S = 2


class Refused(Exception):
    """The program must not act; says why."""


class Unreachable(Refused):
    """No usable answer came: Countersign may have got the request or not."""


def request(method: str, url: str, body: object = None, **headers: str) -> Any:
    """The answer's JSON. A request without a usable answer is sent once more."""
    data = None if body is None else json.dumps(body).encode()
    shown = {"Authorization": f"Bearer {os.environ['COUNTERSIGN_TOKEN']}", **headers}
    shown["Content-Type"] = "application/json"
    asked = urllib.request.Request(url, data, shown, method=method)  # noqa: S310
    try:
        return _answer(asked)
    except Unreachable:
        time.sleep(RETRY_AFTER_S)
        return _answer(asked)


def _answer(asked: urllib.request.Request) -> Any:
    try:
        with urllib.request.urlopen(asked, timeout=WAIT_S + 15) as answer:  # noqa: S310
            return json.load(answer)
    except urllib.error.HTTPError as error:
        kind = Unreachable if error.code >= 500 else Refused
        raise kind(_detail(error)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unreachable(f"No usable answer from Countersign: {error}") from error


def _detail(error: urllib.error.HTTPError) -> str:
    """The sentence of a problem document; a proxy before Countersign may answer with HTML."""
    try:
        problem = json.load(error)
    except (OSError, http.client.HTTPException, ValueError):
        problem = None
    said = problem.get("detail") if isinstance(problem, dict) else None
    return str(said or f"Countersign or a proxy before it answered {error.code} {error.reason}.")


def countersigned(base: str, statement: dict[str, Any]) -> dict[str, Any]:
    """The claims of the decision, once there is one. Raises Refused unless it is positive."""
    # Where the first answer was lost, the second request leads to the same approval by this key.
    key = {"Idempotency-Key": str(uuid.uuid4())}
    known = request("POST", f"{base}/api/approvals?wait=0", {"statement": statement}, **key)
    print(f"Waiting for people: {known['page']}", file=sys.stderr)
    while known["decision"] is None:
        known = request("GET", f"{base}/api/approvals/{known['id']}?wait={WAIT_S}")
    if known["signed_decision"] is None:
        raise Refused(f"The decision is not signed. {known['unsigned_reason']}")
    keys = request("GET", f"{base}/api/approvals/keys")
    claims = verified(known["signed_decision"], keys, statement)
    if claims["jti"] != known["id"]:
        raise Refused("The decision is for another request.")
    return claims


def verified(signed: str, keys: dict[str, Any], statement: dict[str, Any]) -> dict[str, Any]:
    """The claims of a positive decision on this statement. Raises Refused and jwt's errors."""
    try:
        key = jwt.PyJWKSet.from_dict(keys)[jwt.get_unverified_header(signed)["kid"]]
    except KeyError as error:
        raise Refused("The key that signed the decision is unknown or was withdrawn.") from error
    claims = jwt.decode(signed, key, algorithms=["EdDSA"], options={"verify_aud": False})
    if claims["decision"] not in POSITIVE:
        raise Refused(f"The statement was not approved: {claims['decision']}.")
    if claims.get("demo"):
        raise Refused("The decision is of a demo, and decides nothing.")
    if "exp" not in claims:
        raise Refused("The decision has no end (exp).")
    if _text(claims["statement"]) != _text(statement):
        raise Refused("An approver changed the statement: act on theirs, or ask again.")
    return dict(claims)


def _text(statement: object) -> str:
    """Python takes 1, 1.0 and true for equal: as JSON they are not."""
    return json.dumps(statement, sort_keys=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what")
    parser.add_argument("--who", required=True)
    parser.add_argument("--why", required=True)
    parser.add_argument("--details", type=json.loads, help="a JSON list of objects with a type")
    parser.add_argument("--url", default=os.environ.get("COUNTERSIGN_URL", "http://127.0.0.1:8000"))
    given = parser.parse_args()
    if "COUNTERSIGN_TOKEN" not in os.environ:
        parser.error("Set COUNTERSIGN_TOKEN to the agent's token.")
    statement = {"what": given.what, "who": given.who, "why": given.why}
    if given.details:
        statement["details"] = given.details
    try:
        claims = countersigned(given.url.rstrip("/"), statement)
    except Refused as error:
        print(error, file=sys.stderr)
        return 1
    except jwt.InvalidTokenError as error:
        print(f"The decision does not verify: {error}", file=sys.stderr)
        return 1
    names = ", ".join(vote["name"] for vote in claims["votes"]) or "a rule"
    print(f"{claims['decision']} by {names}: {claims['jti']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
