"""Who may do what, as people set and read it: with the keyboard, and on a phone."""

import pytest
from playwright.sync_api import Page, expect

from accounts import custom_roles, service_accounts, services
from accounts.custom_roles import RoleTerms
from accounts.models import CustomRole, ServiceToken, User
from accounts.roles import Role
from registry.models import Server
from tests.browser.conftest import Opened
from tests.browser.hands import choose
from tests.browser.scene import Office
from tests.console import scenery

pytestmark = pytest.mark.long
PHONE = {"width": 360, "height": 740}


@pytest.fixture
def ada(office: Office) -> User:
    """An administrator."""
    return scenery.person("ada", Role.ADMINISTRATOR)


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def press(page: Page, role: str, name: str) -> None:
    """As who has no mouse does."""
    found = page.get_by_role(role, name=name)  # type: ignore[arg-type]
    found.focus()
    page.keyboard.press("Enter")


@pytest.mark.parametrize("script", [True, False])
def test_a_service_account_is_made_and_its_token_rotated_and_revoked_by_keyboard(
    opened: Opened, ada: User, script: bool
) -> None:
    page = opened(ada, java_script_enabled=script, viewport=PHONE)
    page.goto("/settings/")
    page.locator("main").get_by_role("link", name="Service accounts").press("Enter")
    page.get_by_role("link", name="New service account").first.press("Enter")
    press(page, "link", "Cancel")
    page.get_by_role("link", name="New service account").first.press("Enter")
    page.get_by_label("Name").fill("robot")
    page.get_by_label("Purpose").fill("Nightly reports")
    page.get_by_label("View servers").press("Space")
    assert fits(page)
    press(page, "button", "Create service account")

    expect(page.get_by_text("Nightly reports")).to_be_visible()
    page.get_by_label("Valid for days").fill("7")
    page.keyboard.press("Enter")
    expect(page.locator("#token")).to_contain_text("css_")
    assert fits(page)
    first = ServiceToken.objects.get()
    press(page, "button", f"Rotate {first}")
    expect(page.get_by_text("works for one more hour")).to_be_visible()
    press(page, "link", f"Revoke {first}")
    press(page, "link", "Cancel")
    press(page, "link", f"Revoke {first}")
    page.get_by_label("Reason (optional)").fill("It stood in a log.")
    page.keyboard.press("Enter")
    expect(page.get_by_text("it opens nothing any more")).to_be_visible()

    page.get_by_label("View calls").press("Space")
    press(page, "button", "Save the permissions")
    expect(page.get_by_text("The permissions of “robot” are as chosen.")).to_be_visible()
    page.get_by_label("Reason (optional)").last.fill("Retired.")
    press(page, "button", "Disable")
    expect(page.get_by_text("its tokens open nothing")).to_be_visible()
    press(page, "button", "Enable")
    expect(page.get_by_text("“robot” is on.")).to_be_visible()


def test_a_services_token_is_copied_and_its_account_found_again(opened: Opened, ada: User) -> None:
    page = opened(ada, permissions=["clipboard-read", "clipboard-write"])
    page.goto("/new/service-account/")
    page.get_by_label("Name").fill("robot")
    page.get_by_label("Purpose").fill("Nightly reports")
    page.get_by_label("View calls").check()
    page.get_by_role("button", name="Create service account").click()
    page.get_by_role("button", name="Create token").click()
    token = page.locator("#token").inner_text()

    page.get_by_role("button", name="Copy the token").click()

    expect(page.get_by_role("button", name="Copied the token")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == token
    page.locator("main").get_by_role("link", name="Service accounts").click()
    page.get_by_role("link", name="robot").click()
    expect(page.get_by_text("Nightly reports")).to_be_visible()


@pytest.mark.parametrize("script", [True, False])
def test_a_role_for_a_tag_is_made_changed_and_retired_by_keyboard(
    opened: Opened, ada: User, script: bool
) -> None:
    page = opened(ada, java_script_enabled=script, viewport=PHONE)
    page.goto("/settings/")
    page.locator("main").get_by_role("link", name="Roles").press("Enter")
    page.get_by_role("link", name="New role").press("Enter")
    page.get_by_role("link", name="Cancel").press("Enter")
    page.get_by_role("link", name="New role").press("Enter")
    page.get_by_label("Name").fill("Payments operator")
    page.get_by_label("Description").fill("Operates payments")
    page.get_by_label("Refresh servers and publish definitions").press("Space")
    page.get_by_label("Only servers with a tag").fill("payments")
    assert fits(page)
    press(page, "button", "Create role")

    expect(page.get_by_text("“Payments operator” is there. Nobody has it yet.")).to_be_visible()
    assert fits(page)
    page.get_by_label("Only servers with a tag").fill("payments till")
    press(page, "button", "Save the role")
    expect(page.get_by_text("The role “Payments operator” is changed.")).to_be_visible()
    assert CustomRole.objects.get().server_tags == ["payments", "till"]
    page.locator("main").get_by_role("link", name="Roles").press("Enter")
    page.get_by_role("link", name="Payments operator").press("Enter")
    page.get_by_label("Reason (optional)").fill("Merged.")
    press(page, "button", "Retire the role")
    expect(page.get_by_text("nobody has it, and nobody gets it")).to_be_visible()


def test_permissions_of_a_role_are_searched_and_limited_by_tags(
    opened: Opened, office: Office, ada: User
) -> None:
    page = opened(ada)
    page.goto("/new/role/")
    page.get_by_label("Name").fill("Payments operator")
    page.get_by_label("Description").fill("Operates payments")
    search = page.get_by_role("searchbox", name="Search: Permissions")
    search.press_sequentially("refresh servers")
    search.press("ArrowDown")
    page.keyboard.press("Space")
    page.get_by_label("Only servers with a tag").fill("payments")
    page.get_by_label("Only toolsets with a tag").fill("payments")
    page.get_by_label("Only agents with a tag").fill("payments")
    page.keyboard.press("Enter")
    expect(page.get_by_text("“Payments operator” is there.")).to_be_visible()
    role = CustomRole.objects.get()
    services.set_groups(office.bob, [*office.bob.groups.all(), role.group], by=ada)

    page.get_by_label("Description").fill("Operates all payments")
    search.fill("publish")
    page.get_by_label("Refresh servers and publish definitions").click()
    search.fill("change toolsets")
    page.get_by_label("Change toolsets").press("Space")
    page.get_by_label("Only toolsets with a tag").fill("payments till")
    page.get_by_label("Only agents with a tag").fill("payments till")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The role “Payments operator” is changed.")).to_be_visible()
    role.refresh_from_db()
    assert role.description == "Operates all payments"
    assert role.toolset_tags == role.agent_tags == ["payments", "till"]
    page.locator("main").get_by_role("link", name="bob").click()
    expect(page.get_by_role("heading", name="bob")).to_be_visible()


def test_who_may_do_what_is_asked_by_keyboard(opened: Opened, office: Office, ada: User) -> None:
    page = opened(ada)
    page.goto("/access/")
    page.get_by_label("User", exact=True).fill("bob")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="What may bob do?")).to_be_visible()
    choose(page.get_by_label("Kind of object"), "server")
    page.get_by_label("Name, or the id of a call").fill("mail")
    page.get_by_role("button", name="Show").press("Enter")
    expect(page.get_by_text("There is no such object")).to_be_visible()
    page.get_by_role("link", name="mailer", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="bob and mailer")).to_be_visible()

    page.get_by_role("link", name="Others").press("Enter")
    page.get_by_label("Find a user").fill("alice")
    page.keyboard.press("Enter")
    verdicts = page.get_by_role("region").get_by_role("listitem")
    expect(verdicts).to_have_count(1)
    expect(verdicts).to_contain_text("alice")
    page.get_by_label("User", exact=True).fill("nobody at all")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("There is no user with this name.")).to_be_visible()


def test_tags_for_roles_are_set_with_the_keyboard(opened: Opened, office: Office) -> None:
    page = opened(office.alice, viewport=PHONE)
    page.goto("/roles/")
    page.get_by_role("link", name="Tags for roles").press("Enter")
    first = Server.objects.kept().earliest("slug")
    field = page.locator(f'[name="tags:{first.slug}"]')
    field.fill("payments")
    field.press("Enter")

    expect(page.get_by_text("The tags are saved.")).to_be_visible()
    assert fits(page)
    first.refresh_from_db()
    assert first.tags == ["payments"]
    press(page, "button", "Save the tags Servers")
    page.locator("main").get_by_role("link", name="Roles").press("Enter")
    expect(page.get_by_role("heading", name="Fixed roles")).to_be_visible()


@pytest.mark.parametrize("script", [True, False])
def test_an_auditor_reads_exports_and_signs_off_the_access_review_by_keyboard(
    opened: Opened, office: Office, ada: User, script: bool
) -> None:
    terms = RoleTerms(frozenset({"registry.operate_server"}), server_tags=("payments",))
    role = custom_roles.create("Payments", description="Operates", terms=terms, by=ada)
    services.set_groups(office.bob, [*office.bob.groups.all(), role.group], by=ada)
    service_accounts.create("robot", purpose="Reports", scopes=["registry.view_server"], by=ada)
    page = opened(scenery.person("ines", Role.AUDITOR), java_script_enabled=script, viewport=PHONE)

    def read() -> None:
        page.goto("/settings/")
        page.locator("main").get_by_role("link", name="Access review").press("Enter")
        expect(page.get_by_text("Nobody has signed it off yet.")).to_be_visible()

    read()
    assert fits(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="Export CSV").press("Enter")
    assert "bob" in download.value.path().read_text()
    page.get_by_role("link", name="Payments").press("Enter")
    expect(page.get_by_role("heading", name="Payments")).to_be_visible()
    for kind, name in (("Users", "bob"), ("Service accounts", "robot"), ("Agents", "scout")):
        read()
        page.get_by_role("link", name=f"{kind} (").press("Enter")
        assert fits(page)
        page.locator("tbody").get_by_role("link", name=name, exact=True).first.press("Enter")
        expect(page.get_by_role("heading", name=name).first).to_be_visible()

    read()
    page.get_by_label("Reason").fill("Quarterly review.")
    press(page, "button", "Sign off")
    expect(page.get_by_text("Access is the same now.")).to_be_visible()
    assert fits(page)
    page.get_by_role("link", name="Entry").press("Enter")
    expect(page.get_by_text("Quarterly review.").first).to_be_visible()
