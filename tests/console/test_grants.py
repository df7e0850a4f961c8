"""Standing grants in the console: made after a look, listed, taken back by who may."""

import pytest
from django.db.models import F
from django.http import HttpResponse
from django.test import Client

from accounts.models import Agent, User
from accounts.roles import Role
from approvals.models import Grant
from approvals.standing_approvals import Terms, make
from calls.models import Call
from registry.models import Tool
from tests.approvals.test_grants import approve
from tests.console import scenery
from tests.forms import submitted

pytestmark = pytest.mark.django_db


@pytest.fixture
def approved(scout: Agent, send_mail: Tool, alice: User) -> Call:
    return approve(scout, send_mail, alice)


@pytest.fixture
def grant(approved: Call, alice: User) -> Grant:
    return make(approved, Terms(), by=alice)


def post(client: Client, call: Call, page: str, **changes: str) -> HttpResponse:
    return client.post(f"/queue/{call.pk}/grant/", submitted(page, **changes))  # type: ignore[return-value]


def text(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.long
def test_the_card_of_an_approved_call_offers_one(as_alice: Client, approved: Call) -> None:
    assert f"/queue/{approved.pk}/grant/" in text(as_alice.get(f"/queue/{approved.pk}/"))


@pytest.mark.long
def test_it_is_made_after_a_look(as_alice: Client, approved: Call) -> None:
    page = text(as_alice.get(f"/queue/{approved.pk}/grant/"))
    assert "It would have matched 1 of your 1 approval of this tool" in page
    wide = {"is.0": "set", "values.0": "ana@example.org\r\nben@example.org", "max_uses": "3"}

    looked = text(post(as_alice, approved, page, do="make", **wide))
    assert not Grant.objects.exists()
    made = post(as_alice, approved, looked, do="make")

    assert made.status_code == 302
    grant = Grant.objects.get()
    assert grant.max_uses == 3
    assert grant.bounds[0]["values"] == ['"ana@example.org"', '"ben@example.org"']
    listed = text(as_alice.get("/grants/"))
    assert "0 of 3 times" in listed
    assert "$.to is one of" in listed


@pytest.mark.long
def test_what_the_page_offers_first_is_made_at_once(as_alice: Client, approved: Call) -> None:
    page = text(as_alice.get(f"/queue/{approved.pk}/grant/"))

    assert post(as_alice, approved, page, do="make", note="As it is.").status_code == 302
    assert Grant.objects.get().bounds == []


@pytest.mark.long
def test_what_is_wrong_is_said_and_kept(as_alice: Client, approved: Call) -> None:
    page = text(as_alice.get(f"/queue/{approved.pk}/grant/"))

    answer = post(as_alice, approved, page, do="look", days_valid="31")

    assert answer.status_code == 422
    assert "It holds for 1 to 30 days." in text(answer)
    assert 'value="31"' in text(answer)
    assert 'value="make"' not in text(answer)


@pytest.mark.long
def test_who_may_not_make_one_is_told_why(client: Client, approved: Call, bob: User) -> None:
    client.force_login(scenery.person("carol", Role.APPROVER))

    page = text(client.get(f"/queue/{approved.pk}/grant/"))

    assert "only who approved the call alone" in page
    assert "<textarea" not in page


@pytest.mark.long
@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_only_who_decides_or_audits_sees_them(client: Client, grant: Grant, role: Role) -> None:
    client.force_login(scenery.person("somebody", role))

    assert client.get("/grants/").status_code == 403
    assert client.get(f"/queue/{grant.call_id}/grant/").status_code == 403
    assert client.post(f"/grants/{grant.pk}/revoke/").status_code == 403
    assert "/grants/" not in text(client.get("/settings/"))


@pytest.mark.long
def test_the_maker_revokes(as_alice: Client, grant: Grant) -> None:
    as_alice.post(f"/grants/{grant.pk}/revoke/")

    grant.refresh_from_db()
    assert grant.revoked_by is not None
    assert "No standing approvals" in text(as_alice.get("/grants/"))
    assert "Revoked" in text(as_alice.get("/grants/?ended=1"))


@pytest.mark.long
def test_others_revoke_only_with_the_permission(
    client: Client, grant: Grant, ines: User, bob: User
) -> None:
    for person in (ines, bob):
        client.force_login(person)
        assert client.post(f"/grants/{grant.pk}/revoke/").status_code == 403
        assert client.post("/grants/revoke/", {"whose": "all"}).status_code == 403
        assert "Revoke" not in text(client.get("/grants/")).replace("Revoking", "")
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))

    client.post(f"/grants/{grant.pk}/revoke/")

    assert Grant.objects.exclude(revoked_at=None).exists()


@pytest.mark.long
def test_a_revocation_is_confirmed_first(as_alice: Client, grant: Grant, bob: User) -> None:
    there, every = f"/grants/{grant.pk}/revocation/", "/grants/revocation/"
    listed = text(as_alice.get("/grants/"))
    assert f'href="{there}"' in listed
    assert f"/grants/{grant.pk}/revoke/" not in listed

    for address in (there, every):
        page = text(as_alice.get(address))
        assert f"<dt>Uses left</dt><dd>{grant.max_uses}</dd>" in page
        assert "require approval again" in page

    assert not Grant.objects.ended().exists()
    assert as_alice.get(f"{every}?whose=all").status_code == 403
    theirs = Client()
    theirs.force_login(bob)
    assert theirs.get(there).status_code == 403
    as_alice.post(f"/grants/{grant.pk}/revoke/")
    assert as_alice.get(there).status_code == 404


def test_all_are_revoked_at_once(client: Client, grant: Grant) -> None:
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))

    client.post("/grants/revoke/", {"whose": "mine"})
    assert Grant.objects.filter(revoked_at=None).exists()
    client.post("/grants/revoke/", {"whose": "all"})

    assert not Grant.objects.filter(revoked_at=None).exists()


@pytest.mark.long
def test_a_used_up_one_stands_no_longer(as_alice: Client, grant: Grant) -> None:
    assert "Revoke mine (1)" in text(as_alice.get("/grants/"))
    for _use in range(grant.max_uses):
        Grant.objects.update(uses=F("uses") + 1)

    left, ended = text(as_alice.get("/grants/")), text(as_alice.get("/grants/?ended=1"))
    as_alice.post("/grants/revoke/", {"whose": "mine"})

    assert "No standing approvals" in left
    assert "Used up" in ended
    assert f"grants/{grant.pk}/revoke" not in ended
    assert Grant.objects.get().revoked_at is None


def test_what_can_be_revoked_together_is_what_still_stands(
    as_alice: Client, grant: Grant, approved: Call, alice: User
) -> None:
    make(approved, Terms(max_uses=1), by=alice)
    Grant.objects.filter(max_uses=1).update(uses=1)

    assert "Revoke mine (1)" in text(as_alice.get("/grants/"))


@pytest.mark.long
def test_a_suspended_one_says_so(as_alice: Client, grant: Grant, send_mail: Tool) -> None:
    scenery.see(send_mail.server, {**scenery.SEND, "description": "Otherwise."})

    assert "Suspended: the definition changed" in text(as_alice.get("/grants/"))
