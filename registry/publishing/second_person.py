"""Two people publish what was found red, where an installation is set so.

The first one's press is an entry with their reason; another's, on the very definition and within
`COUNTS_FOR`, publishes it. An account that one of them let in is no other person until somebody
else confirmed it, as for approvals.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from accounts.independence import Inviters, inviters_behind, unconfirmed_inviters
from accounts.models import User
from audit.models import Entry
from audit.names import named
from audit.services import record
from core.english import gettext as _
from core.text import revealed
from registry.models import Item, Tool
from registry.models.versioned import Version

PROPOSED = "publication.proposed"
COUNTS_FOR = timedelta(days=7)


def proposals(of: Tool | Item, version: Version) -> QuerySet[Entry]:
    """The presses that count for this version of it, the newest first; none of a person who was
    disabled since."""
    since = timezone.now() - COUNTS_FOR
    rows = named({"action": PROPOSED, "server": of.server.slug}).in_order()
    pks = rows.filter(at__gt=since, details__subject=_key(of)).values_list("pk", flat=True)
    found = Entry.objects.filter(pk__in=list(pks), definition_digest=version.digest)
    active = User.objects.filter(is_active=True).values("pk")
    return found.filter(actor_kind="person", actor_id__in=active).order_by("-pk")


def is_needed(version: Version) -> bool:
    return bool(settings.RED_NEEDS_TWO) and version.findings.is_red


def what_is_missing(of: Tool | Item, version: Version, *, by: User | None) -> str:
    """Why `by` cannot publish it yet, as a sentence; empty where they can."""
    if not is_needed(version):
        return ""
    name = {"name": revealed(_name(of)[:200])}
    if by is None:
        return _("“%(name)s” needs two people: publish it on its review page.") % name
    known = unconfirmed_inviters()
    # By the row: a name can be changed.
    if any(_is_other(one.actor_id, by.pk, known) for one in proposals(of, version)):
        return ""
    said = _(
        "“%(name)s” needs a second person: your reason is recorded, and another operator "
        "publishes it."
    )
    return said % name


def _is_other(one: int | None, by: int, known: Inviters) -> bool:
    """Two accounts that a third one let in are two people's, as for approvals."""
    if one is None or one == by:
        return False
    return one not in inviters_behind([by], known) and by not in inviters_behind([one], known)


def propose(of: Tool | Item, version: Version, *, by: User, reason: str) -> None:
    """Records the first person's press, once."""
    if any(one.actor_id == by.pk for one in proposals(of, version)):
        return
    record(
        PROPOSED,
        actor=by.actor,
        reason=reason,
        server=of.server.slug,
        tool=of.exposed_name if isinstance(of, Tool) else "",
        definition_digest=version.digest,
        subject=_key(of),
    )


def _key(of: Tool | Item) -> str:
    return f"tool {of.name}" if isinstance(of, Tool) else f"{of.kind} {of.key}"


def _name(of: Tool | Item) -> str:
    return of.exposed_name if isinstance(of, Tool) else of.key
