"""Sentences that are kept in English, each as pages show it in Chinese."""

import pytest
from django.utils.translation import override

from core.messages import localizing
from core.messages.localizing import MessagePattern, localized


def filled(pattern: MessagePattern) -> tuple[str, str]:
    names = range(len(pattern.names))
    values = [str(7 + n) if n in pattern.numbers else f"zoe{n}" for n in names]
    english = "".join(a + b for a, b in zip(pattern.texts, [*values, ""], strict=True))
    by_name = dict(zip(pattern.names, values, strict=True))
    return english, localizing._filled(pattern.translation, by_name)


def test_each_line_is_read_by_itself() -> None:
    said = "“%s” is not published automatically: the findings must be reviewed first."
    lines = [
        "Found 4 tools. Published: 2.",
        said % "evil.do",
        *[said % "evil.say"] * 40,
        "Own words.",
    ]

    with override("zh-hans"):
        first, second, *others = localized("\n".join(lines)).split("\n")
        few = localized("\n".join(lines[:2]))
        value = localized("Limit “two\nlines” is reached: 5 calls.")

    assert first == "发现 4 个工具。已发布：2。"
    assert second == "“evil.do”不会自动发布：须有人阅读检查发现的内容。"
    assert few == f"{first}\n{second}"
    assert value.startswith("已达到限额“two\nlines”")
    assert others == ["“evil.say”不会自动发布：须有人阅读检查发现的内容。"] * 40 + ["Own words."]


@pytest.mark.long
def test_each_is_known_again_by_what_was_filled_in() -> None:
    _plain, patterns = localizing._catalogue()
    assert len(patterns) > 500
    # Short ones are known by what they measure alone.
    known = dict(filled(one) for one in patterns if not one.is_short)
    with override("zh-hans"):
        assert {english: localized(english) for english in known} == known


@pytest.mark.parametrize(
    ("sentence", "chinese"),
    [
        ("Line 1, column 14: “>” cannot stand here.", "第 1 行第 14 列：此处不能出现“>”。"),
        (
            "“Billing 账单” is no name for a server: use 1 to 32 of a–z, 0–9, - and _."
            " “billing” would do.",
            "“Billing 账单”不能用作服务器名称：请使用 1 到 32 个 a–z、0–9、- 和 _。"
            "可以使用“billing”。",
        ),
        (
            "“a” is taken by, or could pass for, the server “b”. “a-2” would do.",
            "“a”与服务器“b”重名或容易混淆。可以使用“a-2”。",
        ),
        (
            "Found 3 tools. Changed, needs review: 2. Left out: 1. Gone: 1.",
            "发现 3 个工具。已变更，待审核：2。已忽略：1。已移除：1。",
        ),
        (
            "“1ist” is left out: “b.1ist” could pass for “b.list”: rename it there.",
            "“1ist”已忽略：“b.1ist”与“b.list”容易混淆：请在服务器端重命名。",
        ),
        (
            "Denied by zoe. A label is one of source, sink.",
            "由 zoe 拒绝。标记只能是以下之一：source, sink。",
        ),
    ],
)
def test_what_follows_a_sentence_is_no_part_of_it(sentence: str, chinese: str) -> None:
    with override("zh-hans"):
        assert localized(sentence) == chinese
