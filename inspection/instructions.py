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
# Of each piece the next one has so much again, so that no order is cut in two.
OVERLAP = 250
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_SENTENCE_END = re.compile(r"[.!?。！？]\s|\n")
_NOT_IN_WORDS = re.compile(r"\W")
_TO_WORDS = {code: chr(code).lower() if re.match(r"\w", chr(code)) else " " for code in range(128)}


# Signs of layout: a text without any of them is read as it is.
_LAYOUT = ("\n", "  ", "*", "_", "`", "\t", "\r", "\u00a0", "\u3000", "\u2019", "~~", "＜", "［")
_EMPHASIS = ("*", "`", "~~")
_SIGNS_OF_TEXT = str.maketrans("\u2019＜＞［］｜", "'<>[]|")
_LETTER = "\u3040-\u30ff\u3400-\u9fff\uff0c"
# A line goes on in the next one, unless a sentence ends there or that begins a part of its own: an
# empty line, an item of a list, a heading. Each pattern begins with the sign that it is about, or
# it takes ten times as long.
_WRAP = re.compile(r"\n(?<![\n.!?。！？:：;；]\n)(?![\n\-*•+>#|]|\d{1,3}[.)]|\Z)")
_WRAP_BETWEEN_LETTERS = re.compile(f"\n(?<=[{_LETTER}]\n)(?=[{_LETTER}])")
# A word of one script ends where the other begins, and words of Chinese need no spaces.
_LATIN_AFTER = re.compile(f"[A-Za-z](?<=[{_LETTER}].)")
_LATIN_BEFORE = re.compile(f"[A-Za-z](?=[{_LETTER}])")
_SPACE_BETWEEN_LETTERS = re.compile(f" (?<=[{_LETTER}] )(?=[{_LETTER}])")
_UNDERLINE = re.compile(r"_(?:(?<![^\W_]_)|(?![^\W_]))")
# An order in one word, and no name of a setting: that says nothing of instructions before it.
_JOINED = re.compile(
    r"(?i)(?<![a-z0-9])(?:ignore|disregard|forget)(?:_{1,3}[a-z]{1,20}){0,4}?"
    r"_{1,3}(?:previous|prior|earlier|above|your)(?:_{1,3}[a-z]{1,20}){0,3}?_{1,3}(?:instruction|prompt|rule|guardrail|direction)s?(?![a-z])"
)
_SPACES = re.compile("  +")
_ODD_SPACES = re.compile(r"[^\S\n ]")


class RulePart(NamedTuple):
    """A part of a rule: a pattern that begins with one of the words in `first`. `needs`: one of
    them stands in each sentence that it fits, in lower case; none is more than one word."""

    first: str
    pattern: str
    needs: str = ""


class SentenceRule(NamedTuple):
    """`signs`: parts that begin with a sign; `chinese`: with a letter that is not Latin."""

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
            r"(?:ignore|disregard|forget|override|bypass),? (?:please,? |and |all |any |every |the "
            r"|your |my |these |those ){0,4}"
            r"(?:previous|prior|earlier|above|other|existing|system|safety|security|user(?:'s)?"
            r"|original|instructions?|rules|guardrails?)",
        ),
        RulePart(
            "ignore disregard forget",
            r"(?:ignore|disregard|forget) (?:everything|anything|all|what(?:ever)?)\b"
            r"(?: [\w']+){0,5}? (?:above|before|earlier|previously|so far|until now)\b",
            "above|before|earlier|previously|far|until",
        ),
        RulePart(
            "hide conceal withhold",
            r"(?:hide|conceal|withhold)\b(?: [\w']+){1,4}? from (?:the |any |all )?(?:users?"
            r"|humans?|operator|person|anyone|them)\b(?! (?:interface|list|table|menu|view))",
            " from ",
        ),
        RulePart(
            "user human operator",
            r"(?:user|human|operator) (?:must|should|may|need|needs|shall)(?: not|n't| never)"
            r" (?:to )?(?:\w+ ){0,2}?(?:know|see|notice|learn|hear|find out|be (?:told|informed"
            r"|aware|notified))\b",
            "know|see|notice|learn|hear|out|told|informed|aware|notified",
        ),
        RulePart(
            "no", r"no need to (?:tell|inform|notify|ask|alert|bother) (?:the |any )?\w+", "need"
        ),
        RulePart(
            "do don never must without",
            r"(?:do not|don't|never|must not|without) (?:\w+ ){0,3}?(?:tell|telling|mention"
            r"|mentioning|inform|informing|notify|notifying|show|reveal|revealing|disclose|alert"
            r"|alerting|let)(?:\w* ){1,6}?(?:user|human|operator|person|anyone|them|him)\b",
            "tell|mention|inform|notify|show|reveal|disclose|alert|let",
        ),
        RulePart(
            "without",
            r"without (?:asking|telling|notifying|informing|the user(?:'s)? (?:knowing|knowledge"
            r"|consent)|the (?:knowledge|consent|approval) of (?:the |any )?(?:user|human)"
            r"|(?:user |human )?(?:confirmation|consent|approval|permission))",
            "asking|telling|notifying|informing|user|knowledge|consent|approval|confirmation"
            "|permission",
        ),
        RulePart(
            "keep do",
            r"(?:keep|do) (?:this|it|that)\b.{0,30}\b(?:secret|hidden|silent(?:ly)?|quiet(?:ly)?"
            r"|confidential|to yourself)\b",
            "secret|hidden|silent|quiet|confidential|yourself",
        ),
        RulePart(
            "silently secretly covertly discreetly",
            r"(?:silently|secretly|covertly|discreetly) (?:\w+ ){0,2}?(?:send|read|copy|add"
            r"|include|forward|upload|call|run|pass|append|post|store)",
        ),
        # German, French and Spanish: the commonest orders alone.
        RulePart(
            "ignoriere ignorieren ignoriert missachte missachten vergiss vergessen",
            r"(?:ignorier(?:e|en|t)|missachten?|vergiss|vergessen)\b(?: \w+){0,3}?"
            r" (?:vorherig|bisherig|vorig|früher|obig|vorangegangen|system)\w{0,4}[ \-]?"
            r"(?:anweisung|instruktion|regel|vorgabe|befehl)",
            "anweisung|instruktion|regel|vorgabe|befehl",
        ),
        RulePart(
            "ignore ignorez ignorer oublie oubliez oublier",
            r"(?:ignore|ignorez|ignorer|oublie|oubliez|oublier) (?:\w+ ){0,3}?"
            r"(?:instructions?|consignes?|règles?|directives?)"
            r" (?:précédente|antérieure|ci-dessus|du système|de sécurité)",
            "instruction|consigne|règle|directive",
        ),
        RulePart(
            "ignora ignore ignorar ignoren olvida olvide olvidar olviden",
            r"(?:ignor|olvid)(?:a|e|ar|en) (?:\w+ ){0,3}?(?:instrucciones|indicaciones|reglas"
            r"|órdenes) (?:anteriores|previas|del sistema|de seguridad)",
            "instrucciones|indicaciones|reglas|órdenes",
        ),
        RulePart(
            "sag sage sagen erzähl erzähle erzählen verrate verraten informiere informieren",
            r"(?:sag|sage|sagen|erzähl|erzähle|erzählen|verrate|verraten|informiere|informieren)\b"
            r"(?: \w+){0,2}? (?:dem|den|der) (?:benutzer|nutzer|anwender)\w{0,4}"
            r"(?: \w+){0,2}? (?:nicht|nichts|niemals)\b",
            "nutzer|anwender",
        ),
        RulePart(
            "ne",
            r"ne (?:le |la |les |lui |en )?(?:dis|dites|informe[zr]?|préviens|prévenez"
            r"|mentionne[zr]?|révèle[zr]?) (?:pas|rien|jamais|surtout pas)\b.{0,30}\butilisateur",
            "utilisateur",
        ),
        RulePart(
            "no",
            r"no (?:le |lo |se lo )?(?:digas?|informes?|menciones?|reveles?|avises?|cuentes?)\b"
            r".{0,30}\busuario",
            "usuario",
        ),
    ),
    # And Japanese and Russian.
    chinese=r"(?:忽略|无视)(?:上文|前文|(?:以上|上面|之前|前面)的?内容)"
    r"|(?:忽略|无视|忘记|忘掉|不要理会|无需理会|绕过)[^。！？\n]{0,12}?(?:之前|以上|先前|前面|此前"
    r"|上述|上文|系统|所有|一切|收到)[^。！？\n]{0,8}?(?:指令|指示|提示|规则|要求|命令|说明|限制)"
    r"|(?:不要|请勿|勿|切勿|不得|不能|不可|禁止|无需|不必|别)(?:再|要)?(?:"
    r"(?:告诉|告知|通知)[^。！？\n，,]{0,3}?(?:用户|使用者|任何人)"
    r"|[向对让跟和](?:用户|使用者|任何人)[^。！？\n，,]{0,6}?(?:说|知道|知晓|看到|察觉|发现|透露"
    r"|提起|提及|告知|展示|泄露|通知|提示))"
    r"|对(?:用户|使用者|任何人)保密|瞒着(?:用户|使用者|任何人)"
    r"|(?:悄悄|偷偷|秘密|暗中)地?[^。！？\n]{0,8}?(?:上传|发送|读取|复制|调用|执行|转发|写入|添加)"
    r"|(?:无需|不需要|不必|不用|无须|未经)(?:征得|经过|获得|得到)?(?:用户|使用者|人工)的?"
    r"(?:确认|同意|许可|授权|批准)|无需(?:确认|同意)|跳过(?:用户|人工)?(?:的)?(?:确认|审批)"
    r"|(?:以前|これまで|上記|前)の(?:すべての|全ての)?(?:指示|命令|ルール|指令)を"
    r"(?:すべて|全て)?(?:無視|忘れ)"
    r"|(?:ユーザー|利用者)に[^。\n]{0,12}(?:言わないで|伝えないで|知らせないで|教えないで"
    r"|言うな|伝えるな)"
    r"|(?:[Ии]гнорируй|[Зз]абудь)(?:те)? (?:\w+ ){0,2}?(?:предыдущ|прежн|системн)\w{0,6}"
    r" (?:инструкц|указан|правил|команд)"
    r"|[Нн]е (?:говори|сообщай|рассказывай|упоминай)(?:те)? (?:\w+ ){0,4}?пользовател",
)
_POSE = SentenceRule(
    (
        RulePart(
            "system developer admin administrator security",
            r"(?:system|developer|admin(?:istrator)?|security) (?:prompt|message|note|notice"
            r"|override|instruction|directive)s?\s{0,3}:",
        ),
        RulePart(
            "systemanweisung systemnachricht instruction instrucción mensaje message",
            r"(?:systemanweisung|systemnachricht|(?:instruction|message) (?:du )?système"
            r"|(?:instrucción|mensaje) del sistema)\s{0,3}:",
        ),
        RulePart(
            "note",
            r"note (?:to|for) (?:the )?(?:model|assistant|agent|ai|llm)s?\b",
            "model|assistant|agent| ai| llm",
        ),
        RulePart(
            "as for",
            r"(?:as|for) an? (?:ai|llm|language model|assistant),? you\b",
            " ai | llm | language | assistant ",
        ),
        RulePart("you", r"you(?: are|'re) (?:now|no longer)\b", " now | longer "),
        # In capitals, as the one that speaks.
        RulePart(
            "system",
            r"system(?-i:(?<=SYSTEM))\s{0,2}: (?:you|do|don't|ignore|disregard|forget|obey|run|send"
            r"|call|execute|read|delete|now|from now on|the (?:user|assistant|model|agent))\b",
        ),
        # Said to the reader, and not of what does so.
        RulePart(
            "act",
            r"act(?<!that act)(?<!which act)(?<!who act)(?<!can act)(?<!may act)(?<!they act)"
            r"(?<!to act)(?<!not act) as "
            r"(?:the |a |an )?(?:root|superuser|(?:system )?admin(?:istrator)?|developer mode)\b"
            r"(?! (?:node|element|ca|certificate|key|path|folder|directory|user of|of|for)s?\b)",
            " root | superuser | admin| developer ",
        ),
        RulePart("new", r"new instructions?\s{0,3}:", "instruction"),
        RulePart(
            "end",
            r"end of (?:tool )?(?:description|documentation|definition)\b",
            "description|documentation|definition",
        ),
        RulePart("attention", r"attention,? (?:ai|model|assistant|agent|llm)"),
    ),
    r"<(?:/?\s*(?=[achioprs])(?:important|system|instructions?|secret|assistant|human|admin"
    r"|critical|override|hidden|prompt|im_start|im_end|rules?)\s*/?>"
    r"|\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|!--)"
    r"|\[(?:/?INST\]|(?:system|admin|assistant)(?: \w+)?\])",
    r"系统(?:提示|指令|消息)\s?[:：]|【系统】|重要指令\s?[:：]"
    r"|你(?:现在|已经?)是[^。！？\n]{0,6}(?:管理员|开发者|超级用户|root)|システム(?:プロンプト|メッセージ|指示)\s?[:：]"
    r"|[Сс]истемн(?:ое сообщение|ая инструкция)\s?[:：]"
    r"|从现在(?:开始|起)[，,]?你(?:就是|是|必须|要|将)|你现在(?:就?是)一[个名位]"
    r"(?:没有|不受)[^。！？\n]{0,4}限制|扮演 ?(?:root|超级用户|(?:系统)?管理员)"
    r"|系统\s?[:：]\s?(?:你|立即|忽略|执行以下)",
)
_ORDER = SentenceRule(
    (
        RulePart(
            "you",
            r"you (?:must|need to|have to|should) "
            r"(?:always |first |also |never |now |next |then |immediately ){0,2}(?:call"
            r"|invoke|use|run|read|send|include|check|execute|open|fetch|pass|copy|add|tell|ask)",
            " must | need | have | should ",
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
            "calling|using|running|invoking|executing|tool|call|action| every | each ",
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
            " user | human ",
        ),
    ),
    chinese=r"(?:必须|务必)(?:先|首先)?(?:调用|使用|读取|发送)"
    r"|(?:调用|使用)(?:任何|其他|本)工具(?:之前|前)|每次(?:回答|回复|调用)之?[前时][^。！？\n]{0,6}?"
    r"(?:调用|使用|读取)|(?:不要|禁止)使用其他[^。！？\n]{0,8}?工具|使用前[，,]?(?:请|必须)?先读取",
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
    # Also within the name of an argument.
    r"|(?<![a-z0-9])id_(?:rsa|ed25519|ecdsa|dsa)(?![a-z0-9])|/etc/(?:passwd|shadow|sudoers)\b|(?<![\w/])\.ssh/"
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
    r"(?:conversation|(?:chat|message|dialog(?:ue)?)s?(?:'s)? (?:history|log|context|so far"
    r"|transcripts?))"
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
    r"(?:把|将).{0,20}(?:对话|聊天记录|密码|密钥|令牌|系统提示).{0,20}(?:发送|发给|上传|传给|写入|传入"
    r"|转发|作为参数)"
    r"|(?:把|将).{0,20}(?:环境变量|凭证|凭据|历史消息|上下文).{0,20}(?:发送|发给|上传|传给|转发|作为参数)"
    r"|读取.{0,12}(?:密钥|密码|凭证|凭据|私钥)[^。！？\n]{0,12}(?:传入|作为参数|发送|上传|发给)",
)
_OUTSIDE = re.compile(
    rf"(?i)\b(?:{_TAKES})(?:s|ing|ed)?\b[^.!?\n]{{0,80}}?\b(?:to|at"
    rf"|via)\s+[`'\"<(]?(?:https?://[^\s)>'\"`]{{4,200}}"
    rf"|\+\d{{3,15}}|[\w.+\-]{{1,64}}@[\w\-]{{1,63}}\.[\w.\-]{{2,60}})"
    r"|\bb?cc\s+(?:to\s+)?[\w.+\-]{1,64}@[\w\-]{1,63}\.[\w.\-]{2,60}"
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
# All that their parts in other scripts begin with: at no other letter are these tried.
FIRST_LETTERS = (
    "忽无忘绕不请勿切禁别对瞒悄偷秘暗未跳以こ上前ユ利ИиЗзНнСс系【重你从扮シ必务调使每把将读"
)
_CHINESE = re.compile(f"(?=[{FIRST_LETTERS}])(?:{'|'.join(one.chinese for one in ORDERS)})")


class _Compiled(NamedTuple):
    pattern: re.Pattern[str]
    needs: tuple[str, ...]

    def could_fit(self, words: str) -> bool:
        return any(one in words for one in self.needs)


def _by_first_word() -> dict[str, list[_Compiled]]:
    found = defaultdict(list)
    for part in (one for rule in ORDERS for one in rule.parts):
        needs = tuple(part.needs.split("|"))
        made = _Compiled(re.compile(f"(?i){part.pattern}"), needs)
        for word in part.first.split():
            found[word].append(made)
    return dict(found)


_BY_FIRST_WORD = _by_first_word()
_FIRST_WORDS = frozenset(_BY_FIRST_WORD)
# In a document: how an order in signs begins, and what joins words that it parts.
_BRACKET = re.compile(r"\[(?:(?<=[!*_`]\[)|[/_*`]*[isaISA])")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_DOCUMENT_TO_WORDS = {**_TO_WORDS, ord("_"): " ", ord("*"): None, ord("`"): None}


def _parted(match: re.Match[str]) -> str:
    return " ".join(filter(None, match.group().split("_")))


def unwrapped(text: str) -> str:
    """The text as it is read: without marks of emphasis, each line that goes on in one piece with
    the next, and one space between words, also of two scripts."""
    if text.isascii():
        return _unwrapped(text)
    text = _LATIN_AFTER.sub(r" \g<0>", _LATIN_BEFORE.sub(r"\g<0> ", text))
    return _SPACE_BETWEEN_LETTERS.sub("", _unwrapped(text))


def _unwrapped(text: str) -> str:
    if not any(sign in text for sign in _LAYOUT) and (
        text.isascii() or _ODD_SPACES.search(text) is None
    ):
        return text
    if "_" in text:
        text = _JOINED.sub(_parted, text)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " ")
    if not text.isascii():
        text = _ODD_SPACES.sub(" ", text.translate(_SIGNS_OF_TEXT))
    text = _SPACES.sub(" ", text)
    if "\n" in text:
        text = text.replace(" \n", "\n").replace("\n ", "\n")
        text = _WRAP.sub(" ", _WRAP_BETWEEN_LETTERS.sub("", text))
    for sign in _EMPHASIS:
        text = text.replace(sign, "")
    return _UNDERLINE.sub("", text) if "_" in text else text


def could_order(document: str) -> bool:
    """Whether a text of this JSON document could have an order. It reads as it is written, and has
    no other escapes than those of ends of lines, tabs, quotes and backslashes."""
    if "<" in document or "~" in document or _BRACKET.search(document):
        return True
    if not document.isascii():
        if _could_order_in_chinese(document):
            return True
        document = _NOT_ASCII.sub(" ", document)
    if "\\" in document:
        document = document.replace("\\n", " ").replace("\\t", " ")
    words = document.translate(_DOCUMENT_TO_WORDS)
    beginnings = _FIRST_WORDS.intersection(words.split())
    return any(part.could_fit(words) for word in beginnings for part in _BY_FIRST_WORD[word])


def _could_order_in_chinese(document: str) -> bool:
    if "\\" in document:
        if "\\\\" in document:
            return True
        document = document.replace('\\"', '"').replace("\\n", "\n").replace("\\t", "\t")
    return _CHINESE.search(unwrapped(document)) is not None


def has_order(text: str) -> bool:
    """Whether any sentence breaks one of the rules in ORDERS. Their parts are tried only at words
    that they can begin with: to search every sentence for all of them takes ten times as long."""
    text = unwrapped(text)
    if ("<" in text or "[" in text) and _SIGNS.search(text):
        return True
    if not text.isascii() and _CHINESE.search(text):
        return True
    words = _spaced(text)
    beginnings = _FIRST_WORDS.intersection(words.split())
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
        if not part.could_fit(self._words):
            return False
        lacking, has_needed = -1, -1
        for start in _places(self._words, word):
            number = bisect_right(self._ends, start)
            if number == lacking:
                continue
            end = self._ends[number]
            if part.needs[0] and number != has_needed:
                begin = self._ends[number - 1] if number else 0
                if not part.could_fit(self._words[begin : end + 1]):
                    lacking = number
                    continue
                has_needed = number
            if part.pattern.match(self._text, start, min(end, start + PIECE)):
                return True
        return False


def sentences(text: str) -> Iterator[str]:
    for one in _BETWEEN_SENTENCES.split(unwrapped(text)):
        if one.strip():
            starts = range(0, max(len(one) - OVERLAP, 1), PIECE - OVERLAP)
            yield from (one[at : at + PIECE] for at in starts)


def rules(sentence: str) -> list[str]:
    """Names of the rules of inspection/definitions.py that it breaks."""
    return [rule for rule, pattern in RULES if pattern.search(sentence)]
