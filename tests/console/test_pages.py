"""Who reaches which page."""

from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from approvals.models import Approval

PAGES = {
    "overview": {"alice", "bob", "olga", "vera", "ines"},
    "registry:catalogue": {"alice", "bob", "olga", "vera", "ines"},
    "approvals:queue": {"alice", "bob", "ines"},
    "calls:list": {"alice", "bob", "olga", "vera", "ines"},
    "audit:list": {"ines"},
}
CAST = ["alice", "olga", "vera", "ines", "mallory"]


@pytest.mark.long
@pytest.mark.parametrize("name", CAST)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_for_those_whose_role_has_it(
    client: Client, request: pytest.FixtureRequest, page: str, name: str
) -> None:
    client.force_login(request.getfixturevalue(name))

    response = client.get(reverse(page))

    assert response.status_code == (200 if name in PAGES[page] else 403)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.django_db
def test_a_stranger_is_asked_to_sign_in_and_comes_back(client: Client, page: str) -> None:
    response = client.get(reverse(page))

    assert response.status_code == 302
    assert response["Location"] == f"{reverse('accounts:sign_in')}?next={reverse(page)}"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_only_shows_takes_no_post(client: Client, ines: User, page: str) -> None:
    client.force_login(ines)

    assert client.post(reverse(page)).status_code == 405


def test_the_navigation_offers_only_what_one_may(client: Client, vera: User) -> None:
    client.force_login(vera)

    page = client.get(reverse("registry:catalogue")).text

    assert reverse("calls:list") in page
    assert reverse("approvals:queue") not in page
    assert reverse("audit:list") not in page


def test_an_expired_session_sends_the_whole_page_to_sign_in(client: Client, db: None) -> None:
    here = {"HX-Request": "true", "HX-Current-URL": "http://testserver/queue/"}

    response = client.get(reverse("approvals:count"), headers=here)

    assert response["HX-Redirect"] == f"{reverse('accounts:sign_in')}?next=/queue/&ended=1"


def test_no_page_allows_inline_script(client: Client, alice: User) -> None:
    client.force_login(alice)

    response = client.get(reverse("registry:catalogue"))

    assert "default-src 'self'" in response["Content-Security-Policy"]
    assert "unsafe" not in response["Content-Security-Policy"]


@pytest.mark.parametrize("page", PAGES)
def test_an_empty_list_says_what_to_do_next(client: Client, ines: User, page: str) -> None:
    client.force_login(ines)

    text = client.get(reverse(page), {"state": "retired"} if "catalogue" in page else {}).text

    assert any(part in text for part in ('class="empty"', "<tbody>", "checklist"))


@pytest.mark.parametrize(
    "page",
    [
        "/calls/?agent=%00",
        "/access/?person=a%00",
        "/access/?kind=tool&name=%00",
        "/access/?act=accounts.view_user&beyond=%00",
    ],
)
def test_a_nul_in_a_query_is_no_error_of_ours(client: Client, ines: User, page: str) -> None:
    client.force_login(ines)

    assert client.get(page).status_code == 400


def test_a_nul_in_a_field_is_no_error_of_ours(as_alice: Client, held: UUID) -> None:
    given = {"reason": "no\0", "digest": Approval.objects.get(pk=held).call.call_digest}

    assert as_alice.post(f"/queue/{held}/refuse/", given).status_code == 400
    assert Approval.objects.get(pk=held).state == Approval.State.WAITING
