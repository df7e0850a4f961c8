from hashlib import sha256
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.errors import CountersignError
from core.text import revealed
from registry import services
from registry.models import Server, Tool
from registry.models.versioned import difference
from registry.publishing.review import Review, reviews, unreached
from registry.schemas.differences import DefinitionChange


class Command(BaseCommand):
    help = (
        "Show what of a server waits, as the difference from what agents had, and publish one of "
        "it or all, by the digest of what was shown."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("server")
        parser.add_argument(
            "tool",
            nargs="?",
            help="as its server calls it; or a resource's URI, or a prompt's name",
        )
        parser.add_argument("--digest", help="of the difference that you were shown")
        parser.add_argument("--all", action="store_true", help="publish everything that waits")
        told = "with --all: publish what has no findings, though nobody looked; the record says so"
        parser.add_argument("--not-reviewed", action="store_true", help=told)

        why = "why what has red findings is published all the same; the record keeps it"
        parser.add_argument("--reason", default="", help=why)

    def handle(self, **options: Any) -> None:
        server = Server.objects.kept().filter(slug=options["server"]).first()
        if server is None:
            raise CommandError(f"There is no server named {options['server']}.")
        digest = options["digest"] or ""
        if options["all"]:
            is_reviewed = not options["not_reviewed"]
            self._all(server, digest, is_reviewed=is_reviewed, reason=options["reason"])
        elif options["tool"] and digest:
            self._one(server, options["tool"], digest, options["reason"])
        else:
            self._show(server)

    def _all(self, server: Server, digest: str, *, is_reviewed: bool, reason: str) -> None:
        tools: dict[int, str] | None = None
        items: dict[int, str] | None = None
        if is_reviewed:
            waiting = _publishable(server)
            if not digest:
                raise CommandError(
                    f"Read what `publish {server}` shows, and give the --digest that stands at its "
                    "end; or --not-reviewed, if nobody is to look."
                )
            if digest != _digest(waiting):
                raise CommandError(
                    "This is not what was shown: it has changed since, or the digest is another's. "
                    f"Nothing is published. Look again: `publish {server}`."
                )
            tools = {one.of.pk: one.digest for one in waiting if one.is_tool}
            items = {one.of.pk: one.digest for one in waiting if not one.is_tool}
        before = set(_published(server))
        refused = services.publish_all(server, by=None, differences=tools, reason=reason)
        refused += services.publish_items(server, by=None, differences=items, reason=reason)
        self._tell_reach(server, set(_published(server)) - before)
        if refused:
            raise CommandError("\n".join(refused))

    def _one(self, server: Server, name: str, digest: str, reason: str) -> None:
        tool = server.tools.select_related("server").filter(name=name).first()
        items = list(server.items.filter(key=name).select_related("published", "latest"))
        # A tool, a resource and a prompt may have one name: the digest says which.
        shown = [item for item in items if difference(item) == digest]
        tool = None if shown else tool
        shown = shown or items
        try:
            if tool is not None:
                services.publish(tool, difference=digest, by=None, reason=reason)
                self._tell_reach(server, {tool.pk})
            elif shown:
                services.publish_item(shown[0], difference=digest, by=None, reason=reason)
            else:
                raise CommandError(f"{server} has no tool named {name}, nor anything with it.")
        except CountersignError as error:
            raise CommandError(str(error)) from error

    def _tell_reach(self, server: Server, published: set[int]) -> None:
        missed = unreached(server.tools.filter(pk__in=published))
        for tool in missed:
            self.stdout.write(
                f"No agent gets {tool.exposed_name}: `toolset NAME --tool {tool.exposed_name} "
                "--agent NAME` puts it into a toolset of one."
            )

    def _show(self, server: Server) -> None:
        waiting = _unpublished(server)
        for review in waiting:
            self._show_one(review)
        if publishable := [one for one in waiting if not one.problems]:
            self.stdout.write(f"All of it: --all --digest {_digest(publishable)}")

    def _show_one(self, review: Review) -> None:
        of = review.of
        name = of.name if isinstance(of, Tool) else f"{of.kind} {of.key}"
        self.stdout.write(f"{revealed(name)}  --digest {review.digest}")
        if review.scan.risks:
            red = ", needs a --reason" if review.scan.is_red else ""
            self._write("!", f"Risk score {review.scan.score} of 100{red}")
        for finding in review.scan.risks:
            self._write("!", f"{finding.said}, {finding.where}: {finding.quote}")
        for mark in review.marks:
            self._write("!", f"{mark.said}: {mark.quote}" if mark.quote else mark.said)
        if review.before is None:
            self._write(" ", review.after.body)
        for change in review.changes:
            self._show_change(change)
        if review.before and not review.changes:
            self._write(" ", "The server says the same as before.")
        for problem in review.problems:
            self._write("!", f"Cannot be published: {problem}")

    def _show_change(self, change: DefinitionChange) -> None:
        self._write(" ", f"{change.what} {change.name}".strip())
        for sign, text in (("-", change.before), ("+", change.after)):
            if text is not None:
                self._write(f"  {sign}", text)

    def _write(self, sign: str, text: str) -> None:
        """No line of a stranger's text can pass for one of ours."""
        for line in text.splitlines():
            self.stdout.write(f"  {sign} {revealed(line)}")


def _unpublished(server: Server) -> list[Review]:
    return reviews(server, server.tools.all(), server.items.all(), most=None)


def _publishable(server: Server) -> list[Review]:
    return [one for one in _unpublished(server) if not one.problems]


def _digest(shown: list[Review]) -> str:
    """A digest of all differences, in any order."""
    return sha256("\n".join(sorted(one.digest for one in shown)).encode()).hexdigest()


def _published(server: Server) -> list[int]:
    return list(server.tools.filter(state=Tool.State.PUBLISHED).values_list("pk", flat=True))
