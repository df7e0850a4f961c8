"""The map of words: for each thing, the word of the product and those that it does not use.

Patterns are searched in every message of pages, code and scripts, without regard to case. What is
`but` for is another thing that happens to use the words.
"""

from typing import NamedTuple


class Word(NamedTuple):
    word: str
    unused: str
    but: frozenset[str] = frozenset()


WORDS = (
    Word(
        "Pending approval",
        r"\bheld\b|\bcalls? (that )?(wait|waits|waiting)\b",
        # Votes, and any open call.
        frozenset({"than this call waits for", "calls that wait in it"}),
    ),
    # An operating system's own words.
    Word("Approve, Deny", r"\brefus\w*|\bsaid (yes|no)\b", frozenset({"Connection refused"})),
    Word("Expired", r"\btoo late\b", frozenset({"The confirmation came too late."})),
    Word(
        "Succeeded, Failed, Timed out, Outcome unknown",
        r"took too long|went wrong|nobody knows",
        frozenset({"Something went wrong"}),
    ),
    Word("Record outcome", r"take this as what happened"),
    Word("Require approval", r"\basks? a person\b"),
    Word("Monitor only", r"only watched"),
    Word("Policy simulator, Evaluate", r"\bexplain (this|the) call|ask the rules"),
    Word("Deciding rule, No match, Shadowed by", r"it decides|came close|never matters"),
    Word("Standing approval", r"\ba yes in advance|standing grants?|\bthe grant\b"),
    Word("Emergency stop, Suspended, Resume", r"\bfr[eo]ez\w*|stands? still|let it go on"),
    Word(
        "read-only, destructive, idempotent, open-world",
        r"only reads|may destroy|same when repeated|reaches outside",
    ),
    Word("Not declared", r"(server|tool|definition) does not say"),
    Word("Unpublished; Changed, needs review", r"waits? to be published|waits? for review"),
    Word("Retry-safe", r"safe to repeat|the same again"),
    Word("Connection failed", r"server\w* cannot be asked"),
    Word(
        "Reachable, Unreachable, Disabled",
        r"server (is |was )?(lost|on|off)\b|servers that are (lost|on|off)\b",
    ),
    Word("Users, Invite user, Joined, Owns", r"invite somebody|here since|answers for\b"),
    Word("Active, Disabled", r"let in again|switch(ed|es)? (on|off)"),
    Word("Create, Rotate, Revoke", r"(make|replace) (a |the )?token"),
    Word("p50, p95, p99", r"half took"),
    Word(
        "All time, Save filter, Export results, Remove",
        r"what fits|take(n|s)? (\w+ ){0,2}away|for ever\b",
    ),
    Word("Timeline", r"^what happened$"),
    Word("Arguments, No arguments, Raw payload", r"bytes that would be sent|without arguments"),
    Word("Unverified context", r"claims of others"),
    Word("Comments (0)", r"no comments yet|in your own words"),
    Word("Access denied, Page not found", r"not for your role|that was our fault"),
    Word("Break-glass", r"the glass was"),
    Word("Deactivate (links and images)", r"\binert\b"),
    Word("Your vote", r"\byour word on\b"),
    Word("again; anyway, still", r"\banew\b|\ball the same\b"),
)
