"""Pages are in the language chosen, or else in the browser's; programs are answered in English."""

import re
from datetime import timedelta
from errno import ECONNREFUSED
from uuid import uuid4

import pytest
from django.http import HttpRequest
from django.middleware.security import SecurityMiddleware
from django.template import Context
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override

from accounts import services, single_person
from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from audit.services import record
from core.messages.localizing import localized
from core.system_errors import describe
from core.templatetags.console import absolute
from registry.upstream.values import describe_silence, describe_size
from tests.console import scenery

pytestmark = pytest.mark.django_db

CHINESE = re.compile("[\u4e00-\u9fff]")
PASSWORD = "correct horse battery staple"


@pytest.mark.parametrize("asked", ["zh-CN,zh;q=0.9", "zh-Hans", "zh"])
def test_a_browser_that_asks_for_chinese_gets_it(client: Client, asked: str) -> None:
    page = client.post("/sign-in/", {"username": ""}, headers={"Accept-Language": asked})

    assert '<html lang="zh-hans"' in page.text
    assert "<h1>登录</h1>" in page.text
    assert "Password" not in page.text


@pytest.mark.parametrize("asked", ["de", "en", "zh-Hant-TW;q=0.1,en", ""])
def test_any_other_browser_gets_english(client: Client, asked: str) -> None:
    page = client.get("/sign-in/", headers={"Accept-Language": asked})

    assert '<html lang="en"' in page.text
    assert not CHINESE.findall(page.text.replace("简体中文", ""))


@pytest.mark.parametrize("cookie", [True, False])
@pytest.mark.parametrize("status", [400, 403, 500])
def test_error_pages_are_in_the_readers_language(
    status: int, cookie: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    headers = {"Accept-Language": "en" if cookie else "zh-CN"}
    if cookie:
        client.cookies["django_language"] = "zh-hans"
    if status == 400:
        headers["Host"] = "elsewhere.example.org"
    if status == 500:
        # Before any other part has chosen a language.
        monkeypatch.setattr(SecurityMiddleware, "process_request", broken)

    with override("en"):
        page = client.post("/sign-in/", headers=headers)

    assert page.status_code == status
    assert '<html lang="zh-hans"' in page.text
    assert CHINESE.search(page.text)
    assert "Go to the start page" not in page.text


def broken(self: SecurityMiddleware, request: HttpRequest) -> None:
    raise RuntimeError


@pytest.mark.long
def test_the_language_is_chosen_before_sign_in_and_kept_with_the_account(client: Client) -> None:
    person = User.objects.create_user("lin", password=PASSWORD)

    answer = client.post("/language/", {"language": "zh-hans", "next": "/sign-in/"})
    assert answer["Location"] == "/sign-in/"
    assert "<h1>登录</h1>" in client.get("/sign-in/").text
    client.post("/sign-in/", {"username": "lin", "password": PASSWORD})

    person.refresh_from_db()
    assert person.language == "zh-hans"


@pytest.mark.long
def test_another_browser_has_the_language_of_the_account_until_sign_out(client: Client) -> None:
    User.objects.create_user("lin", password=PASSWORD, language="zh-hans")

    client.post("/sign-in/", {"username": "lin", "password": PASSWORD})
    assert '<html lang="zh-hans"' in client.get("/profile/").text
    client.post("/sign-out/")

    assert '<html lang="en"' in client.get("/sign-in/").text


def test_the_profile_changes_it(client: Client, alice: User) -> None:
    client.force_login(alice)

    client.post("/language/", {"language": "zh-hans", "next": "/profile/"})

    alice.refresh_from_db()
    assert alice.language == "zh-hans"
    assert "个人资料" in client.get("/profile/").text


@pytest.mark.parametrize("language", ["", "de", "zh-hans\n", "../en"])
def test_no_other_language_can_be_chosen(client: Client, alice: User, language: str) -> None:
    client.force_login(alice)

    answer = client.post("/language/", {"language": language, "next": "https://evil.example/"})

    alice.refresh_from_db()
    assert (alice.language, answer["Location"]) == ("", "/")
    assert "django_language" not in answer.cookies


def test_the_language_is_not_changed_by_a_link(client: Client) -> None:
    assert client.get("/language/?language=zh-hans").status_code == 405


def test_programs_are_answered_in_english(client: Client) -> None:
    address = reverse("api:call", args=[uuid4()])
    answer = client.get(address, headers={"Accept-Language": "zh-CN"})

    assert answer.status_code == 401
    assert not CHINESE.findall(answer.text)


def test_the_record_is_english_and_shown_in_chinese(client: Client) -> None:
    User.objects.create_user("lin", password=PASSWORD, language="zh-hans")
    client.post(
        "/sign-in/",
        {"username": "lin", "password": PASSWORD},
        headers={"Accept-Language": "zh-CN"},
    )

    assert Entry.objects.get(action="person.signed_in").reason == "By password."
    with override("zh-hans"):
        assert localized("By password.") == "通过密码。"


def test_sentences_of_the_record_are_found_by_what_was_filled_in() -> None:
    sentences = {
        "Approved by zoe.": "由 zoe 批准。",
        "Not executed: The token was revoked.": "未执行：令牌已吊销。",
        "alice answered first: Denied.": "alice 已先行处理：已拒绝。",
        "Found 3 tools. New, to be published: 3.": "发现 3 个工具。新增，待发布：3。",
        "2 approvals of payments, confirmed by passkey; 1 denial decides": (
            "payments 中 2 人批准，使用通行密钥确认；1 人拒绝即否决"
        ),
        # The English of one has no number, and the Chinese has.
        "It takes one more person who opens the plan in the console and confirms it.": (
            "还需要 1 人在控制台中打开此计划并确认。"
        ),
        "Its last call was blocked or denied.": "最近 1 次调用被拦截或拒绝。",
        "Approved by alice, bob and zoe (for dora, eve). yes and no (for now)": (
            "由 alice、bob、zoe（代 dora、eve） 批准。yes and no (for now)"
        ),
        "Limit “mails” is reached: 5 calls per hour. Ask again in 12 min.": (
            "已达到限额“mails”：每小时 5 次调用。请在 12 分钟后重新发起。"
        ),
        "Limit “euros” is reached: 1 EUR per month.": "已达到限额“euros”：每月 1 EUR。",
        "Denied by zoe. It costs more per month.": "由 zoe 拒绝。It costs more per month.",
        # Of the schema's validator.
        "$.to: is required; $.n: must be of type string": "$.to: 必填；$.n: 类型须为 string",
        "Line 1, version: is required": "第 1 行，version：必填",
        "$: must have at least 1 property": "$: 至少须有 1 个属性",
        # Words of others stay as they are.
        "Not now. Ana is away.": "暂不执行。Ana is away.",
        "Denied by zoe. Not decided yet. Ask on Thursday.": (
            "由 zoe 拒绝。Not decided yet. Ask on Thursday."
        ),
        "What I think of it: nothing.": "What I think of it: nothing.",
    }

    with override("zh-hans"):
        assert {sentence: localized(sentence) for sentence in sentences} == sentences
    with override("en"):
        assert localized("Approved by zoe.") == "Approved by zoe."


def test_hostile_text_is_looked_at_in_bounded_steps() -> None:
    with override("zh-hans"):
        for text in ("x: " * 600, ". It was not sent" * 100, ", " * 900, "Rule: “" * 200):
            assert localized(text) == text


def test_entries_are_worded_in_chinese(client: Client, ines: User) -> None:
    record("definition.published", actor=ines.actor, reason="", tool="mailer.send_mail")
    client.force_login(ines)
    client.cookies["django_language"] = "zh-hans"

    page = client.get("/audit/").text

    assert "发布定义" in page
    now = timezone.now()
    assert f"{now.month}月{now.day}日" in page
    # The year is said where it is another one.
    with override("zh-hans"):
        said = absolute(Context(), now - timedelta(days=400))["said"]
    assert said.startswith(f"{now - timedelta(days=400):%Y}年")


@pytest.mark.long
def test_reasons_on_a_users_page_and_of_passkeys_are_chinese(client: Client) -> None:
    ada = scenery.person("ada", Role.ADMINISTRATOR, password=PASSWORD)
    lost = scenery.person("lost", password=PASSWORD)
    paul = services.create_person("paul", roles=[Role.VIEWER], by=ada)
    client.force_login(ada)
    asked = {"Accept-Language": "zh-hans"}

    assert "has a way in of their own" not in client.get(f"/people/{lost.pk}/", headers=asked).text
    assert "has set no password" not in client.get(f"/people/{paul.pk}/", headers=asked).text
    begun = client.post("/profile/passkeys/begin/", {"password": "wrong"}, headers=asked)
    assert CHINESE.search(begun.json()["error"])
    options = f"/people/{lost.pk}/factors/options/"
    assert CHINESE.search(client.post(options, {"asked": "1"}, headers=asked).json()["error"])


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        (describe_silence(2.5), "服务器 2.5 秒没有响应。"),
        ("The connection broke before the reply.", "连接在响应之前中断。"),
        ("The name mail.example was not found.", "找不到名称 mail.example。"),
        (
            f"mail.example could not be reached: {describe(ECONNREFUSED)}.",
            "无法访问 mail.example：连接被拒绝。",
        ),
        (
            "The certificate of mail.example is not valid: it has expired.",
            "mail.example 的证书无效：已过期。",
        ),
        (
            "The server did not start. The server's process ended with code 1 before the reply.",
            "服务器没有启动。服务器的进程在响应之前以代码 1 结束。",
        ),
        (describe_size(4096), "服务器的响应超过 4096 字节。"),
        (single_person.ENDED, "已有第二位审批人：从现在起，任何人都不再单独审批自己智能体的调用。"),
        ("The permissions of Auditor were set.", "已设置角色审计员的权限。"),
    ],
)
def test_what_went_wrong_at_a_server_is_in_the_readers_language(kept: str, said: str) -> None:
    with override("zh-hans"):
        assert localized(kept) == said
    with override("en"):
        assert localized(kept) == kept
