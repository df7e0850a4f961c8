"""Only whoever ends a session takes its cookie back."""

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from accounts.roles import Role
from tests.console import scenery

pytestmark = pytest.mark.django_db
COOKIE = settings.SESSION_COOKIE_NAME


def test_what_comes_late_with_a_session_that_was_renewed_takes_no_cookie(client: Client) -> None:
    client.force_login(scenery.person("alice", Role.APPROVER))
    late = Client()
    late.cookies[COOKIE] = client.cookies[COOKIE].value
    client.session.flush()

    answer = late.get(reverse("approvals:queue"))

    assert answer.status_code == 302
    assert COOKIE not in answer.cookies
    assert "Cookie" in answer["Vary"]


def test_who_signs_out_keeps_none(client: Client) -> None:
    client.force_login(scenery.person("alice", Role.APPROVER))

    answer = client.post(reverse("accounts:sign_out"))

    assert answer.cookies[COOKIE].value == ""
