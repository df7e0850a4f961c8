"""Which scenarios of the official suite are run, in which revisions."""

LEGACY = ["2025-06-18", "2025-11-25"]
BOTH = [*LEGACY, "2026-07-28"]
SCENARIOS = {
    "server-initialize": LEGACY,
    "server-session-lifecycle": LEGACY,
    "ping": LEGACY,
    "tools-list": BOTH,
    "tools-call-simple-text": BOTH,
    "tools-call-image": BOTH,
    "tools-call-audio": BOTH,
    "tools-call-embedded-resource": BOTH,
    "tools-call-mixed-content": BOTH,
    "tools-call-error": BOTH,
    "tools-call-with-progress": BOTH,
    "logging-set-level": LEGACY,
    "tools-call-with-logging": LEGACY,
    "tools-call-sampling": LEGACY,
    "tools-call-elicitation": LEGACY,
    "elicitation-sep1034-defaults": ["2025-11-25"],
    "elicitation-sep1330-enums": ["2025-11-25"],
    "server-stateless": ["2026-07-28"],
    "input-required-result-basic-elicitation": ["2026-07-28"],
    "input-required-result-basic-sampling": ["2026-07-28"],
    "input-required-result-basic-list-roots": ["2026-07-28"],
    "input-required-result-request-state": ["2026-07-28"],
    "input-required-result-multiple-input-requests": ["2026-07-28"],
    "input-required-result-multi-round": ["2026-07-28"],
    "input-required-result-missing-input-response": ["2026-07-28"],
    "input-required-result-non-tool-request": ["2026-07-28"],
    "input-required-result-result-type": ["2026-07-28"],
    "input-required-result-unsupported-methods": ["2026-07-28"],
    "input-required-result-tampered-state": ["2026-07-28"],
    "input-required-result-capability-check": ["2026-07-28"],
    "input-required-result-ignore-extra-params": ["2026-07-28"],
    "input-required-result-validate-input": ["2026-07-28"],
    "json-schema-2020-12": ["2025-11-25", "2026-07-28"],
    "resources-list": BOTH,
    "resources-read-text": BOTH,
    "resources-read-binary": BOTH,
    "resources-templates-read": BOTH,
    "sep-2164-resource-not-found": ["2026-07-28"],
    "resources-subscribe": LEGACY,
    "resources-unsubscribe": LEGACY,
    "prompts-list": BOTH,
    "prompts-get-simple": BOTH,
    "prompts-get-with-args": BOTH,
    "prompts-get-embedded-resource": BOTH,
    "prompts-get-with-image": BOTH,
    "completion-complete": BOTH,
    "caching": ["2026-07-28"],
    "server-sse-polling": ["2025-11-25"],
    "server-sse-multiple-streams": ["2025-11-25", "2026-07-28"],
    "dns-rebinding-protection": ["2025-11-25", "2026-07-28"],
    "http-header-validation": ["2026-07-28"],
    "http-custom-header-server-validation": ["2026-07-28"],
    "tasks-lifecycle": ["2026-07-28"],
    "tasks-capability-negotiation": ["2026-07-28"],
    "tasks-wire-fields": ["2026-07-28"],
    "tasks-request-state-removal": ["2026-07-28"],
    "tasks-mrtr-input": ["2026-07-28"],
    "tasks-request-headers": ["2026-07-28"],
    "tasks-dispatch-and-envelope": ["2026-07-28"],
    "tasks-mrtr-composition": ["2026-07-28"],
    "tasks-required-task-error": ["2026-07-28"],
}
# Wishes of the suite: that lists change as soon as the server behind us changes its own. Servers
# are looked at every few minutes, and what is new waits for a person.
WISHES = {
    "server-stateless": frozenset(
        (
            "sep-2575-server-sends-tools-list-changed-on-subscription",
            "sep-2575-server-sends-prompts-list-changed-on-subscription",
        )
    )
}
ALL = [(one, revision) for one, revisions in SCENARIOS.items() for revision in revisions]
