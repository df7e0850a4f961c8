"""The service worker is served at the root, and keeps the page for when there is no connection with
all that it is drawn with."""

import re

import pytest
from django.test import Client


def test_anybody_reads_it_and_browsers_ask_again_each_time(client: Client) -> None:
    answer = client.get("/service-worker.js")

    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/javascript"
    assert "no-cache" in answer["Cache-Control"]
    # What it may fetch is what pages may.
    assert "default-src 'self'" in answer["Content-Security-Policy"]
    assert client.post("/service-worker.js").status_code == 405


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_what_the_kept_page_is_drawn_with_is_kept_too(client: Client, language: str) -> None:
    page = client.get("/offline/", headers={"Accept-Language": language}).text
    worker = client.get("/service-worker.js").text

    assert f'<html lang="{language}"' in page
    parts = re.findall(r'(?:src|href)="(/static/[^"]+\.(?:css|js|woff2|svg))"', page)
    assert len(parts) > 3
    assert [name for name in parts if f'"{name}"' not in worker] == []
    assert client.post("/offline/").status_code == 405
