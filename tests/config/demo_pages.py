"""Looks at a demo's pages, exports and probe from within; prints as JSON what it saw."""

import asyncio
import json
import os
import sys
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from django.test import Client  # noqa: E402 once Django is ready

from accounts.models import User  # noqa: E402
from audit.demo import is_demo  # noqa: E402
from config.health import find_fault_after  # noqa: E402
from gateway.http import health  # noqa: E402

BANNER = "Everything recorded here is invented."


def is_marked(client: Client, path: str) -> bool:
    response = client.get(path)
    return response.status_code == 200 and BANNER in response.content.decode()


def export(client: Client, form: str) -> list[str]:
    asked = {"format": form, "now": "", "agent": "scout", "range": "30d"}
    file = client.get(client.post("/audit/exports/", asked)["Location"])
    content = b"".join(file.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]
    return [file["Content-Disposition"], *content.splitlines()[:2]]


def probe() -> Any:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"method": "GET", "path": "/healthz"}
    asyncio.run(health.respond(scope, send, find_fault_after(lambda: ""), is_demo))
    return json.loads(sent[-1]["body"])


def main() -> None:
    client = Client(headers={"host": "localhost"})
    told = {"/sign-in/": is_marked(client, "/sign-in/")}
    client.force_login(User.objects.get(username="admin"))
    told |= {path: is_marked(client, path) for path in json.loads(sys.argv[1])}
    exports = {form: export(client, form) for form in ("csv", "jsonl")}
    sys.stdout.write(json.dumps({"pages": told, "exports": exports, "health": probe()}))


if __name__ == "__main__":
    main()
