"""The command `countersign`: what operators do daily, over the API.

The generator puts what follows the mark behind the client (client/generate.py).
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from client.countersign import Countersign, Problem, Unreachable, Usage

# Commands

USAGE = 64  # EX_USAGE: 2 is taken by files that change something.
CHANGES = 2
SHOWN = 50
SHELLS = ("bash", "zsh", "fish")
RANGES = ("1h", "24h", "7d", "30d", "90d")
V1 = "/api/v1"


class CommandFailed(Exception):
    """Said on standard error; the exit code is 1."""


class Profile(NamedTuple):
    """`token_command` prints the token, where the file does not have it."""

    url: str
    token: str = ""
    token_command: str = ""


class Profiles:
    """Installations by name, in a file that only its owner reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.current, self.known = "", dict[str, Profile]()
        if path.exists():
            self._read()

    def _read(self) -> None:
        try:
            read = json.loads(self.path.read_text(encoding="utf-8"))
            self.current = str(read["current"])
            self.known = {name: Profile(**one) for name, one in read["profiles"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CommandFailed(f"{self.path} is no file of profiles: {error}") from error

    def save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = {name: one._asdict() for name, one in self.known.items()}
        text = json.dumps({"current": self.current, "profiles": known}, indent=2)
        # Never half of it, and at no moment readable by others.
        handle, name = tempfile.mkstemp(dir=self.path.parent)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        Path(name).replace(self.path)

    def named(self, name: str) -> Profile:
        if name not in self.known:
            known = ", ".join(sorted(self.known)) or "none: countersign profile add NAME URL"
            raise CommandFailed(f"There is no profile {name!r}. Profiles: {known}.")
        return self.known[name]


def profiles_path() -> Path:
    if given := os.environ.get("COUNTERSIGN_PROFILES"):
        return Path(given)
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "countersign" / "profiles.json"


def token_of(profile: Profile) -> str:
    if not profile.token_command:
        return profile.token
    words = shlex.split(profile.token_command)
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 the profile's own
    except (OSError, subprocess.CalledProcessError) as error:
        raise CommandFailed(f"The profile's command for the token failed: {error}") from error
    return done.stdout.strip()


def connect(given: argparse.Namespace) -> Countersign:
    """By --profile, else by the environment, else by the current profile."""
    url, token = os.environ.get("COUNTERSIGN_URL", ""), os.environ.get("COUNTERSIGN_TOKEN", "")
    if not given.profile and bool(url) != bool(token):
        raise CommandFailed("Set both COUNTERSIGN_URL and COUNTERSIGN_TOKEN, or neither.")
    if given.profile or not url:
        profiles = Profiles(profiles_path())
        name = given.profile or profiles.current
        if not name:
            raise CommandFailed(
                "No installation: countersign profile add NAME URL, or set COUNTERSIGN_URL and "
                "COUNTERSIGN_TOKEN."
            )
        profile = profiles.named(name)
        url, token = profile.url, token_of(profile)
    return client_of(url, token)


def client_of(url: str, token: str) -> Countersign:
    try:
        return Countersign(url, token, allow_http=bool(os.environ.get("COUNTERSIGN_ALLOW_HTTP")))
    except ValueError as error:
        raise CommandFailed(str(error)) from error


# What a command prints


class Output:
    """Rows as a table and one row as lines, or all of it as JSON."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json

    def rows(self, rows: Iterable[Mapping[str, Any]], columns: str) -> None:
        """`columns`: names of members, with dots for members of members."""
        found = list(rows)
        if self.as_json:
            self.json(found)
            return
        names = columns.split()
        cells = [[shown(member(row, name)) for name in names] for row in found]
        _table([name.rpartition(".")[2].upper().replace("_", " ") for name in names], cells)

    def row(self, row: Any) -> None:
        if self.as_json or not isinstance(row, Mapping):
            self.json(row)
            return
        width = max((len(name) for name in row), default=0)
        for name, value in row.items():
            print(f"{name:<{width}}  {shown(value)}")

    def text(self, text: str, value: Any) -> None:
        """`value`: the same for programs."""
        if self.as_json:
            self.json(value)
        else:
            print(text)

    def json(self, value: Any) -> None:
        # A terminal obeys no escape sequence of it: JSON writes control characters as \u001b.
        print(json.dumps(value, indent=2, ensure_ascii=False))


def member(row: Mapping[str, Any], name: str) -> Any:
    value: Any = row
    for part in name.split("."):
        value = value[part]
    return value


def shown(value: Any) -> str:
    """On one line, without characters that a terminal obeys or hides."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case list() if all(isinstance(one, str) for one in value):
            value = ", ".join(value) or "–"
        case list() | dict():
            value = json.dumps(value, ensure_ascii=False)
    return "".join(one if _is_plain(one) else f"\\u{ord(one):04x}" for one in str(value))


def _is_plain(character: str) -> bool:
    return character == " " or unicodedata.category(character)[0] not in "CZ"


def _width(text: str) -> int:
    """In columns: Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def _table(head: list[str], cells: list[list[str]]) -> None:
    lines = [head, *cells]
    widths = [max(_width(line[n]) for line in lines) for n in range(len(head))]
    last = len(head) - 1
    for line in lines:
        padded = (
            text if n == last else text + " " * (widths[n] - _width(text))
            for n, text in enumerate(line)
        )
        print("  ".join(padded))


# Verbs. Each takes the options that were given, the client, and where to write.

Given = argparse.Namespace
Verb = Callable[[Given, Countersign, Output], int | None]


def show_me(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.get_me())


def show_health(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.get_health())


def show_usage(given: Given, api: Countersign, out: Output) -> None:
    if given.tool:
        of_tool = api.get_tool_usage(given.tool)
        out.row(of_tool) if out.as_json else out.rows(of_tool["days"], DAYS)
        return
    found = _usage(given, api)
    if out.as_json:
        out.row(found)
        return
    out.row({name: found[name] for name in FIGURES})  # type: ignore[literal-required]
    for part in ("tools", "agents", "servers"):
        rows: Any = dict(found)[part]
        if rows:
            print(f"\n{part.capitalize()}")
            out.rows(rows, "name calls error_percent p95")


FIGURES = ("range", "calls", "calls_before", "outcomes", "error_percent", "p50", "p95")
DAYS = "day calls error_share p50 p95"


def _usage(given: Given, api: Countersign) -> Usage:
    if given.agent:
        return api.get_agent_usage(given.agent, range=given.range)
    if given.server:
        return api.get_server_usage(given.server, range=given.range)
    if given.rule:
        return api.get_rule_usage(given.rule, range=given.range)
    return api.get_usage_figures(range=given.range)


def list_servers(given: Given, api: Countersign, out: Output) -> None:
    out.rows(first(api.list_servers(), given), "name health enabled transport address title")


def show_server(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.get_server(given.name).value)


def register_server(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"name": given.name, "title": given.title}
    body |= {"command": given.command} if given.command else {"url": given.url}
    if given.credential:
        body["credential"] = secret("Credential of the server: ")
    out.row(api.create_server(body))


def discover_server(given: Given, api: Countersign, out: Output) -> int:
    found = api.create_discovery(given.name)
    out.row(found)
    return 0 if found["succeeded"] else 1


def review_server(given: Given, api: Countersign, out: Output) -> None:
    found = api.get_reviews(given.name)
    if out.as_json:
        out.json(found)
        return
    for one in found["items"]:
        red = "  RED: publish it in the console" if one["is_red"] else ""
        print(f"{shown(one['name'])}={one['digest']}{red}")
        for finding in (*one["findings"], *one["problems"]):
            print(f"  finding: {shown(finding)}")
        for change in one["changes"]:
            print(f"  {change['kind']}: {shown(change['what'])} {shown(change['name'])}")
            print(f"    - {shown(change['before'])}\n    + {shown(change['after'])}")
        if not one["changes"]:
            print(f"  {shown(one['definition'])}")


def publish_server(given: Given, api: Countersign, out: Output) -> None:
    pairs = [pair(one, at_last=True) for one in given.reviewed]
    reviewed = [{"name": name, "digest": digest} for name, digest in pairs]
    body: Any = {"definitions": reviewed}
    out.row(api.create_publication(given.name, body))


def switch_server(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"enabled": given.enabled, "reason": given.reason}
    etag = api.get_server(given.name).etag
    out.row(api.update_server(given.name, body, etag=etag).value)


def list_tools(given: Given, api: Countersign, out: Output) -> None:
    out.rows(first(api.list_tools(server=given.server), given), "name state server upstream_name")


def show_tool(given: Given, api: Countersign, out: Output) -> None:
    newest = next(api.list_definitions(given.name), None)
    out.row({**api.get_tool(given.name), "newest": newest})


def list_toolsets(given: Given, api: Countersign, out: Output) -> None:
    out.rows(first(api.list_toolsets(), given), "name servers tools agents search_mode title")


def show_toolset(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.get_toolset(given.name).value)


def create_toolset(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.create_toolset({"name": given.name, "title": given.title}))


def fill_toolset(given: Given, api: Countersign, out: Output) -> None:
    """Reads the toolset again where another changed it at the same moment."""
    for _attempt in range(3):
        value, etag = api.get_toolset(given.name)
        body: Any = {
            part: _filled(dict(value)[part], asked, given.adds)
            for part in ("servers", "tools", "agents")
            if (asked := getattr(given, part))
        }
        if not body:
            raise CommandFailed("Give --tool, --server or --agent.")
        try:
            out.row(api.update_toolset(given.name, body, etag=etag).value)
        except Problem as problem:
            if problem.status != 412:
                raise
        else:
            return
    raise CommandFailed("Others go on changing the toolset. Try again.")


def _filled(present: Any, asked: list[str], adds: bool) -> list[str]:
    return sorted({*present, *asked}) if adds else sorted({*present} - {*asked})


def export_toolset(given: Given, api: Countersign, out: Output) -> None:
    found = api.get_tools_of_toolset(given.name, format=given.format)
    for loss in found["losses"]:
        print(shown(f"{loss['tool']} {loss['path']}: {loss['why']}"), file=sys.stderr)
    out.json(found if out.as_json else found["tools"])


def list_agents(given: Given, api: Countersign, out: Output) -> None:
    out.rows(first(api.list_agents(), given), "name owner enabled requires_dpop created_at")


def create_agent(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.create_agent({"name": given.name, "owner": given.owner}))


def switch_agent(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"enabled": given.enabled, "reason": given.reason}
    etag = api.get_agent(given.name).etag
    out.row(api.update_agent(given.name, body, etag=etag).value)


def list_tokens(given: Given, api: Countersign, out: Output) -> None:
    columns = "id created_by expires_at revoked_at last_used_at last_address toolsets reads_only"
    out.rows(first(api.list_tokens(given.agent), given), columns)


def issue_token(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"days": given.days, "toolsets": given.toolset, "reads_only": given.read_only}
    out.row(api.create_token(given.agent, body))


def rotate_token(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.rotate_token(given.agent, given.id))


def revoke_token(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.revoke_token(given.agent, given.id, {"reason": given.reason}))


def list_rules(given: Given, api: Countersign, out: Output) -> None:
    rules = sorted(api.list_rules(), key=lambda rule: rule["position"])
    out.rows(first(rules, given), "id name effect mode server tool when")


def list_limits(given: Given, api: Countersign, out: Output) -> None:
    columns = "id name kind amount period effect mode server tool"
    out.rows(first(api.list_limits(), given), columns)


def export_policy(given: Given, api: Countersign, out: Output) -> None:
    found = api.get_policy_export()
    if given.output:
        _write(Path(given.output), found["policy"].encode())
    elif out.as_json:
        out.json(found)
    else:
        print(found["policy"], end="")


def validate_policy(given: Given, api: Countersign, out: Output) -> None:
    api.create_policy_difference({"proposal": file_text(given.file)})
    out.text("The file is valid.", {"valid": True})


def compare_policy(given: Given, api: Countersign, out: Output) -> int:
    changes = api.create_policy_difference({"proposal": file_text(given.file)})["changes"]
    out.rows(changes, "section kind name members")
    return CHANGES if changes else 0


def plan_policy(given: Given, api: Countersign, out: Output) -> int:
    body: Any = {"proposal": file_text(given.file), "origin": given.origin}
    if given.calls:
        body["calls"] = given.calls
    # Thousands of calls are judged again.
    api.timeout_s = max(api.timeout_s, 180)
    plan = api.create_policy_plan(body)
    if plan is None:
        out.text("The file changes nothing.", None)
        return 0
    if given.markdown:
        _write(Path(given.markdown), plan["markdown"].encode())
    out.text(plan["markdown"], plan)
    return CHANGES


def apply_policy(given: Given, api: Countersign, out: Output) -> None:
    out.text(f"Applied {given.digest}.", api.apply_policy_plan(given.digest))


def show_queue(given: Given, api: Countersign, out: Output) -> None:
    """To read: only a person decides, signed in to the console."""
    columns = "call.id call.agent call.tool call.reason asked_at decide_by call.page"
    out.rows(first(api.list_approvals(), given), columns)


def list_calls(given: Given, api: Countersign, out: Output) -> None:
    calls = api.list_calls(state=given.state, agent=given.agent, tool=given.tool)
    out.rows(first(calls, given), "id state agent tool asked_at reason")


def show_call(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.get_call(given.id))


def cancel_call(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.cancel_call(given.id))


def list_stops(given: Given, api: Countersign, out: Output) -> None:
    columns = "id agent server began_by began_at ended_at reason"
    out.rows(first(api.list_emergency_stops(), given), columns)


def begin_stop(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"reason": given.reason}
    for name in ("agent", "server", "everything"):
        if asked := getattr(given, name):
            body[name] = asked
    out.row(api.create_emergency_stop(body))


def end_stop(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.end_emergency_stop(given.id, {"why": given.why}))


def list_grants(given: Given, api: Countersign, out: Output) -> None:
    columns = "id agent tool owner state uses max_uses expires_at"
    out.rows(first(api.list_standing_approvals(), given), columns)


def revoke_grant(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.revoke_standing_approval(given.id))


def list_entries(given: Given, api: Countersign, out: Output) -> None:
    # The API says which filters there are.
    entries = api._pages(f"{V1}/entries", dict(pair(one) for one in given.filter))
    out.rows(first(entries, given), "id at actor action agent server tool reason")


def export_entries(given: Given, api: Countersign, out: Output) -> None:
    filters = dict(pair(one) for one in given.filter)
    body: Any = {"format": given.format, "filters": filters, "background": given.background}
    if given.background:
        if not given.output:
            raise CommandFailed("--background needs --output FILE.")
        _check_replaceable(Path(given.output))
    made = api.create_export(body)
    if given.background:
        _download(made["id"], _behind_links(Path(given.output)), api, out)
        return
    file = api.get_export_file(made["id"])
    if given.output:
        _write(Path(given.output), file)
        out.row(dict(made))
    else:
        sys.stdout.buffer.write(file)


def list_exports(given: Given, api: Countersign, out: Output) -> None:
    columns = "id at format state percent rows size expires_at"
    out.rows(first(api.list_exports(), given), columns)


def cancel_export(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.cancel_export(given.id))


def download_export(given: Given, api: Countersign, out: Output) -> None:
    _check_replaceable(Path(given.output))
    _download(given.id, _behind_links(Path(given.output)), api, out)


def _write(file: Path, content: bytes) -> None:
    """All of it, or on a full disk nothing: what had the name before stays."""
    if file.exists() and not file.is_file():
        file.write_bytes(content)
        return
    file = _behind_links(file)
    part = file.with_name(f".countersign-{secrets.token_hex(8)}")
    try:
        with part.open("xb") as made:
            made.write(content)
        if file.exists():
            shutil.copymode(file, part)
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _behind_links(file: Path) -> Path:
    """The file that is written where a symbolic link has the name: the link stays."""
    return Path(os.path.realpath(file))


def _check_replaceable(file: Path) -> None:
    """A finished download takes the place of what has its name: of a file, and not of a device."""
    if file.exists() and not file.is_file():
        raise CommandFailed(f"{file} is no regular file.")


def _download(number: int, file: Path, api: Countersign, out: Output) -> None:
    """Waits until it is prepared; what was downloaded before a cut line or an end stays."""
    while (made := api.get_export(number))["state"] in ("waiting", "preparing"):
        said = f"export {number}: {made['state']}, {made['percent']} %, {made['rows']} entries"
        print(said, file=sys.stderr)
        time.sleep(2)
    if made["state"] != "ready":
        raise CommandFailed(
            f"Export {number} is not ready: {made['state']} {made['fault']}".strip()
        )
    part = file.with_name(f"{file.name}.part")
    try:
        api.download(made["file"], part, digest=made["digest"])
    except ValueError as error:
        part.unlink()
        raise CommandFailed(str(error)) from error
    part.replace(file)
    out.row(dict(made))


def list_users(given: Given, api: Countersign, out: Output) -> None:
    columns = "name enabled groups has_second_factor invited_by last_signed_in_at"
    out.rows(first(api.list_users(), given), columns)


def disable_user(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"enabled": False, "reason": given.reason}
    etag = api.get_user(given.name).etag
    out.row(api.update_user(given.name, body, etag=etag).value)


def list_webhooks(given: Given, api: Countersign, out: Output) -> None:
    out.rows(first(api.list_webhooks(), given), "name format enabled url events")


def add_webhook(given: Given, api: Countersign, out: Output) -> None:
    url = given.url or secret("Address of the chat: ")
    body: Any = {"name": given.name, "url": url, "format": given.format, "events": given.event}
    out.row(api.create_webhook(body))


def switch_webhook(given: Given, api: Countersign, out: Output) -> None:
    there = _webhook(api, given.name)
    body: Any = {"enabled": given.enabled}
    out.row(api.update_webhook(there, body, etag=api.get_webhook(there).etag).value)


def test_webhook(given: Given, api: Countersign, out: Output) -> None:
    out.row(api.test_webhook(_webhook(api, given.name)))


def remove_webhook(given: Given, api: Countersign, out: Output) -> None:
    there = _webhook(api, given.name)
    api.delete_webhook(there, etag=api.get_webhook(there).etag)
    out.text("Removed.", None)


def list_deliveries(given: Given, api: Countersign, out: Output) -> None:
    found = api.list_webhook_deliveries(_webhook(api, given.name), state=given.state)
    out.rows(first(found, given), "id event state attempts created_at error")


def _webhook(api: Countersign, name: str) -> str:
    found = next((one["id"] for one in api.list_webhooks() if one["name"] == name), "")
    if not found:
        raise CommandFailed(f"There is no webhook {name!r}.")
    return found


def send_again(given: Given, api: Countersign, out: Output) -> None:
    if given.receiver in ("email", "push"):
        body: Any = {"channel": given.receiver}
        out.row(api.repeat_messages(body))
    else:
        out.row(api.repeat_deliveries(_webhook(api, given.receiver)))


def list_schedules(given: Given, api: Countersign, out: Output) -> None:
    columns = "name on_call people time_zone handover_day handover_at calendar_url"
    out.rows(first(api.list_on_call_schedules(), given), columns)


def list_overrides(given: Given, api: Countersign, out: Output) -> None:
    found = api.list_on_call_overrides(_schedule(api, given.name))
    out.rows(first(found, given), "id person begins_at ends_at")


def add_override(given: Given, api: Countersign, out: Output) -> None:
    body: Any = {"person": given.person, "begins_at": given.begins, "ends_at": given.ends}
    out.row(api.create_on_call_override(_schedule(api, given.name), body))


def remove_override(given: Given, api: Countersign, out: Output) -> None:
    there = _schedule(api, given.name)
    etag = api.get_on_call_override(there, given.id).etag
    api.delete_on_call_override(there, given.id, etag=etag)
    out.text("Removed.", None)


def _schedule(api: Countersign, name: str) -> str:
    found = next((one["id"] for one in api.list_on_call_schedules() if one["name"] == name), "")
    if not found:
        raise CommandFailed(f"There is no on-call schedule {name!r}.")
    return found


def send_raw(given: Given, api: Countersign, out: Output) -> None:
    text = sys.stdin.read() if given.data == "-" else given.data
    try:
        body = json.loads(text) if text else None
    except ValueError as error:
        raise CommandFailed(f"--data is not JSON: {error}") from error
    path = given.path if given.path.startswith("/") else f"{V1}/{given.path}"
    method = given.method.upper()
    body = {} if body is None and method == "POST" else body
    etag = given.if_match
    if method in ("PATCH", "PUT", "DELETE") and not etag:
        etag = api.send("GET", _with_version(path)).headers.get("ETag", "")
    reply = api.send(method, path, body=body, etag=etag, key="" if method == "POST" else None)
    out.json(reply.json())


def _with_version(path: str) -> str:
    """The address that tells the version of what stands at this one."""
    kept, _, last = path.rpartition("/")
    known = {"connection": kept, "operations": f"{kept}/openapi"}
    return known.get(last, path) if "/servers/" in kept else path


# Profiles


def add_profile(given: Given) -> None:
    if not given.name.strip():
        raise CommandFailed("A profile needs a name.")
    profiles = Profiles(profiles_path())
    token = "" if given.token_command else secret("Token (css_…): ")
    profile = Profile(given.url.rstrip("/"), token, given.token_command)
    api = client_of(profile.url, "" if given.unchecked else token_of(profile))
    if not given.unchecked:
        me = api.get_me()
        print(f"{shown(me['name'])}: {len(me['permissions'])} permissions, {me['expires_at']}")
    profiles.known[given.name] = profile
    profiles.current = profiles.current or given.name
    profiles.save()


def list_profiles(given: Given) -> None:
    profiles = Profiles(profiles_path())
    rows = [
        {"name": name, "url": one.url, "current": name == profiles.current}
        for name, one in sorted(profiles.known.items())
    ]
    Output(given.json).rows(rows, "name url current")


def use_profile(given: Given) -> None:
    profiles = Profiles(profiles_path())
    profiles.named(given.name)
    profiles.current = given.name
    profiles.save()


def remove_profile(given: Given) -> None:
    profiles = Profiles(profiles_path())
    profiles.named(given.name)
    del profiles.known[given.name]
    if profiles.current == given.name:
        profiles.current = ""
    profiles.save()


# Completion

COMPLETIONS = {
    "bash": """\
_countersign() {
  mapfile -t COMPREPLY < <(countersign completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _countersign countersign
""",
    "zsh": """\
#compdef countersign
_countersign() {
  local -a found
  found=("${(@f)$(countersign completion words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "$found" ]]; then compadd -- $found; else _files; fi
}
compdef _countersign countersign
""",
    "fish": """\
function __countersign
  set -l found (commandline -opc)[2..-1] (commandline -ct)
  countersign completion words $found 2>/dev/null
end
complete -c countersign -a '(__countersign)'
""",
}


def print_completion(given: Given) -> None:
    if given.shell == "words":
        for word in completed(given.words):
            print(word)
    else:
        print(COMPLETIONS[given.shell], end="")


def completed(words: Sequence[str]) -> Iterator[str]:
    """What the last word may become, after those before it."""
    parser: argparse.ArgumentParser = make_parser()
    *before, begun = words or [""]
    for word in before:
        parser = _commands(parser).get(word, parser)
    found = [*_commands(parser), *_values(parser, before[-1:])]
    if begun.startswith("-") or not found:
        found += [one for action in parser._actions for one in action.option_strings]
    yield from (one for one in found if one.startswith(begun))


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _values(parser: argparse.ArgumentParser, last: Sequence[str]) -> list[str]:
    """The choices of the option before, or of an argument."""
    for action in parser._actions:
        is_it = not action.option_strings or bool({*last} & {*action.option_strings})
        if action.choices and is_it and not isinstance(action, argparse._SubParsersAction):
            return [str(one) for one in action.choices]
    return []


# Helpers of verbs


def first(rows: Iterable[Any], given: Given) -> Iterator[Any]:
    return islice(rows, given.limit)


def pair(text: str, *, at_last: bool = False) -> tuple[str, str]:
    """NAME=VALUE: at the first sign, or at the last one where names may have it."""
    name, sign, value = text.rpartition("=") if at_last else text.partition("=")
    if not (name and sign):
        raise CommandFailed(f"{text!r} is not NAME=VALUE.")
    return name, value


def secret(prompt: str) -> str:
    """Typed without an echo, or a line of standard input: never an argument, which others see."""
    if sys.stdin.isatty():
        return getpass.getpass(prompt).strip()
    return sys.stdin.readline().strip()


def file_text(name: str) -> str:
    return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")


# The parser


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


class Group:
    """Commands below one word."""

    def __init__(self, under: Any, name: str, about: str) -> None:
        parser = under.add_parser(name, help=about, description=about)
        self.verbs = parser.add_subparsers(dest="verb", required=True, metavar="COMMAND")

    def add(self, name: str, about: str, verb: Any, *names: str, **fixed: Any) -> Any:
        """`names`: of its arguments. `fixed`: options that it does not ask for."""
        return _add(self.verbs, name, about, verb, *names, **fixed)

    def listing(self, about: str, verb: Any, *names: str) -> Any:
        return _listed(self.add("list", about, verb, *names))


def _add(under: Any, name: str, about: str, verb: Any, *names: str, **fixed: Any) -> Any:
    parser = under.add_parser(name, help=about, description=about)
    _common(parser, argparse.SUPPRESS)
    for one in names:
        parser.add_argument(one, metavar=one.upper())
    parser.set_defaults(run=verb, **fixed)
    return parser


def _listed(parser: Any) -> Any:
    parser.add_argument("--limit", type=int, default=SHOWN, metavar="N", help="rows at most")
    return parser


def _common(parser: Any, default: Any) -> None:
    """Options of every command, before and after its words."""
    parser.add_argument("--json", action="store_true", default=default, help="for programs")
    parser.add_argument("--profile", default=default, metavar="NAME", help="not the current one")


def make_parser() -> Parser:
    parser = Parser(prog="countersign", description="Countersign by its API.")
    _common(parser, None)
    under = parser.add_subparsers(dest="group", required=True, metavar="COMMAND")
    for add in (_of_profiles, _of_registry, _of_agents, _of_policy, _of_calls, _of_record):
        add(under)
    raw = _add(under, "api", "One request, as it is", send_raw, "method", "path")
    raw.add_argument("--data", default="", help="the body as JSON; - for standard input")
    raw.add_argument("--if-match", default="", help="the version; without, the present one")
    shell = _add(under, "completion", "The script for a shell", print_completion)
    shell.add_argument("shell", choices=[*SHELLS, "words"])
    shell.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _of_profiles(under: Any) -> None:
    group = Group(under, "profile", "Installations and tokens")
    add = group.add("add", "Store an installation; asks for the token", add_profile, "name", "url")
    add.add_argument("--token-command", default="", help="prints the token each time")
    add.add_argument("--unchecked", action="store_true", help="do not try the token")
    group.add("list", "The installations", list_profiles)
    group.add("use", "Make one the current one", use_profile, "name")
    group.add("remove", "Forget one", remove_profile, "name")
    _add(under, "me", "The account and its permissions", show_me)
    _add(under, "health", "Pending calls, unreachable servers", show_health)
    usage = _add(under, "usage", "Calls, errors and durations", show_usage)
    usage.add_argument("--range", choices=RANGES, default="24h")
    of = usage.add_mutually_exclusive_group()
    for name in ("agent", "server", "tool"):
        of.add_argument(f"--{name}", default="")
    of.add_argument("--rule", type=int, default=0, metavar="ID")


def _of_registry(under: Any) -> None:
    group = Group(under, "servers", "MCP servers")
    group.listing("Servers", list_servers)
    group.add("show", "One server", show_server, "name")
    new = group.add("register", "Register a server; it publishes nothing", register_server, "name")
    where = new.add_mutually_exclusive_group(required=True)
    where.add_argument("--url")
    where.add_argument("--command", help="a name in the host's catalogue")
    new.add_argument("--title", default="")
    new.add_argument("--credential", action="store_true", help="ask for it, or read one line")
    group.add("discover", "Ask the server what it offers", discover_server, "name")
    group.add("review", "What agents do not have yet, with digests", review_server, "name")
    publish = group.add("publish", "Publish what you reviewed", publish_server, "name")
    publish.add_argument("reviewed", nargs="+", metavar="TOOL=DIGEST", help="as review prints it")
    _switch(group, switch_server)
    group = Group(under, "tools", "Tools")
    group.listing("Tools", list_tools).add_argument("--server")
    group.add("show", "A tool with its newest definition", show_tool, "name")
    group = Group(under, "toolsets", "Toolsets")
    group.listing("Toolsets", list_toolsets)
    group.add("show", "One toolset", show_toolset, "name")
    group.add("create", "A new toolset", create_toolset, "name").add_argument("--title", default="")
    for verb, adds in (("add", True), ("remove", False)):
        about = "Put in" if adds else "Take out"
        parser = group.add(verb, f"{about} tools, servers, agents", fill_toolset, "name", adds=adds)
        for part in ("tool", "server", "agent"):
            parser.add_argument(f"--{part}", dest=f"{part}s", action="append", default=[])
    export = group.add("export", "Its tools as a model's API takes them", export_toolset, "name")
    formats = ("mcp", "openai", "anthropic", "gemini", "json-schema")
    export.add_argument("--format", choices=formats, default="mcp")


def _of_agents(under: Any) -> None:
    group = Group(under, "agents", "Agents")
    group.listing("Agents", list_agents)
    new = group.add("create", "A new agent", create_agent, "name")
    new.add_argument("--owner", required=True, help="a user, who decides none of its calls")
    _switch(group, switch_agent)
    group = Group(under, "tokens", "Tokens of agents")
    group.listing("Tokens", list_tokens, "agent")
    issue = group.add("issue", "A new token, which is shown once", issue_token, "agent")
    issue.add_argument("--days", type=int, default=30)
    issue.add_argument("--toolset", action="append", default=[], help="one that it opens")
    issue.add_argument("--read-only", action="store_true", help="read-only tools alone")
    about = "A new token in the place of one, which works for an hour more"
    group.add("rotate", about, rotate_token, "agent", "id")
    revoke = group.add("revoke", "End a token at once", revoke_token, "agent", "id")
    revoke.add_argument("--reason", default="")


def _of_policy(under: Any) -> None:
    Group(under, "rules", "Rules").listing("Rules, in their order", list_rules)
    Group(under, "limits", "Limits").listing("Limits", list_limits)
    group = Group(under, "policy", "Policy files")
    export = group.add("export", "What is in force, as a file", export_policy)
    export.add_argument("--output", default="", metavar="FILE")
    group.add("validate", "Whether a file is right", validate_policy, "file")
    group.add("diff", "What a file changes; exit code 2 if it does", compare_policy, "file")
    plan = group.add("plan", "A plan to confirm in the console; exit code 2", plan_policy, "file")
    plan.add_argument("--origin", default="", help="the pull request or commit")
    plan.add_argument("--calls", type=int, default=0, help="so many are judged again")
    plan.add_argument("--markdown", default="", metavar="FILE", help="for the pull request")
    group.add("apply", "Apply a plan that people confirmed", apply_policy, "digest")


def _of_calls(under: Any) -> None:
    queue = _add(under, "queue", "Pending approvals; deciding is for people", show_queue)
    _listed(queue)
    group = Group(under, "calls", "Calls")
    calls = group.listing("Calls, the newest first", list_calls)
    for name in ("state", "agent", "tool"):
        calls.add_argument(f"--{name}")
    group.add("show", "One call", show_call, "id")
    group.add("cancel", "Cancel a queued or running call", cancel_call, "id")
    group = Group(under, "stops", "Emergency stops")
    group.listing("Stops, the newest first", list_stops)
    begin = group.add("begin", "Stop an agent, a server, or everything", begin_stop)
    of = begin.add_mutually_exclusive_group(required=True)
    of.add_argument("--agent")
    of.add_argument("--server")
    of.add_argument("--everything", action="store_true")
    begin.add_argument("--reason", required=True, help="agents and users read it")
    end = group.add("end", "End a stop that another account began", end_stop, "id")
    end.add_argument("--why", required=True)
    group = Group(under, "standing-approvals", "Standing approvals")
    group.listing("The newest first", list_grants)
    group.add("revoke", "End one", revoke_grant, "id")


def _of_record(under: Any) -> None:
    group = Group(under, "entries", "The audit log")
    export = group.add("export", "Entries as a file, whose digest is an entry", export_entries)
    export.add_argument("--format", choices=("jsonl", "csv"), default="jsonl")
    export.add_argument("--output", default="", metavar="FILE")
    for parser in (group.listing("The newest first", list_entries), export):
        parser.add_argument(
            "--filter", action="append", default=[], metavar="NAME=VALUE", help="such as range=7d"
        )
    export.add_argument(
        "--background",
        action="store_true",
        help="a worker prepares the file, and the download goes on after a cut line",
    )
    group = Group(under, "exports", "Your exports of the audit log")
    group.listing("The newest first", list_exports)
    ready = group.add(
        "download", "Wait for one, and download what is missing", download_export, "id"
    )
    ready.add_argument("--output", required=True, metavar="FILE")
    group.add("cancel", "Cancel one, or delete it once it is ready", cancel_export, "id")
    group = Group(under, "users", "Users")
    group.listing("Users", list_users)
    leaver = group.add("disable", "End a user's access; the console enables", disable_user, "name")
    leaver.add_argument("--reason", default="")
    group = Group(under, "webhooks", "Webhooks and chats")
    group.listing("Webhooks", list_webhooks)
    new = group.add("add", "A new one; its secret is shown once", add_webhook, "name")
    new.add_argument("--url", default="", help="without, asked for: a chat's is a secret")
    formats = ("standard", "slack", "teams", "mattermost", "discord", "telegram")
    new.add_argument("--format", choices=formats, default="standard")
    new.add_argument("--event", action="append", default=[], help="without any: all of them")
    _switch(group, switch_webhook)
    group.add("test", "Send a test message", test_webhook, "name")
    group.add("remove", "Remove one with its deliveries", remove_webhook, "name")
    sent = _listed(group.add("deliveries", "Its messages", list_deliveries, "name"))
    sent.add_argument("--state", choices=("pending", "sent", "dropped", "dead"))
    about = "Send again what was given up: to email, push, or a webhook"
    group.add("send-again", about, send_again, "receiver")
    group = Group(under, "on-call", "On-call schedules and their overrides")
    group.listing("Schedules, and who is on call now", list_schedules)
    _listed(group.add("overrides", "Of a schedule, the newest first", list_overrides, "name"))
    new = group.add("override", "Put another user on call", add_override, "name", "person")
    new.add_argument("--begins", required=True, metavar="TIME", help="2026-03-02T18:00:00+01:00")
    new.add_argument("--ends", required=True, metavar="TIME", help="likewise, with its offset")
    group.add("remove-override", "Remove an override", remove_override, "name", "id")


def _switch(group: Group, verb: Any) -> None:
    for name, enabled in (("enable", True), ("disable", False)):
        parser = group.add(name, f"{name.capitalize()} one", verb, "name", enabled=enabled)
        parser.add_argument("--reason", default="", help="for the audit log")


OFFLINE = (add_profile, list_profiles, use_profile, remove_profile, print_completion)


def run(arguments: Sequence[str] | None = None) -> int:
    given = make_parser().parse_args(arguments)
    if given.run in OFFLINE:
        given.run(given)
        return 0
    ended: int | None = given.run(given, connect(given), Output(given.json))
    return ended or 0


def lines_of(problem: Problem) -> Iterator[str]:
    """For people. The mistakes of a policy file are in the detail already, a line each."""
    yield from str(problem).splitlines()
    for one in problem.errors:
        if "line" not in one:
            yield f"  {one.get('pointer', '')}: {one.get('detail', '')}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, 1 after an error, 2 where a policy file changes something, 64 for wrong
    arguments."""
    try:
        return run(arguments)
    except Problem as problem:
        for line in lines_of(problem):
            print(shown(line), file=sys.stderr)
    except (CommandFailed, Unreachable, OSError, UnicodeError) as error:
        print(shown(error), file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main())
