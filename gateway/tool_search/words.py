"""The words of a tool's definition and of a question, in a form in which they meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

import snowballstemmer

from registry.versions.search_index import UNSPACED, argument_texts, bigrams, parted, split

# A definition may have 256 KB; a question is a sentence.
MAX_TEXT = 8_000
# They stand in questions and descriptions alike and tell no tool from another.
_EMPTY_WORDS = """
a about all an and any are as at be by can do does for from has have how i if in into is it its me
my need of on or our please so some that the their them then there these this to use using want was
we what when where which who will with would you your
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
_EMPTY_CHINESE = frozenset(
    "的了吗呢吧啊请我你您他她它们个一是有和与或及在把被将要想能可以帮给让这那对"
)
# Verbs and nouns that servers use for the same thing: each finds the others, for less.
_SYNONYMS = """
create add new make insert register open
delete remove drop destroy erase discard
update edit change modify set alter patch
get fetch read show view retrieve display lookup see
list enumerate browse
search find query look
send post deliver
cancel abort stop
start run launch trigger execute begin
pay charge
refund reimburse
user person member people employee
customer client
ticket issue
mail email
message chat
picture image photo
folder directory
appointment meeting event
schedule calendar
bill invoice
purchase order
deploy release rollout
machine server host
error failure exception
upload store save
发送 推送 发
创建 新建 添加 新增 建立 登记
删除 移除 清除 去掉
修改 更新 编辑 变更 改
查询 查看 搜索 检索 查找 查 看看 找
取消 撤销 撤回
预订 预定 订
路线 导航 怎么走
快递 物流 包裹
邮件 邮箱
消息 通知
员工 同事 人员
客户 顾客
付款 支付 缴费
退款 退钱
"""
_stem = lru_cache(maxsize=50_000)(snowballstemmer.stemmer("english").stemWord)


def words(text: str) -> Iterator[str]:
    """Stems of words, and of scripts that set no spaces between words every two characters."""
    text = text[:MAX_TEXT]
    for piece in split(parted(text)):
        word = piece.lower()
        if word not in _EMPTY and not UNSPACED.match(word):
            yield _stem(word)
    yield from _runs(text)


def _runs(text: str) -> Iterator[str]:
    for pair in bigrams(text):
        if len(pair) > 1 and not _EMPTY_CHINESE.issuperset(pair):
            yield pair


def weighed(content: Mapping[str, Any], server: str, labels: Iterable[str]) -> dict[str, float]:
    """Each word of a definition with its weight: a name says more than what is said of it."""
    found: dict[str, float] = {}
    for weight, texts in _texts(content, server, labels):
        for word in chain.from_iterable(map(words, texts)):
            found[word] = found.get(word, 0.0) + weight
    return found


def _texts(
    content: Mapping[str, Any], server: str, labels: Iterable[str]
) -> Iterator[tuple[float, list[str]]]:
    name, title = str(content.get("name") or ""), str(content.get("title") or "")
    names, descriptions = argument_texts(content)
    yield 3.0, [name, title]
    yield 1.5, [server, *labels]
    yield 1.0, [str(content.get("description") or "")]
    yield 0.6, names
    yield 0.3, descriptions


def meant(question: str) -> dict[str, float]:
    """Words to look for, with their weights: those of the question, and for less their synonyms."""
    said = dict.fromkeys(words(question), 1.0)
    others: dict[str, float] = {}
    for word in said:
        for other in _synonyms().get(word, ()):
            if other not in said:
                others[other] = 0.4
    return said | others


@lru_cache(maxsize=1)
def _synonyms() -> dict[str, frozenset[str]]:
    """By word, the other words of its lines."""
    found: dict[str, set[str]] = {}
    for line in _SYNONYMS.strip().splitlines():
        group = {word for one in line.split() for word in words(one)}
        for word in group:
            found.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in found.items()}
