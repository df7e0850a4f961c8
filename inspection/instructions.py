"""Sentences that speak to a model, and not of what a tool does: orders, disguises, other tools,
files with secrets, and what is to be passed on.

Patterns find what is commonly written; whoever knows them can write around them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Longer sentences are looked at in such pieces, so that no pattern has a long way.
PIECE = 1000
_BETWEEN_SENTENCES = re.compile(r"(?<=[.!?。！？])\s+|\n+")

_OVERRIDE = re.compile(
    r"(?i)\b(?:ignore|disregard|forget|override|bypass) (?:all |any |every |the |your |my "
    r"|these |those ){0,3}"
    r"(?:previous|prior|earlier|above|other|existing|system|safety|security|user(?:'s)?|original"
    r"|instructions?|rules|guardrails?)"
    r"|\b(?:do not|don't|never|must not|without) (?:\w+ ){0,3}?(?:tell|telling|mention"
    r"|mentioning|inform|informing|notify|notifying|show|reveal|revealing|disclose|alert"
    r"|alerting|let)(?:\w* ){1,4}?(?:user|human|operator|person|anyone|them|him)\b"
    r"|\bwithout (?:asking|telling|notifying|informing|the user(?:'s)? (?:knowing|knowledge"
    r"|consent)|(?:user |human )?(?:confirmation|consent|approval|permission))"
    r"|\b(?:keep|do) (?:this|it|that)\b.{0,30}\b(?:secret|hidden|silent(?:ly)?|quiet(?:ly)?"
    r"|confidential|to yourself)\b"
    r"|\b(?:silently|secretly|covertly|discreetly) (?:\w+ ){0,2}?(?:send|read|copy|add|include"
    r"|forward|upload|call|run|pass|append|post|store)"
    r"|忽略(?:之前|以上|先前|所有|一切)|不要(?:告诉|通知|让)(?:用户|任何人)|无需(?:用户)?(?:确认|同意)"
)
_POSE = re.compile(
    r"(?i)</?\s*(?:important|system|instructions?|secret|assistant|human|admin|critical|override"
    r"|hidden|prompt|im_start|im_end|rules?)\s*/?>"
    r"|<\|(?:im_start|im_end|system|user|assistant|endoftext)\|>|\[/?INST\]|\[(?:system|admin"
    r"|assistant)(?: \w+)?\]"
    r"|\b(?:system|developer|admin(?:istrator)?|security) (?:prompt|message|note|notice|override"
    r"|instruction|directive)s?\s{0,3}:"
    r"|\bnote (?:to|for) (?:the )?(?:model|assistant|agent|ai|llm)s?\b|\b(?:as|for) an? (?:ai"
    r"|llm|language model|assistant),? you\b"
    r"|\byou are (?:now|no longer)\b|\bnew instructions?\s{0,3}:"
    r"|\bend of (?:tool )?(?:description|documentation|definition)\b"
    r"|\battention,? (?:ai|model|assistant|agent|llm)|<!--|系统(?:提示|指令|消息)\s?[:：]"
)
_ORDER = re.compile(
    r"(?i)\b(?:you (?:must|need to|have to|should) (?:always |first |also |never ){0,2}(?:call"
    r"|invoke|use|run|read|send|include|check|execute|open|fetch|pass|copy|add|tell|ask))"
    r"|\b(?:always|must|never) (?:be )?(?:call|use|invoke|prefer|run|execute|choose"
    r"|select)(?:ed)? (?:this|it|me|first|before|instead|the)\b"
    r"|\b(?:before|after|instead of|prior to) (?:calling|using|running|invoking|executing"
    r"|any (?:other )?(?:tool|call|action)|every|each)\b"
    r"|\b(?:best|only|official|most (?:reliable|trusted"
    r"|accurate)) (?:\w+ ){0,2}?tool\b.{0,60}\b(?:always|instead|over|prefer|ignore|do not use)"
    r"|\b(?:tell|assure|convince|persuade|remind|warn) the (?:user|human)\b|必须"
    r"(?:先|首先)?(?:调用|使用|读取|发送)|调用(?:任何|其他)工具(?:之前|前)"
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
    r"(?:send|include|pass|upload|append|attach|copy|forward|post|put|insert|embed|leak|transmit"
    r"|provide|paste|write|add|exfiltrate|report|submit|encode|bcc|cc)"
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
_EXFILTRATION = re.compile(
    rf"(?i)\b{_TAKES}(?:s|ing)?\b(?:\s+[\w'`,/\-]+){{0,6}}?\s+{_GOODS}"
    r"|!\[[^\]]{0,80}\]\(https?://[^)\s]{1,200}[?&][^)\s]{1,200}[{<$]"
    r"|(?:把|将).{0,20}(?:对话|聊天记录|密码|密钥|令牌|系统提示).{0,20}(?:发送|上传|传给|写入)"
)
_OUTSIDE = re.compile(
    rf"(?i)\b{_TAKES}(?:s|ing|ed)?\b[^.!?\n]{{0,80}}?\b(?:to|at"
    rf"|via)\s+[`'\"<(]?(?:https?://[^\s)>'\"`]{{4,200}}"
    rf"|[\w.+\-]{{1,64}}@[\w\-]{{1,63}}\.[\w.\-]{{2,60}})"
)
RULES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("override", _OVERRIDE),
    ("pose", _POSE),
    ("private-file", _PRIVATE_FILE),
    ("exfiltration", _EXFILTRATION),
    ("outside-address", _OUTSIDE),
    ("order", _ORDER),
    ("other-tool", _OTHER_TOOL),
)


def sentences(text: str) -> Iterator[str]:
    for one in _BETWEEN_SENTENCES.split(text):
        if one.strip():
            yield from (one[at : at + PIECE] for at in range(0, len(one), PIECE))


def rules(sentence: str) -> list[str]:
    """Names of the rules of inspection/definitions.py that it breaks."""
    return [rule for rule, pattern in RULES if pattern.search(sentence)]
