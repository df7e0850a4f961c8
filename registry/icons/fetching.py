"""Fetches the icons that a server declares: after discovery, once, never for a page or a call."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Iterator, Mapping
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from core.english import gettext as _
from core.guarded_http import RequestFailed, fetch
from registry.icons.declared import DeclaredIcon, choose
from registry.icons.rendering import IconRefused, render
from registry.models import Icon, Server, Tool

log = logging.getLogger(__name__)

# Different ones, of a server and all its tools.
MOST = 50
RETRY_AFTER = timedelta(days=1)
ACCEPT = {"Accept": "image/png, image/webp, image/jpeg"}


def fetch_missing(server_id: int) -> None:
    """Fetches what is not there yet; what failed is tried again after a day."""
    server = Server.objects.kept().filter(pk=server_id, enabled=True).first()
    if server is None:
        return
    declared = dict(_declared(server))
    wanted = list(dict.fromkeys(declared.values()))[:MOST]
    known = {icon.digest: icon for icon in server.icons.defer("content")}
    fresh = timezone.now() - RETRY_AFTER
    for icon in wanted:
        before = known.get(icon.digest)
        if before is None or (before.problem and before.fetched_at < fresh):
            _fetch(server, icon)
    _assign(server, declared)


def _declared(server: Server) -> Iterator[tuple[int | None, DeclaredIcon]]:
    """By the tool's id; the server's own under None."""
    if own := choose(server.server_info.get("icons")):
        yield None, own
    tools = server.tools.exclude(state=Tool.State.RETIRED).filter(latest__body__contains='"icons"')
    for tool in tools.select_related("latest").iterator(chunk_size=200):
        if tool.latest and (icon := choose(tool.latest.content.get("icons"))):
            yield tool.pk, icon


def _fetch(server: Server, icon: DeclaredIcon) -> None:
    content, problem = None, ""
    try:
        content = render(_bytes(icon.source), is_for_dark=icon.theme == "dark")
    except (RequestFailed, IconRefused) as error:
        problem = str(error)
        log.info("an icon of %s is not shown: %s", server.slug, problem)
    Icon.objects.update_or_create(
        server=server,
        digest=icon.digest,
        defaults={
            "source": icon.source,
            "content": content,
            "problem": problem,
            "fetched_at": timezone.now(),
        },
    )


def _bytes(source: str) -> bytes:
    if source[:5].lower() == "data:":
        return _of_data_url(source)
    reply = fetch("GET", source, ACCEPT)
    if reply.status != 200:
        raise IconRefused(_("Its address answers with status %d.") % reply.status)
    return reply.body


def _of_data_url(source: str) -> bytes:
    kind, _comma, text = source.partition(",")
    if not kind.lower().endswith(";base64"):
        raise IconRefused(_("It is no PNG, JPEG or WebP picture."))
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise IconRefused(_("Its data: URL is no base64.")) from None


@transaction.atomic
def _assign(server: Server, declared: Mapping[int | None, DeclaredIcon]) -> None:
    drawn = dict(server.icons.exclude(content=None).values_list("digest", "pk"))
    icons = {of: drawn[icon.digest] for of, icon in declared.items() if icon.digest in drawn}
    if (own := icons.get(None)) != server.icon_id:
        Server.objects.filter(pk=server.pk).update(icon_id=own)
    of_tools = {tool_id: pk for tool_id, pk in icons.items() if tool_id is not None}
    server.tools.exclude(icon=None).exclude(pk__in=list(of_tools)).update(icon=None)
    for pk in set(of_tools.values()):
        theirs = [tool_id for tool_id, icon_id in of_tools.items() if icon_id == pk]
        server.tools.filter(pk__in=theirs).update(icon_id=pk)
    server.icons.exclude(digest__in={icon.digest for icon in declared.values()}).delete()
