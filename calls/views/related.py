"""A call page's context: the agent's calls before and after it, and the call as a command."""

from __future__ import annotations

import json
import shlex
from datetime import timedelta

from django.conf import settings

from calls.models import Call
from core.ids import first_id

NEAR = timedelta(minutes=10)
RELATED_MAX = 5
# A longer command is nothing to paste into a shell.
CURL_LIMIT = 32 * 1024


def near(call: Call) -> list[Call]:
    """The same agent's calls just before and just after, in their order."""
    beside = Call.objects.filter(agent_id=call.agent_id).only(
        "id", "tool_name", "state", "asked_at", "arguments_digest", "tool_id"
    )
    earlier = beside.filter(pk__lt=call.pk, pk__gte=first_id(call.asked_at - NEAR))
    later = beside.filter(pk__gt=call.pk, pk__lt=first_id(call.asked_at + NEAR))
    both = earlier.order_by("-pk")[:RELATED_MAX].union(later.order_by("pk")[:RELATED_MAX], all=True)
    return [_marked(other, call) for other in both.order_by("id")]


def _marked(other: Call, call: Call) -> Call:
    """Sets `is_retry` on calls of the same tool with the same arguments."""
    alike = (other.tool_id, other.arguments_digest) == (call.tool_id, call.arguments_digest)
    other.is_retry = alike  # type: ignore[attr-defined]
    return other


def as_curl(call: Call) -> str:
    """The same request as a shell command: it opens a new call with the original arguments."""
    if call.tool is None or len(call.arguments) > CURL_LIMIT:
        return ""
    written = _ascii(bytes(call.arguments).decode(errors="replace"))
    names = f'"toolset": {json.dumps(call.toolset)}, "tool": {json.dumps(call.tool.exposed_name)}'
    body = f'{{{names}, "arguments": {written}}}'
    return (
        f"curl -sS {settings.PUBLIC_URL}/api/calls \\\n"
        '  -H "Authorization: Bearer $COUNTERSIGN_TOKEN" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  --data-binary {shlex.quote(body)}"
    )


def _ascii(text: str) -> str:
    """Equivalent JSON in ASCII, so that no character is hidden; only its strings can have
    others."""
    return "".join(c if " " <= c <= "~" or c in "\n\t" else json.dumps(c)[1:-1] for c in text)
