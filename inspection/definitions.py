"""Findings in a tool's definition, or in other texts of a server for models, and their score.

Findings are reasons to look closer; a definition without any may still lie. Advice (lint) is for
whoever writes the server, and changes no score.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from core import homoglyphs
from inspection import characters, instructions, lint, secrets
from inspection.definition_facts import FORMS, arguments, as_read, name_parts, properties
from inspection.json_text import texts
from inspection.nested_texts import texts_in_base64

# Raised with each change of what is found, so that what was kept before is not taken for it.
VERSION = 9
QUOTED = 160
# Of one rule in one definition.
MOST = 5
# Patterns look at longer texts in pieces, each with the end of the one before.
LOOKED_AT = 64 * 1024
OVERLAP = 4 * 1024
RED = 50


class Level(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    ADVICE = "advice"


WEIGHTS = {Level.HIGH: RED, Level.MEDIUM: 20, Level.LOW: 5, Level.ADVICE: 0}


class FindingRule(NamedTuple):
    """`family`: the class of findings that figures are given for."""

    family: str
    level: Level
    said: str | Promise


RULES: dict[str, FindingRule] = {
    "hidden-text": FindingRule(
        "hidden", Level.HIGH, _("Text that a model reads and a person does not see")
    ),
    "terminal-command": FindingRule("hidden", Level.HIGH, _("Commands to a terminal")),
    "odd-character": FindingRule("hidden", Level.LOW, _("A character that is not seen")),
    "override": FindingRule(
        "instruction", Level.HIGH, _("Instructs the model to disregard others or to act in secret")
    ),
    "pose": FindingRule(
        "instruction",
        Level.HIGH,
        _("Poses as a system message, or as an instruction from elsewhere"),
    ),
    "order": FindingRule(
        "instruction", Level.MEDIUM, _("Instructs the model to do something beyond the call")
    ),
    "other-tool": FindingRule("reference", Level.MEDIUM, _("Speaks of how other tools are used")),
    "known-tool": FindingRule(
        "reference", Level.HIGH, _("Gives orders about another server's tool")
    ),
    "private-file": FindingRule("reference", Level.HIGH, _("Names a file that holds secrets")),
    "exfiltration": FindingRule(
        "exfiltration", Level.HIGH, _("Asks for what is none of its business to be passed on")
    ),
    "side-argument": FindingRule(
        "exfiltration", Level.MEDIUM, _("An argument for what the model knows besides")
    ),
    "outside-address": FindingRule(
        "exfiltration", Level.MEDIUM, _("An address to which things are to be sent")
    ),
    "look-alike": FindingRule("lookalike", Level.HIGH, _("Letters that pass for others")),
    "like-another": FindingRule(
        "lookalike", Level.MEDIUM, _("Its name could pass for another server's tool")
    ),
    "not-read-only": FindingRule(
        "contradiction",
        Level.HIGH,
        _("Says that it is read-only, and what it is called says otherwise"),
    ),
    "not-harmless": FindingRule(
        "contradiction",
        Level.MEDIUM,
        _("Says that it is not destructive, and what it is called says otherwise"),
    ),
    "not-closed": FindingRule(
        "contradiction",
        Level.MEDIUM,
        _("Says that it reaches nothing outside, and takes an address"),
    ),
    "secret": FindingRule("secret", Level.HIGH, _("Contains a secret")),
    "runs-code": FindingRule(
        "schema", Level.MEDIUM, _("Takes a command or a program as free text")
    ),
    "open-schema": FindingRule(
        "schema", Level.LOW, _("Takes arguments that its schema does not name")
    ),
    "missing-argument": FindingRule(
        "schema", Level.LOW, _("Requires an argument that it does not describe")
    ),
    "long-text": FindingRule("schema", Level.LOW, _("So long a text that nobody reads it")),
    "encoded-text": FindingRule(
        "schema", Level.MEDIUM, _("A long stretch that only a program reads")
    ),
    "unexplained-change": FindingRule(
        "change",
        Level.MEDIUM,
        _("Changed, and the version that its server states does not explain it"),
    ),
    # Of another program (inspection/sarif_report.py), with its own words as the quote.
    "external-error": FindingRule("external", Level.HIGH, _("The external scanner: an error")),
    "external-warning": FindingRule("external", Level.MEDIUM, _("The external scanner: a warning")),
    "external-note": FindingRule("external", Level.LOW, _("The external scanner: a note")),
    "external-failed": FindingRule(
        "external", Level.LOW, _("The external scanner failed: it did not look at this")
    ),
    **{name: FindingRule("lint", Level.ADVICE, said) for name, said in lint.RULES.items()},
}


class Finding(NamedTuple):
    """`where`: the path of a member; `quote`: the server's own words."""

    rule: str
    where: str = ""
    quote: str = ""

    @property
    def level(self) -> Level:
        return RULES[self.rule].level

    @property
    def family(self) -> str:
        return RULES[self.rule].family

    @property
    def said(self) -> str:
        return str(RULES[self.rule].said)


@dataclass(frozen=True, slots=True)
class Scan:
    """Findings in one definition, the worst first."""

    findings: tuple[Finding, ...]

    @property
    def score(self) -> int:
        """0 to 100: the weight of each rule once, the highest whole and the others by half."""
        weights = sorted((WEIGHTS[RULES[rule].level] for rule in self._rules), reverse=True)
        return min(100, sum(weights[:1]) + sum(weights[1:]) // 2)

    @property
    def is_red(self) -> bool:
        return self.score >= RED

    @property
    def risks(self) -> list[Finding]:
        return [one for one in self.findings if one.level != Level.ADVICE]

    @property
    def advice(self) -> list[Finding]:
        return [one for one in self.findings if one.level == Level.ADVICE]

    @property
    def _rules(self) -> set[str]:
        return {one.rule for one in self.findings}

    @property
    def is_unexplained(self) -> bool:
        """Whether it changed, and its server's version does not say why."""
        return any(one.rule == "unexplained-change" for one in self.findings)

    def with_others(self, findings: Collection[Finding]) -> Scan:
        return _ordered(dict.fromkeys([*self.findings, *findings])) if findings else self

    def kept(self) -> dict[str, Any]:
        # PostgreSQL keeps no NUL in JSON, and a server may have put one anywhere.
        kept = [[part.replace("\0", "\u2400") for part in one] for one in self.findings]
        return {"version": VERSION, "findings": kept}

    @classmethod
    def of_kept(cls, kept: object) -> Scan | None:
        """None where it was made by rules of another version."""
        match kept:
            case {"version": int(version), "findings": list(found)} if version == VERSION:
                return cls(tuple(Finding(*one) for one in found))
        return None

    @classmethod
    def was_red(cls, kept: object) -> bool:
        """Whether it was, by rules of any version."""
        match kept:
            case {"findings": list(found)}:
                known = (Finding(*one) for one in found if one[0] in RULES)
                return cls(tuple(known)).is_red
        return False

    @staticmethod
    def lasting_of_kept(kept: object) -> list[Finding]:
        """Findings that a scan of the definition alone does not make again."""
        match kept:
            case {"findings": list(found)}:
                known = [Finding(*one) for one in found if one[0] in RULES]
                return [one for one in known if one.family == "external" or one.rule in COMPARED]
        return []


# Found by comparing a definition with others, when it was first seen.
COMPARED = ("like-another", "known-tool", "unexplained-change")


class EarlierDefinition(NamedTuple):
    """`stated`: the version of itself that its server stated then, and states still."""

    content: Mapping[str, Any]
    stated: str


def scan(
    content: Mapping[str, Any],
    *,
    others: Collection[str] = (),
    like: str = "",
    earlier: EarlierDefinition | None = None,
) -> Scan:
    """`others`: names of other servers' tools; `like`: the one that its name could pass for;
    `earlier`: what its server said before, where nothing explains a change."""
    found: dict[Finding, None] = {}
    amounts: dict[str, int] = {}
    unexplained = _unexplained(content, earlier) if earlier else ()
    for one in (*unexplained, *_found(content, others, like)):
        if amounts.get(one.rule, 0) < MOST and one not in found:
            amounts[one.rule] = amounts.get(one.rule, 0) + 1
            found[one] = None
    return _ordered(found)


def _ordered(findings: Iterable[Finding]) -> Scan:
    order = list(Level)
    return Scan(tuple(sorted(findings, key=lambda one: order.index(one.level))))


def _found(content: Mapping[str, Any], others: Collection[str], like: str) -> Iterator[Finding]:
    known = {name for name in others if len(name) > 5 and ("_" in name or "-" in name)}
    known.discard(str(content.get("name") or ""))
    for where, text in texts(content):
        if _is_dialect(text) or (where.startswith("icons[") and text.startswith("data:")):
            continue
        for piece in _pieces(text):
            yield from _in_text(where, piece, known)
        if len(text) > LONGEST:
            yield Finding("long-text", where, _quote(text))
    yield from _in_names(content, like)
    yield from _contradictions(content)
    yield from _in_schema(content)
    yield from (Finding(rule, where) for rule, where in lint.check(content))


def _pieces(text: str) -> Iterator[str]:
    step = LOOKED_AT - OVERLAP
    return (text[at : at + LOOKED_AT] for at in range(0, max(len(text) - OVERLAP, 1), step))


def _unexplained(content: Mapping[str, Any], earlier: EarlierDefinition) -> Iterator[Finding]:
    """A finding for each member that changed. Pictures are no words."""
    for name in sorted({*content, *earlier.content} - {"icons"}):
        if content.get(name) != earlier.content.get(name):
            yield Finding("unexplained-change", name, _quote(earlier.stated))


LONGEST = 6000
_is_dialect = re.compile(r"https?://json-schema\.org/[\w/.#\-]{1,60}").fullmatch


def _quote(text: str) -> str:
    text = text.strip()
    return text[:QUOTED] + ("…" if len(text) > QUOTED else "")


def _in_text(where: str, text: str, known: Collection[str]) -> Iterator[Finding]:
    hidden = characters.counts(text)
    if hidden:
        ansi = hidden.pop("ansi", 0)
        if ansi:
            yield Finding("terminal-command", where, _quote(text))
        bad = sum(hidden.values())
        if bad:
            loud = hidden["tag"] or hidden["bidi"] or bad > 2 or hidden["control"]
            yield Finding("hidden-text" if loud else "odd-character", where, _quote(text))
        # What is said with nothing hidden in between.
        text = characters.without(text, characters.spans(text))
    if homoglyphs.suspects(text):
        yield Finding("look-alike", where, _quote(text))
    for one in secrets.find(text):
        yield Finding("secret", where, one.kind)
    if _ENCODED.search(text):
        yield Finding("encoded-text", where, _quote(text))
    if len(text) > 4:
        yield from _in_sentences(where, as_read(text), known)
    for decoded in texts_in_base64(text):
        yield from _in_sentences(where, decoded, known)


_ENCODED = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{120,4000}={0,2}(?![A-Za-z0-9+/=])")

_SIDE_ARGUMENT = re.compile(
    r"(?i)^(?:side_?note|conversation(?:_?(?:history|context|log))?|chat_?(?:history|log)"
    r"|system_?prompt|chain_?of_?thought|reasoning|thoughts?|full_?context|all_?tools?"
    r"|tools?_?list|model_?(?:name|id)|previous_?(?:calls|results|messages)|tool_?call_?history"
    r"|memory_?dump)$"
)


def _in_sentences(where: str, text: str, known: Collection[str]) -> Iterator[Finding]:
    for sentence in instructions.sentences(text):
        rules = instructions.rules(sentence)
        for rule in rules:
            yield Finding(rule, where, _quote(sentence))
        if _named(sentence, known) and (rules or _ABOUT.search(sentence)):
            yield Finding("known-tool", where, _quote(sentence))


_ABOUT = re.compile(
    r"(?i)\b(?:must|always|never|instead|before|whenever|when|every time|redirect|bcc|replaces?)\b"
)
_WORD = re.compile(r"[A-Za-z0-9_\-]{6,128}")


def _named(sentence: str, known: Collection[str]) -> bool:
    return bool(known) and any(word in known for word in _WORD.findall(sentence))


# Whatever stands before or after it in the name: the name alone says what is to be given.
_SIDE_WORDS = re.compile(
    r"(?i)(?:^|_)(?:conversation_(?:history|context|log)|chat_(?:history|log)|system_prompt"
    r"|chain_of_thought|full_context|tool_call_history|memory_dump"
    r"|contents?_(?:of|from)_(?:reading|the_file|file|ssh|env|id|credentials|config))(?:_|$)"
)
_HUMP = re.compile("(?<=[a-z0-9])(?=[A-Z])")
# What an argument says that it takes, whatever it is called.
_SIDE_DESCRIPTION = re.compile(
    r"(?i)\W*(?:the |your |a |an )?"
    r"(?:(?:full|entire|complete|whole) (?:(?:previous|current|prior) )?"
    r"(?:conversation|chat|dialog(?:ue)?)\b|(?:conversation|chat) (?:history|log|so far|transcript)"
    r"|system prompt|chain of thought|your (?:reasoning|memory|instructions|context)"
    r"|(?:everything|all) (?:that )?you (?:know|have seen|remember))"
    r"|\W*(?:完整的?|全部的?|整个|所有)?(?:对话|聊天)(?:记录|历史|内容|上下文)|\W*系统提示词?"
)


def _in_names(content: Mapping[str, Any], like: str) -> Iterator[Finding]:
    if like:
        yield Finding("like-another", "name", like)
    for name in properties(content):
        if _SIDE_ARGUMENT.match(name) or _SIDE_WORDS.search(_HUMP.sub("_", name[:500])):
            yield Finding("side-argument", f"inputSchema.properties.{name}", name)
    for one in arguments(content):
        if _SIDE_DESCRIPTION.match(one.said):
            yield Finding("side-argument", one.where, _quote(one.said))


# Verbs at the beginning of a name, or a part of it, that change something; and those that destroy.
_CHANGES = frozenset(
    (
        *("append", "apply", "approve", "assign", "cancel", "create", "deploy", "disable"),
        *("edit", "enable", "execute", "grant", "insert", "install", "invite", "kill"),
        *("modify", "move", "provision", "publish", "purchase", "refund", "rename", "replace"),
        *("reset", "restart", "revoke", "rotate", "save", "send", "submit", "terminate"),
        *("transfer", "unassign", "update", "upload", "write"),
    )
)
_DESTROYS = frozenset(
    (
        *("delete", "remove", "destroy", "drop", "erase", "purge", "wipe", "truncate", "kill"),
        *("terminate", "uninstall", "revoke", "cancel", "overwrite", "nuke", "rm", "del", "unlink"),
        *("rmdir", "rmtree", "shred"),
    )
)
# What a name ends with that speaks of something: `update_check`, `move_generator`.
_LOOKS = frozenset(
    (
        *("check", "checker", "status", "list", "history", "log", "logs", "generator", "preview"),
        *("plan", "info", "lookup", "search", "count", "notes", "diff", "schedule", "quote"),
    )
)
# In Chinese: what comes before such a verb, and what makes a noun of it (a list of what was sent).
_ADVERB = "^\\W*(?:永久|彻底|批量|立即|用于|可以?)?地?"
_NOT_OF = "(?![^。！？\n，,]{0,6}(?:状态|记录|日志|历史|列表|查询|详情|次数|数量|统计|模板|预览))"
_SAYS_IT_DESTROYS = re.compile(
    r"(?i)^\W*(?:permanently |irreversibly |immediately )?(?:deletes?|removes?|destroys?|erases?"
    r"|purges?|wipes?|drops?|truncates?|overwrites?)\b"
    rf"|{_ADVERB}(?:删除|移除|删掉|清空|清除|销毁|抹除|擦除|覆盖|卸载|撤销|终止){_NOT_OF}"
)
_SAYS_IT_CHANGES = re.compile(
    r"(?i)^\W*(?:sends?|creates?|updates?|writes?|modif(?:y|ies)|inserts?|transfers?|pays?"
    r"|executes?|deploys?|publish(?:es)?|uploads?|posts?|cancels?|revokes?|buys?|books?|charges?"
    r"|refunds?|merges?|approves?)\b"
    rf"|{_ADVERB}(?:发送|创建|新建|新增|更新|写入|转账|付款|支付|执行|部署|发布|上传|取消|退款"
    rf"|购买|提交|审批){_NOT_OF}"
)


def _verbs(content: Mapping[str, Any]) -> list[str]:
    """The words that its name begins and ends with: `delete_user`, `users_delete`."""
    parts = [part for part in name_parts(content) if part.isascii()]
    return [parts[0], parts[-1]] if len(parts) > 1 else parts


def _contradictions(content: Mapping[str, Any]) -> Iterator[Finding]:
    annotations = content.get("annotations")
    hints = annotations if isinstance(annotations, Mapping) else {}
    name, description = str(content.get("name") or ""), str(content.get("description") or "")
    verbs = _verbs(content)
    first = set(verbs[:1])
    destroys = bool(set(verbs) & _DESTROYS) or _says(_SAYS_IT_DESTROYS, description, name)
    changes = bool(first & _CHANGES and not set(verbs[1:]) & _LOOKS) or _says(
        _SAYS_IT_CHANGES, description, name
    )
    if hints.get("readOnlyHint") is True and (destroys or changes):
        yield Finding("not-read-only", "annotations.readOnlyHint", name)
    elif hints.get("destructiveHint") is False and destroys:
        yield Finding("not-harmless", "annotations.destructiveHint", name)
    if hints.get("openWorldHint") is False:
        for argument in properties(content):
            if _ADDRESS.fullmatch(argument):
                yield Finding("not-closed", f"inputSchema.properties.{argument}", argument)


def _says(pattern: re.Pattern[str], description: str, name: str) -> bool:
    """Whether the description begins so, or a name in Chinese: a word of English may be a noun."""
    return bool(pattern.search(description) or (not name.isascii() and pattern.search(name)))


_ADDRESS = re.compile(
    r"(?i)(?:.{0,40}[_\-])?(?:url|uri|webhook|webhook_url|recipient|callback|endpoint|email|host)s?"
)
_CODE = re.compile(
    r"(?i)(?:.{0,40}[_\-])?(?:command|cmd|shell|script|code|sql|program|expression|bash|exec)"
)


def _in_schema(content: Mapping[str, Any]) -> Iterator[Finding]:
    schema = content.get("inputSchema")
    if not isinstance(schema, Mapping):
        return
    for one in arguments(content):
        if _CODE.fullmatch(one.name) and one.is_free_text(FORMS):
            yield Finding("runs-code", one.where, one.name)
    if schema.get("additionalProperties") is True or (
        not properties(content)
        and schema.get("type") == "object"
        and "additionalProperties" in schema
        and schema["additionalProperties"] is not False
    ):
        yield Finding("open-schema", "inputSchema")
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in properties(content):
            yield Finding("missing-argument", "inputSchema.required", name)


def families(findings: Iterable[Finding]) -> set[str]:
    return {one.family for one in findings}


# For docs and figures.
FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(rule.family for rule in RULES.values()))
Check = Callable[[Mapping[str, Any]], Iterator[tuple[str, str]]]
