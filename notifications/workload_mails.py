"""The weekly mail on approvals: the figures of the page, as its reader sees it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.urls import reverse
from django.utils.formats import date_format
from django.utils.timezone import make_aware, now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from approvals import workload
from approvals.workload import Burst, RuleProposal, Workload, WorkloadRow
from audit.models import Entry
from core.templatetags.console import duration
from notifications.events import Event
from notifications.mail_body import MailText
from notifications.models import Delivery
from notifications.outcomes import NO_DECISIONS, NotNeeded
from notifications.payloads import link_to

# On Monday, by the reader's clock.
AT = time(6)
# Of each kind of line.
MOST = 10


def compose(delivery: Delivery, entry: Entry, person: User) -> MailText:
    """Raises NotNeeded where there is nothing to tell."""
    since = _monday(entry)
    found = workload.read_for(person, since)
    if not found.people and not found.groups and not found.expired:
        raise NotNeeded(NO_DECISIONS)
    first, last = (
        date_format(day, "DATE_FORMAT") for day in (since, since + workload.WEEK - timedelta(1))
    )
    return MailText(
        _("Approval workload: %(first)s – %(last)s") % {"first": first, "last": last},
        _("It is measured to find out whether people are asked too often, not to compare them."),
        link_to(delivery, f"{reverse('approvals:workload')}?week={since:%Y-%m-%d}"),
        _("Open the workload"),
        _facts(found),
    )


def resumes_at(delivery: Delivery) -> datetime | None:
    """When the reader's week is over and their Monday has begun; None: it is, or the message is on
    something else."""
    person = delivery.reader
    if delivery.event != Event.WORKLOAD or person is None:
        return None
    entry = Entry.objects.filter(pk=delivery.entry_id).first()
    if entry is None:
        return None
    morning = _morning(entry, ZoneInfo(person.time_zone))
    return morning if morning > now() else None


def _morning(entry: Entry, zone: ZoneInfo) -> datetime:
    return datetime.combine(_last_monday(entry) + workload.WEEK, AT, zone)


def _monday(entry: Entry) -> datetime:
    """The week before the entry's, from midnight in the reader's time zone."""
    return make_aware(datetime.combine(_last_monday(entry), time.min))


def _last_monday(entry: Entry) -> date:
    """The first day of the week that ended. In America it is still Sunday when the entry is
    written: its week is that of UTC."""
    day = entry.at.astimezone(UTC).date()
    return day - timedelta(days=day.weekday(), weeks=1)


def _facts(found: Workload) -> list[tuple[str, str]]:
    rows = [*found.groups[:MOST], *found.people[:MOST]]
    facts = [(row.name, _figures(row)) for row in rows]
    facts += [(_("Outlier"), _burst(one)) for one in found.bursts[:MOST]]
    if found.expired:
        facts.append((_("Expired"), str(found.expired)))
    return facts + [(_("Never denied"), _proposal(one)) for one in found.proposals[:MOST]]


def _figures(row: WorkloadRow) -> str:
    said = [ngettext("%(n)s decision", "%(n)s decisions", row.decided) % {"n": row.decided}]
    if row.decided:
        said.append(_("%(n)s %% denied") % {"n": row.denied_percent})
    if row.median_s is not None:
        said.append(_("median %(time)s") % {"time": duration(row.median_s)})
    if row.edits:
        said.append(ngettext("%(n)s edit", "%(n)s edits", row.edits) % {"n": row.edits})
    if row.expired:
        said.append(_("%(n)s expired") % {"n": row.expired})
    if row.abandoned:
        said.append(_("%(n)s of them opened") % {"n": row.abandoned})
    return " · ".join(said)


def _proposal(one: RuleProposal) -> str:
    asked = ngettext("asked %(n)s time", "asked %(n)s times", one.asked) % {"n": one.asked}
    return f"{one.rule.name} · {one.tool} · {asked}"


def _burst(burst: Burst) -> str:
    named = {"name": burst.name, "n": burst.approvals, "time": duration(burst.seconds)}
    return _("%(name)s approved %(n)s in %(time)s") % named
