"""Pages are in one language, whatever the browser asks for."""

import re

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db

CHINESE = re.compile("[\u4e00-\u9fff]")


@pytest.mark.parametrize("asked", ["zh-CN,zh;q=0.9", "zh-Hans", "en"])
def test_no_page_is_half_in_another_language(client: Client, asked: str) -> None:
    page = client.post("/sign-in/", {"username": ""}, headers={"Accept-Language": asked})

    assert '<html lang="en"' in page.text
    assert not CHINESE.findall(page.text)
