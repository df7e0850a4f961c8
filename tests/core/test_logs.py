"""A log line has time, level, logger, call and message, and nothing that lets somebody in."""

import asyncio
import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.test import Client

from calls.queue import worker
from core import telemetry
from core.logs import CallContext, RepeatFilter, configuration, style

CALL = UUID("019f2c3e-0000-7000-8000-000000000001")
OTHER = UUID("019f2c3e-0000-7000-8000-000000000002")
TOKEN = f"csa_{'a' * 8}_{'b' * 43}_{'c' * 6}"
SECRETS = [
    (f"sent {TOKEN} twice", "sent csa_aaaaaaaa_… twice"),
    ("Authorization: Bearer abcdefgh.ijkl-1", "Authorization: Bearer …"),
    ("Not Found: /sign-in/abcdefghijk/", "Not Found: /sign-in/…/"),
    ("Forbidden: /password-reset/7.d1a2b3-c4d5e6f7/", "Forbidden: /password-reset/…/"),
    ("redis://:hunter2@valkey:6379/0", "redis://:…@valkey:6379/0"),
    ("postgresql://app:hunter2@db/x", "postgresql://app:…@db/x"),
    ("http://db.example:5432/x", "http://db.example:5432/x"),
]


@contextmanager
def logger(of: str) -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """Set up as settings do, on a logger of its own."""
    made = configuration(style=of, level="INFO")
    formatter = made["formatters"]["line"]["()"]()
    out, log = io.StringIO(), logging.getLogger("tests.logs")
    handler = logging.StreamHandler(out)
    handler.setFormatter(formatter)
    for names in made["filters"].values():
        handler.addFilter(names["()"]())
    log.addHandler(handler)
    try:
        yield log, out
    finally:
        log.removeHandler(handler)


def test_a_line_of_text() -> None:
    with logger("text") as (log, out):
        log.warning("the broker is away")
        with CallContext(CALL):
            log.warning("the broker is away")

    without, within = out.getvalue().splitlines()
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    assert re.fullmatch(rf"{time} WARNING tests\.logs \[-\] the broker is away", without)
    assert re.fullmatch(rf"{time} WARNING tests\.logs \[{CALL}\] the broker is away", within)


@pytest.mark.django_db
@pytest.mark.parametrize("of", ["text", "json"])
def test_who_is_refused_in_the_admin_leaves_one_line(
    admin_client: Client, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    made = configuration(style=of, level="INFO")
    with logger(of) as (_log, out):
        (handler,) = logging.getLogger("tests.logs").handlers
        monkeypatch.setattr(logging.getLogger("django.request"), "handlers", [handler])
        assert set(made["handlers"]["stderr"]["filters"]) == made["filters"].keys()

        assert admin_client.get("/admin/calls/call/add/").status_code == 403

    assert "Traceback" not in out.getvalue()
    (line,) = out.getvalue().splitlines()
    assert "Forbidden" in line


def test_a_line_of_json() -> None:
    with logger("json") as (log, out):
        log.warning("two\nlines\x1b[31m")
        with CallContext(CALL):
            try:
                raise ValueError(TOKEN)
            except ValueError:
                log.exception("it failed")

    plain, failed = map(json.loads, out.getvalue().splitlines())
    ids = ["call_id", "request_id", "trace_id"]
    assert list(plain) == ["time", "level", "logger", *ids, "message"]
    assert (plain["level"], plain["logger"], plain["call_id"]) == ("WARNING", "tests.logs", None)
    assert plain["message"].startswith("two\nlines")
    assert "\x1b" not in plain["message"]
    assert failed["call_id"] == str(CALL)
    assert failed["exception"].startswith("Traceback (most recent call last):\n")
    assert failed["exception"].endswith("ValueError: csa_aaaaaaaa_…")


@pytest.mark.parametrize("of", ["text", "json"])
@pytest.mark.parametrize(("text", "shown"), SECRETS)
def test_what_lets_somebody_in_is_cut_off(of: str, text: str, shown: str) -> None:
    with logger(of) as (log, out):
        log.error("%s", text)

    line = out.getvalue().strip()
    message = json.loads(line)["message"] if of == "json" else line.partition("[-] ")[2]
    assert message == shown


@pytest.mark.parametrize("of", ["text", "json"])
def test_a_line_that_is_the_same_again_is_counted(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(log: logging.Logger, error: Exception) -> None:
        try:
            raise error
        except OSError:
            log.exception("it goes on in a second")

    now = [1000.0]
    monkeypatch.setattr("core.logs.time.monotonic", lambda: now[0])
    with logger(of) as (log, out):
        for _second in range(50):
            fail(log, OSError("the database is away"))
            now[0] += 1
        fail(log, OSError("no space left"))
        log.info("as usual")
        log.info("as usual")
        for _line in range(2):
            with CallContext(CALL):
                log.warning("of a call")
        now[0] += 30
        fail(log, OSError("the database is away"))

    lines = [line for line in out.getvalue().splitlines() if not line.startswith("    |")]
    assert len(lines) == 7
    if of == "json":
        assert [json.loads(line).get("repeated") for line in lines] == [None] * 6 + [49]
    else:
        assert lines[-1].endswith("it goes on in a second (49 more since the last one)")


def test_what_is_remembered_of_a_line_is_bounded() -> None:
    found = RepeatFilter()
    record = logging.LogRecord("x", logging.WARNING, "", 0, "y" * 1_000_000, None, None)

    assert [found.filter(record) for _ in range(2)] == [True, False]
    assert len(repr(found._seen)) < 5_000


async def test_two_calls_at_once_keep_their_ids() -> None:
    with logger("json") as (log, out):

        async def handle(call: UUID) -> None:
            with CallContext(call):
                await asyncio.sleep(0)
                log.info("%s", call)

        await asyncio.gather(handle(CALL), handle(OTHER))

    for line in map(json.loads, out.getvalue().splitlines()):
        assert line["call_id"] == line["message"]


@pytest.mark.parametrize("of", ["text", "json"])
async def test_what_is_logged_within_a_span_has_the_id_of_its_trace(of: str) -> None:
    trace, go = "0af7651916cd43dd8448eb211c80319c", asyncio.Event()
    parent = {telemetry.TRACEPARENT: f"00-{trace}-b7ad6b7169203331-01"}
    with logger(of) as (log, out):

        async def lives_on() -> None:
            await go.wait()
            log.info("later")

        with CallContext(CALL), telemetry.opened("server", "tools/call", {}, parent):
            log.info("within")
            task = asyncio.create_task(lives_on())
        go.set()
        await task

    within, later = out.getvalue().splitlines()
    if of == "json":
        assert (json.loads(within)["trace_id"], json.loads(later)["trace_id"]) == (trace, None)
    else:
        assert f"[{CALL} {trace}] within" in within
        assert "[-] later" in later


async def test_a_task_that_outlives_the_call_has_its_id_no_longer() -> None:
    go = asyncio.Event()
    with logger("json") as (log, out):

        async def lives_on() -> None:
            await go.wait()
            log.info("later")

        with CallContext(CALL):
            task = asyncio.create_task(lives_on())
        go.set()
        await task

    assert json.loads(out.getvalue())["call_id"] is None


def test_what_a_worker_logs_of_a_call_has_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    with logger("json") as (log, out):

        async def execute(request: SimpleNamespace) -> None:
            log.info("sent")

        runtime = SimpleNamespace(engine=SimpleNamespace(owner="w", execute=execute))
        requests = iter([SimpleNamespace(call_id=CALL), None])
        monkeypatch.setattr(worker, "background", lambda: runtime)
        monkeypatch.setattr(worker, "claim_next", lambda owner: next(requests))

        worker.work()
        log.info("idle")

    assert [json.loads(line)["call_id"] for line in out.getvalue().splitlines()] == [
        str(CALL),
        None,
    ]


def test_text_for_a_terminal_and_json_for_a_collector() -> None:
    assert style("", terminal=True) == "text"
    assert style("", terminal=False) == "json"
    assert style("text", terminal=False) == "text"
    with pytest.raises(ValueError, match="COUNTERSIGN_LOG_FORMAT"):
        style("xml", terminal=False)
