"""Connecting an account at a server, by keyboard on a phone, in both languages."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from accounts.roles import Role
from registry import services
from registry.credentials import clients, credential_store, links
from registry.models import Server, ServerCredential
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.test_axe import look
from tests.browser.test_factors import LANGUAGES, phone, picture, press
from tests.console import scenery
from tests.processes import Stack
from tests.signing_in import of
from tests.upstreams.guarded import Guarded


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    with Guarded() as server:
        yield server


@pytest.fixture
def acme(office: Office, guarded: Guarded) -> Server:
    guarded.reset()
    return services.register(
        "acme", transport="http", url=guarded.url, owner=office.bob, by=office.bob
    )


@LANGUAGES
def test_an_operator_sets_the_sign_in_and_a_person_connects_by_the_link(
    opened: Opened, office: Office, acme: Server, stack: Stack, chinese: bool
) -> None:
    page = opened(scenery.person("olga", Role.OPERATOR))
    said = phone(page, stack.web_url, chinese)
    page.goto("/servers/acme/edit/")
    press(page, "link", said("Set the sign-in", "设置登录方式"))
    page.wait_for_url("**/servers/acme/sign-in/")
    picture(page, "server-sign-in")
    page.get_by_label(
        said("Personal: each user’s own account, by OAuth", "个人：每个用户自己的账户，通过 OAuth")
    ).focus()
    page.keyboard.press("Space")
    press(page, "button", said("Save the sign-in", "保存登录方式"))
    expect(
        page.get_by_text(said("The sign-in of “acme” is set.", "“acme”的登录方式已设置。"))
    ).to_be_visible()
    assert look(page) == []

    page = opened(office.bob)
    said = phone(page, stack.web_url, chinese)
    acme.refresh_from_db()
    page.goto(urlsplit(links.page_of(acme, of(office.bob))).path)
    picture(page, "connection-link")
    assert look(page) == []
    phone(page, stack.web_url, chinese)
    press(page, "button", said("Connect", "连接"))
    expect(page.get_by_role("link", name=said("Continue to", "继续前往"))).to_be_visible()
    picture(page, "to-authorization-server")
    assert look(page) == []
    press(page, "link", said("Continue to", "继续前往"))
    page.wait_for_url("**/connections/")
    expect(page.get_by_text(said("“acme” is connected.", "“acme”已连接。"))).to_be_visible()

    credential_store.want_scopes(ServerCredential.objects.get(), "write")
    phone(page, stack.web_url, chinese)
    page.goto("/connections/")
    picture(page, "connections")
    page.locator("main summary").press("Enter")
    fails = said("your agents' calls to this server fail", "智能体对此服务器的调用会失败")
    expect(page.get_by_text(fails)).to_be_visible()
    assert look(page) == []
    press(page, "button", said("Disconnect", "断开连接"))
    expect(page.get_by_text(said("“acme” is disconnected.", "“acme”已断开连接。"))).to_be_visible()
    assert not ServerCredential.objects.exists()


@pytest.mark.long
def test_each_choice_shows_the_fields_that_it_needs(
    opened: Opened, office: Office, acme: Server
) -> None:
    page = opened(scenery.person("olga", Role.OPERATOR))
    page.goto("/servers/acme/sign-in/")
    for mode in Server.SignIn:
        page.locator(f'input[name="sign_in"][value="{mode.value}"]').check()
        expect(page.locator("#id_header")).to_be_visible(visible=mode.takes_keys)
        expect(page.locator("#id_client_id")).to_be_visible(visible=mode.startswith("oauth"))


@LANGUAGES
def test_a_person_enters_a_key_and_nobody_elses_link_opens(
    opened: Opened, office: Office, acme: Server, stack: Stack, chinese: bool
) -> None:

    clients.set_sign_in(acme, Server.SignIn.KEY, by=office.bob, header="X-Api-Key")
    page = opened(office.bob, will_complain_of=("403",))
    said = phone(page, stack.web_url, chinese)
    page.goto("/connections/")
    press(page, "link", said("Connect", "连接"))
    page.wait_for_url("**/connections/acme/**")
    page.get_by_label(said("Your key", "您的密钥")).focus()
    page.keyboard.insert_text("a key of bob's")
    page.keyboard.press("Enter")
    expect(page.get_by_text(said("“acme” is connected.", "“acme”已连接。"))).to_be_visible()
    press(page, "link", said("Replace the key", "更换密钥"))
    page.wait_for_url("**/connections/acme/**")
    picture(page, "connection-key")
    press(page, "link", said("Cancel", "取消"))
    page.wait_for_url("**/connections/")

    page.goto(urlsplit(links.page_of(acme, of(office.alice))).path)
    expect(
        page.get_by_role(
            "heading", name=said("This link is for another user", "此链接是给另一位用户的")
        )
    ).to_be_visible()
    picture(page, "connection-of-another")
    assert look(page) == []
    press(page, "link", said("Your own connections", "您自己的连接"))
    page.wait_for_url("**/connections/")
