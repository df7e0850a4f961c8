"""The audit log names the subject of an entry: an export, a client, a period, a plan."""

import html
import re

import pytest
from django.test import Client
from django.urls import reverse

from accounts.roles import Role
from audit.models import Entry
from tests.console import scenery

DIGEST = "6ea7454940b550d79f5829faf4a63abe06b160ccc219f02e77e9b742b66f81a2"
SUBJECTS = [
    ("audit.exported", {"export": 6, "format": "csv"}, "export 6 · CSV", "导出 6 · CSV"),
    (
        "audit.exported",
        {"export": 7, "format": "proof"},
        "export 7 · JSONL with proofs",
        "导出 7 · JSONL（含证明）",
    ),
    ("audit.export_written", {"export": 6, "bytes": 1}, "export 6", "导出 6"),
    ("agent_client.registered", {"client_id": "csr_1", "name": "Goose"}, "Goose", "Goose"),
    (
        "retention.changed",
        {"scope": "tool", "target": "mailer.send_mail"},
        *2 * ["mailer.send_mail"],
    ),
    ("policy.planned", {"plan": DIGEST, "changes": 5}, *2 * ["6ea7454940"]),
]


@pytest.mark.parametrize(("action", "details", "english", "chinese"), SUBJECTS)
def test_an_entry_names_its_subject(
    client: Client, db: None, action: str, details: dict[str, object], english: str, chinese: str
) -> None:
    client.force_login(scenery.person("ines", Role.AUDITOR))
    Entry.objects.create(
        action=action, actor_kind="person", actor_id=1, actor="bob", details=details
    )
    for language, said in (("en", english), ("zh-hans", chinese)):
        client.cookies["django_language"] = language
        page = client.get(reverse("audit:list")).text
        found = re.findall(r'<span class="verbatim">(.*?)</span>', page)
        assert said in [html.unescape(one) for one in found]
