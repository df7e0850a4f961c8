"""Calendars for tests, and a far end that serves them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def calendar(*events: str, zones: str = "") -> str:
    lines = "".join(
        f"BEGIN:VEVENT\nDTSTAMP:20260101T000000Z\n{one}\nEND:VEVENT\n" for one in events
    )
    whole = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//tests//EN\n{zones}{lines}END:VCALENDAR\n"
    return whole.replace("\n", "\r\n")


class CalendarHost:
    """What it serves, and what it was asked."""

    def __init__(self) -> None:
        self.body = b""
        self.status = 200
        self.etag = ""
        self.url = ""
        # The value of If-None-Match of each request.
        self.asked: list[str | None] = []

    def serve(self, text: str, etag: str = "") -> None:
        self.body, self.etag = text.encode(), etag


@contextmanager
def calendar_host() -> Iterator[CalendarHost]:
    host = CalendarHost()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            host.asked.append(self.headers["If-None-Match"])
            is_known = bool(host.etag) and self.headers["If-None-Match"] == host.etag
            self.send_response(304 if is_known else host.status)
            if host.etag:
                self.send_header("ETag", host.etag)
            body = b"" if is_known else host.body
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    host.url = f"http://127.0.0.1:{server.server_port}/private-7d1f0aa9/basic.ics"
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
