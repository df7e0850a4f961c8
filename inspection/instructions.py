"""Sentences that speak to a model, and not of what a tool does: orders, disguises, other tools,
files with secrets, and what is to be passed on.

Patterns find what is commonly written; whoever knows them can write around them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from inspection import characters

# Longer sentences are looked at in such pieces, so that no pattern has a long way.
PIECE = 1000
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_SENTENCE_END = re.compile(r"[.!?。！？]\s|\n")
_NOT_IN_WORDS = re.compile(r"\W")
_TO_WORDS = {code: chr(code).lower() if re.match(r"\w", chr(code)) else " " for code in range(128)}


class RulePart(NamedTuple):
    """A part of a rule: a pattern that begins with one of the words in `first`. `needs`: one of
    them stands in each sentence that it fits, in lower case."""

    first: str
    pattern: str
    needs: str = ""


class SentenceRule(NamedTuple):
    """`signs`: parts that begin with a sign; `chinese`: with a Chinese character."""

    parts: tuple[RulePart, ...]
    signs: str = ""
    chinese: str = ""

    @property
    def pattern(self) -> re.Pattern[str]:
        words = "|".join(one.pattern for one in self.parts)
        parts = (rf"\b(?:{words})", self.signs, self.chinese)
        return re.compile("(?i)" + "|".join(filter(None, parts)))


_OVERRIDE = SentenceRule(
    (
        RulePart(
            "ignore disregard forget override bypass",
            r"(?:ignore|disregard|forget|override|bypass) (?:all |any |every |the |your |my "
            r"|these |those ){0,3}"
            r"(?:previous|prior|earlier|above|other|existing|system|safety|security|user(?:'s)?"
            r"|original|instructions?|rules|guardrails?)",
        ),
        RulePart(
            "do don never must without",
            r"(?:do not|don't|never|must not|without) (?:\w+ ){0,3}?(?:tell|telling|mention"
            r"|mentioning|inform|informing|notify|notifying|show|reveal|revealing|disclose|alert"
            r"|alerting|let)(?:\w* ){1,4}?(?:user|human|operator|person|anyone|them|him)\b",
            "tell|mention|inform|notify|show|reveal|disclose|alert|let",
        ),
        RulePart(
            "without",
            r"without (?:asking|telling|notifying|informing|the user(?:'s)? (?:knowing|knowledge"
            r"|consent)|(?:user |human )?(?:confirmation|consent|approval|permission))",
        ),
        RulePart(
            "keep do",
            r"(?:keep|do) (?:this|it|that)\b.{0,30}\b(?:secret|hidden|silent(?:ly)?|quiet(?:ly)?"
            r"|confidential|to yourself)\b",
            "secret|hidden|silent|quiet|confidential|to yourself",
        ),
        RulePart(
            "silently secretly covertly discreetly",
            r"(?:silently|secretly|covertly|discreetly) (?:\w+ ){0,2}?(?:send|read|copy|add"
            r"|include|forward|upload|call|run|pass|append|post|store)",
        ),
    ),
    chinese=r"忽略(?:之前|以上|先前|所有|一切)|不要(?:告诉|通知|让)(?:用户|任何人)"
    r"|无需(?:用户)?(?:确认|同意)",
)
_POSE = SentenceRule(
    (
        RulePart(
            "system developer admin administrator security",
            r"(?:system|developer|admin(?:istrator)?|security) (?:prompt|message|note|notice"
            r"|override|instruction|directive)s?\s{0,3}:",
        ),
        RulePart("note", r"note (?:to|for) (?:the )?(?:model|assistant|agent|ai|llm)s?\b"),
        RulePart("as for", r"(?:as|for) an? (?:ai|llm|language model|assistant),? you\b"),
        RulePart("you", r"you are (?:now|no longer)\b"),
        RulePart("new", r"new instructions?\s{0,3}:"),
        RulePart("end", r"end of (?:tool )?(?:description|documentation|definition)\b"),
        RulePart("attention", r"attention,? (?:ai|model|assistant|agent|llm)"),
    ),
    r"<(?:/?\s*(?=[achioprs])(?:important|system|instructions?|secret|assistant|human|admin"
    r"|critical|override|hidden|prompt|im_start|im_end|rules?)\s*/?>"
    r"|\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|!--)"
    r"|\[(?:/?INST\]|(?:system|admin|assistant)(?: \w+)?\])",
    r"系统(?:提示|指令|消息)\s?[:：]",
)
_ORDER = SentenceRule(
    (
        RulePart(
            "you",
            r"you (?:must|need to|have to|should) (?:always |first |also |never ){0,2}(?:call"
            r"|invoke|use|run|read|send|include|check|execute|open|fetch|pass|copy|add|tell|ask)",
        ),
        RulePart(
            "always must never",
            r"(?:always|must|never) (?:be )?(?:call|use|invoke|prefer|run|execute|choose"
            r"|select)(?:ed)? (?:this|it|me|first|before|instead|the)\b",
        ),
        RulePart(
            "before after instead prior",
            r"(?:before|after|instead of|prior to) (?:calling|using|running|invoking|executing"
            r"|any (?:other )?(?:tool|call|action)|every|each)\b",
        ),
        RulePart(
            "best only official most",
            r"(?:best|only|official|most (?:reliable|trusted|accurate)) (?:\w+ ){0,2}?tool\b"
            r".{0,60}\b(?:always|instead|over|prefer|ignore|do not use)",
            "always|instead|over|prefer|ignore|do not use",
        ),
        RulePart(
            "tell assure convince persuade remind warn",
            r"(?:tell|assure|convince|persuade|remind|warn) the (?:user|human)\b",
        ),
    ),
    chinese=r"必须(?:先|首先)?(?:调用|使用|读取|发送)|调用(?:任何|其他)工具(?:之前|前)",
)
_OTHER_TOOL = re.compile(
    r"(?i)\b(?:any|every|all|each|no|the|of) other (?:\w+ ){0,2}?(?:tool|function|server)s?\b"
    r"|\bother tools?\b"
    r"|\b(?:instead of|rather than|before|after|when(?:ever)?|with|to|from|into|by|of) (?:the "
    r"|any |calling |using "
    r"|running ){0,3}[`'\"]?[a-z]{2,20}(?:[_.][a-z0-9]{2,20}){1,4}[`'\"]?(?: (?:tool"
    r"|function))?\b"
    r"(?:.{0,50}\b(?:is|are) (?:called|used|invoked|available|deprecated|broken)| tool)|其他工具"
)
_PRIVATE_FILE = re.compile(
    r"(?i)(?:~|\$home|/root|/home/[\w.\-]{1,40}|%userprofile%)[/\\]\.?(?:ssh|aws|gnupg|kube"
    r"|docker|netrc|config|bash_history|zsh_history|env|npmrc|pypirc|cursor|claude|gitconfig"
    r"|git-credentials|mozilla)\b"
    r"|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|/etc/(?:passwd|shadow|sudoers)\b|(?<![\w/])\.ssh/"
    r"|(?<![\w/.])\.env\b(?! ?(?:variable|example))"
    r"|\b(?:mcp|claude_desktop_config|credentials|secrets|service[_\-]account|wallet"
    r"|keystore)\.(?:json|ya?ml|dat|toml)\b|\b(?:known_hosts|authorized_keys|\.netrc|\.pgpass"
    r"|\.bash_history|keychain|cookies\.sqlite|Login Data)\b"
)
_TAKES = (
    r"send|include|pass|upload|append|attach|copy|forward|post|put|insert|embed|leak|transmit"
    r"|provide|paste|write|add|exfiltrate|report|submit|encode|bcc|cc"
)
_GOODS = (
    r"(?:(?:(?:full|entire|complete|whole|previous|current|prior) ){0,2}"
    r"(?:conversation|(?:chat|message|dialog(?:ue)?)s?(?:'s)? (?:history|log|context|so far))"
    r"(?: history| log| context| so far|s)?|system prompts?|api[ _\-]?keys?|credentials?"
    r"|passwords?(?! (?:reset|policy|manager|strength|hash))|secrets?|private keys?|ssh keys?"
    r"|access tokens?|auth(?:entication)? tokens?|session tokens?|environment variables?|env vars?"
    r"|cookies|(?:file )?contents? of (?:the )?(?:file|~|/|\.|user|other|id_|mcp|config)"
    r"|(?:outputs?|results?) of (?:all |every |any |other |previous |the other )+(?:tool|call)s?"
    r"|(?:everything|all) (?:that )?you (?:know|have|see|remember)"
    r"|user's (?:name|email|address|location|files|data|documents)|browsing history|clipboard"
    r"|your (?:reasoning|chain of thought|instructions|context|memory))"
)
_EXFILTRATION = SentenceRule(
    (
        RulePart(
            " ".join(f"{verb}{end}" for verb in _TAKES.split("|") for end in ("", "s", "ing")),
            # What a word cannot give back, it does not try to.
            rf"(?:{_TAKES})(?:s|ing)?\b(?:\s++[\w'`,/\-]++){{0,6}}?\s++{_GOODS}",
            "conversation|chat|message|dialog|prompt|api|credential|password|secret|key|token|env"
            "|cookies|content|output|result|everything|all|user|history|clipboard|your",
        ),
    ),
    # An image whose address takes something along.
    r"!\[[^\]]{0,80}\]\(https?://[^)\s][^)\s?&]{0,199}+[?&][^)\s][^)\s{<$]{0,199}+[{<$]",
    r"(?:把|将).{0,20}(?:对话|聊天记录|密码|密钥|令牌|系统提示).{0,20}(?:发送|上传|传给|写入)",
)
_OUTSIDE = re.compile(
    rf"(?i)\b(?:{_TAKES})(?:s|ing|ed)?\b[^.!?\n]{{0,80}}?\b(?:to|at"
    rf"|via)\s+[`'\"<(]?(?:https?://[^\s)>'\"`]{{4,200}}"
    rf"|[\w.+\-]{{1,64}}@[\w\-]{{1,63}}\.[\w.\-]{{2,60}})"
)
RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("override", _OVERRIDE.pattern),
    ("pose", _POSE.pattern),
    ("private-file", _PRIVATE_FILE),
    ("exfiltration", _EXFILTRATION.pattern),
    ("outside-address", _OUTSIDE),
    ("order", _ORDER.pattern),
    ("other-tool", _OTHER_TOOL),
)
# Sentences that a model could take for orders to itself.
ORDERS = (_OVERRIDE, _POSE, _ORDER, _EXFILTRATION)
_SIGNS = re.compile("(?i)" + "|".join(one.signs for one in ORDERS if one.signs))
_CHINESE = re.compile("|".join(one.chinese for one in ORDERS))


class _Compiled(NamedTuple):
    pattern: re.Pattern[str]
    needs: re.Pattern[str] | None


def _by_first_word() -> dict[str, list[_Compiled]]:
    found = defaultdict(list)
    for part in (one for rule in ORDERS for one in rule.parts):
        needs = re.compile(part.needs) if part.needs else None
        made = _Compiled(re.compile(f"(?i){part.pattern}"), needs)
        for word in part.first.split():
            found[word].append(made)
    return dict(found)


_BY_FIRST_WORD = _by_first_word()


def has_order(text: str) -> bool:
    """Whether any sentence breaks one of the rules in ORDERS. Their parts are tried only at words
    that they can begin with: to search every sentence for all of them takes ten times as long."""
    if _SIGNS.search(text) or not (text.isascii() or _CHINESE.search(text) is None):
        return True
    words = _spaced(text)
    beginnings = _BY_FIRST_WORD.keys() & set(words.split())
    if not beginnings:
        return False
    sentences_of = _Sentences(text, words)
    return any(sentences_of.fit(word, part) for word in beginnings for part in _BY_FIRST_WORD[word])


def _spaced(text: str) -> str:
    """The words in lower case with a space before and after each, one place to the right."""
    if text.isascii():
        return f" {text.translate(_TO_WORDS)} "
    return f" {_NOT_IN_WORDS.sub(' ', text.translate(characters.CASELESS).lower())} "


def _places(words: str, word: str) -> Iterator[int]:
    wanted = f" {word} "
    at = words.find(wanted)
    while at >= 0:
        yield at
        at = words.find(wanted, at + 1)


class _Sentences:
    """The sentences of a text, of which a rule looks at none before it has a word that it needs."""

    def __init__(self, text: str, words: str) -> None:
        self._text, self._words = text, words
        self._ends = [one.start() + 1 for one in _SENTENCE_END.finditer(text)]
        self._ends.append(len(text))

    def fit(self, word: str, part: _Compiled) -> bool:
        """Whether the part fits any sentence from this word on."""
        lacking, has_needed = -1, -1
        for start in _places(self._words, word):
            number = bisect_right(self._ends, start)
            if number == lacking:
                continue
            end = self._ends[number]
            if part.needs is not None and number != has_needed:
                begin = self._ends[number - 1] if number else 0
                if not part.needs.search(self._words, begin, end + 1):
                    lacking = number
                    continue
                has_needed = number
            if part.pattern.match(self._text, start, min(end, start + PIECE)):
                return True
        return False


def sentences(text: str) -> Iterator[str]:
    for one in _BETWEEN_SENTENCES.split(text):
        if one.strip():
            yield from (one[at : at + PIECE] for at in range(0, len(one), PIECE))


def rules(sentence: str) -> list[str]:
    """Names of the rules of inspection/definitions.py that it breaks."""
    return [rule for rule, pattern in RULES if pattern.search(sentence)]
