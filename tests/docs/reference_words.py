# ruff: noqa: E501
"""Words of the reference pages that the code does not have, in both languages."""

from calls.record.refusal import RefusalDetails, RetryAdvice

PAGES = {
    "cli": {
        "en": (
            "Commands",
            "Run each command as `python3 manage.py NAME`, in containers as\n"
            "`docker compose exec web python manage.py NAME`. Commands of the owner (`prepare`, `backup`,\n"
            "`restore`, `pause`, `resume`, `rotate_secret`, `audit_forget`) need `DATABASE_OWNER_URL`.",
        ),
        "zh-hans": (
            "命令",
            "每个命令以 `python3 manage.py NAME` 运行，在容器中以 `docker compose exec web python manage.py NAME`\n"
            "运行。所有者的命令（`prepare`、`backup`、`restore`、`pause`、`resume`、`rotate_secret`、`audit_forget`）\n"
            "需要 `DATABASE_OWNER_URL`。命令的输出和以下选项说明均为英文。",
        ),
    },
    "entries": {
        "en": (
            "Actions of entries",
            "Each entry of the audit log has one of these actions. Pages show the words; exports, filters in URLs\n"
            "and webhooks use the name.",
        ),
        "zh-hans": (
            "记录的操作",
            "审计日志的每条记录都有以下操作之一。页面显示文字；导出、URL 中的筛选条件和 Webhook 使用名称。",
        ),
    },
    "errors": {
        "en": (
            "Errors",
            "A call without a result has the reason as `countersign/refusal` in `_meta`, and as `refusal` in REST\n"
            "([what agents get](mcp.md#when-there-is-no-result), [REST](rest.md)). `kind` is the cause, `try_again`\n"
            "the advice for a retry.",
        ),
        "zh-hans": (
            "错误",
            "没有结果的调用，其原因在 `_meta` 的 `countersign/refusal` 中，在 REST 中为 `refusal`\n"
            "（[智能体接口](mcp.md#when-there-is-no-result)、[REST](rest.md)）。`kind` 是原因，`try_again` 是重试建议。",
        ),
    },
    "call-states": {
        "en": (
            "Call states",
            "A call begins as `refused`, `invalid`, `held`, `queued` or `running`. The database permits these moves and no\n"
            "others. A state without next states is final.",
        ),
        "zh-hans": (
            "调用状态",
            "调用以 `refused`、`invalid`、`held`、`queued` 或 `running` 开始。数据库只允许以下转换。没有后续状态的即为最终状态。",
        ),
    },
    "roles": {
        "en": (
            "Roles",
            "No role includes another: give an administrator who also decides calls the role Approver.",
        ),
        "zh-hans": ("角色", "角色之间互不包含：如果管理员也要审批调用，请同时授予其审批人角色。"),
    },
}

EXECUTED_TITLE = {"en": "Executed", "zh-hans": "是否执行"}
CODES_TITLE = {"en": "JSON-RPC codes", "zh-hans": "JSON-RPC 代码"}
ROLES_END = {
    "en": (
        "Roles are given under *Users*. A second administrator confirms new approvers and administrators\n"
        "([security model](../concepts/security-model.md#two-people)).\n"
    ),
    "zh-hans": (
        "角色在*用户*中授予。新的审批人和管理员由另一位管理员确认\n"
        "（[安全模型](../concepts/security-model.md#two-people)）。\n"
    ),
}

# Actions whose names the code puts together.
COMPOSED = {
    *(
        f"{what}.{end}"
        for what in ("passkey", "factor", "proof", "sign_in")
        for end in ("failed", "limited")
    ),
    *(f"approval.{kind}" for kind in ("answer", "comment", "question")),
    *(
        f"{what}.{move}"
        for what in ("item", "definition")
        for move in ("found", "changed", "restored")
    ),
    *("item.returned", "item.vanished", "call.received"),
}

KINDS = {
    "policy": {
        "en": "A rule denies the call. `changed` if the rule has a condition.",
        "zh-hans": "规则拒绝该调用。规则带有条件时为 `changed`。",
    },
    "invalid": {
        "en": "The arguments do not fit the schema; `violations` lists each place.",
        "zh-hans": "参数不符合 Schema；`violations` 列出每一处。",
    },
    "unknown_tool": {
        "en": "This agent has no such tool at this address.",
        "zh-hans": "该智能体在此地址没有这个工具。",
    },
    "key": {
        "en": "The idempotency key belongs to another call.",
        "zh-hans": "幂等键属于另一个调用。",
    },
    "limit": {
        "en": (
            "A limit is reached, or too many calls are waiting. `after_s`: seconds until there is room, where known."
            " `changed` if this call alone exceeds the limit."
        ),
        "zh-hans": "达到限额，或等待中的调用过多。`after_s`：到有余量为止的秒数（如果已知）。仅此调用就超过限额时为 `changed`。",
    },
    "sign_in": {
        "en": "The agent's user has to sign in at the server first.",
        "zh-hans": "智能体的用户须先登录该服务器。",
    },
    "frozen": {
        "en": "An emergency stop or a pause.",
        "zh-hans": "紧急停止或暂停。",
    },
    "unavailable": {
        "en": "The audit log cannot be written. Nothing was sent unless `recorded` is `unknown`.",
        "zh-hans": "无法写入审计日志。除非 `recorded` 为 `unknown`，否则没有发送任何内容。",
    },
    "denied": {"en": "An approver denied the call.", "zh-hans": "审批人拒绝了该调用。"},
    "expired": {
        "en": "The time to decide or to start ended.",
        "zh-hans": "决定期限或启动期限已过。",
    },
    "superseded": {
        "en": (
            "Its tool, rules, server or toolset changed before it was sent. `reason` has the cause; the advice depends on it."
        ),
        "zh-hans": "在发送之前，其工具、规则、服务器或工具集发生了变化。原因在 `reason` 中，建议取决于该原因。",
    },
    "withdrawn": {"en": "The agent withdrew the call.", "zh-hans": "智能体撤回了该调用。"},
    "cancelled": {"en": "The call was cancelled.", "zh-hans": "该调用已取消。"},
    "failed": {
        "en": "The server was not reached, or refused the call. `countersign/executed` tells which.",
        "zh-hans": "无法访问服务器，或服务器拒绝了该调用。由 `countersign/executed` 区分。",
    },
    "too_large": {
        "en": "The tool was executed, but its result exceeded the size limit and was not kept.",
        "zh-hans": "工具已执行，但结果超过大小限制，未保留。",
    },
    "result_blocked": {
        "en": "The tool was executed, but its result failed its checks (output schema, own patterns) and is not passed on.",
        "zh-hans": "工具已执行，但结果未通过检查（输出 Schema、自定义模式），不予传递。",
    },
    "timed_out": {
        "en": "The server did not answer in time. The call may have been executed.",
        "zh-hans": "服务器没有及时响应。该调用可能已执行。",
    },
    "unknown": {
        "en": "The call may have been executed. Do not repeat it; an operator records the outcome.",
        "zh-hans": "该调用可能已执行。请勿重复；由操作员登记结果。",
    },
}

# Advice that is given where a request ends before it is a call, or depends on what changed.
FIXED = (
    *(
        RefusalDetails(kind, RetryAdvice.CHANGED)
        for kind in ("invalid", "unknown_tool", "key", "superseded")
    ),
    *(
        RefusalDetails(kind, RetryAdvice.LATER)
        for kind in ("limit", "frozen", "unavailable", "superseded", "sign_in")
    ),
    RefusalDetails("limit", RetryAdvice.CHANGED),
    RefusalDetails("superseded", RetryAdvice.NO),
    RefusalDetails("result_blocked", RetryAdvice.NO),
)

ADVICE = {
    "no": {"en": "do not ask again", "zh-hans": "不要再次请求"},
    "changed": {
        "en": "ask again only with other arguments",
        "zh-hans": "只有更改参数后才能再次请求",
    },
    "later": {"en": "the same call may work later", "zh-hans": "相同的调用稍后可能成功"},
    "now": {"en": "the same call may work at once", "zh-hans": "相同的调用可以立即再次请求"},
}

CODES = {
    "PARSE_ERROR": {"en": "the body is not JSON", "zh-hans": "正文不是 JSON"},
    "INVALID_REQUEST": {
        "en": "the body is not a valid JSON-RPC request",
        "zh-hans": "正文不是有效的 JSON-RPC 请求",
    },
    "METHOD_NOT_FOUND": {"en": "unknown method", "zh-hans": "未知方法"},
    "INVALID_PARAMS": {
        "en": "invalid parameters; unknown tool, prompt or (2026-07-28) resource",
        "zh-hans": "参数无效；未知的工具、提示词或资源（2026-07-28）",
    },
    "INTERNAL_ERROR": {
        "en": "an error in Countersign",
        "zh-hans": "Countersign 内部错误",
    },
    "HEADER_MISMATCH": {
        "en": "a header contradicts the body",
        "zh-hans": "请求头与正文矛盾",
    },
    "MISSING_CAPABILITY": {
        "en": "the client did not declare a required capability",
        "zh-hans": "客户端没有声明所需的能力",
    },
    "UNSUPPORTED_VERSION": {
        "en": "unsupported protocol revision",
        "zh-hans": "不支持的协议修订版",
    },
    "RESOURCE_NOT_FOUND": {
        "en": "unknown resource, in revisions before 2026-07-28",
        "zh-hans": "未知资源（2026-07-28 之前的修订版）",
    },
}

# By permission, in the order of the table.
PERMISSIONS = {
    "registry.view_tool": {
        "en": "view servers, tools and toolsets",
        "zh-hans": "查看服务器、工具和工具集",
    },
    "calls.view_call": {"en": "view calls", "zh-hans": "查看调用"},
    "calls.view_payload": {"en": "view arguments and results", "zh-hans": "查看参数和结果"},
    "calls.erase_payload": {
        "en": "erase arguments and results of calls that have ended",
        "zh-hans": "删除已结束调用的参数和结果",
    },
    "calls.view_received": {
        "en": "view results as received, before cleaning",
        "zh-hans": "查看清理前收到的结果",
    },
    "approvals.view_approval": {"en": "view approvals", "zh-hans": "查看审批"},
    "approvals.decide_approval": {"en": "approve and deny calls", "zh-hans": "批准和拒绝调用"},
    "approvals.view_grant": {"en": "view standing approvals", "zh-hans": "查看预授权"},
    "approvals.revoke_grant": {
        "en": "revoke standing approvals of others",
        "zh-hans": "吊销他人的预授权",
    },
    "calls.cancel_call": {
        "en": "cancel calls, record outcomes",
        "zh-hans": "取消调用，登记结果",
    },
    "calls.begin_freeze": {"en": "begin an emergency stop", "zh-hans": "发起紧急停止"},
    "calls.end_freeze": {"en": "end an emergency stop", "zh-hans": "结束紧急停止"},
    "registry.change_server": {"en": "register and change servers", "zh-hans": "注册和更改服务器"},
    "registry.operate_server": {
        "en": "refresh servers, publish definitions",
        "zh-hans": "刷新服务器，发布定义",
    },
    "registry.change_tool": {
        "en": "set how a tool's calls are handled",
        "zh-hans": "设置工具调用的处理方式",
    },
    "registry.change_toolset": {"en": "change toolsets", "zh-hans": "更改工具集"},
    "accounts.view_agent": {"en": "view agents and their tokens", "zh-hans": "查看智能体及其令牌"},
    "accounts.change_agent": {
        "en": "create and change agents and tokens",
        "zh-hans": "创建和更改智能体及令牌",
    },
    "policies.view_rule": {"en": "view rules and limits", "zh-hans": "查看规则和限额"},
    "policies.change_rule": {"en": "change rules and limits", "zh-hans": "更改规则和限额"},
    "policies.view_policyplan": {
        "en": "view plans of policy files",
        "zh-hans": "查看策略文件的变更计划",
    },
    "policies.add_policyplan": {
        "en": "propose plans of policy files",
        "zh-hans": "提出策略文件的变更计划",
    },
    "policies.confirm_policyplan": {
        "en": "confirm plans of policy files",
        "zh-hans": "确认策略文件的变更计划",
    },
    "policies.apply_policyplan": {
        "en": "apply confirmed plans of policy files",
        "zh-hans": "应用已确认的策略文件变更计划",
    },
    "accounts.view_user": {"en": "view users", "zh-hans": "查看用户"},
    "accounts.change_user": {
        "en": "invite and change users and their roles",
        "zh-hans": "邀请和更改用户及其角色",
    },
    "auth.change_group": {"en": "change groups", "zh-hans": "更改用户组"},
    "accounts.view_serviceaccount": {"en": "view service accounts", "zh-hans": "查看服务账户"},
    "accounts.change_serviceaccount": {
        "en": "create and change service accounts and their tokens",
        "zh-hans": "创建和更改服务账户及其令牌",
    },
    "accounts.view_access_review": {"en": "view the access review", "zh-hans": "查看访问审查"},
    "accounts.sign_access_review": {
        "en": "sign off the access review",
        "zh-hans": "签署访问审查",
    },
    "notifications.view_webhook": {"en": "view webhooks", "zh-hans": "查看 Webhook"},
    "notifications.view_oncallschedule": {
        "en": "view on-call schedules",
        "zh-hans": "查看值班表",
    },
    "notifications.change_oncallschedule": {
        "en": "change on-call schedules",
        "zh-hans": "更改值班表",
    },
    "notifications.change_escalationpolicy": {
        "en": "change escalation policies",
        "zh-hans": "更改逐级通知策略",
    },
    "notifications.change_webhook": {"en": "change webhooks", "zh-hans": "更改 Webhook"},
    "audit.view_entry": {"en": "read the audit log", "zh-hans": "阅读审计日志"},
    "audit.export_entry": {"en": "export the audit log", "zh-hans": "导出审计日志"},
}
# Given together with one of those above.
IMPLIED = {
    *(
        f"registry.view_{m}"
        for m in ("server", "definition", "publication", "discovery", "toolset")
    ),
    *("registry.add_server", "registry.add_toolset", "registry.delete_toolset"),
    *("accounts.add_agent", "accounts.add_agenttoken", "accounts.change_agenttoken"),
    "accounts.add_serviceaccount",
    *("accounts.view_agenttoken", "accounts.add_user", "auth.add_group", "auth.view_group"),
    *(f"policies.{verb}_rule" for verb in ("add", "delete")),
    *(f"policies.{verb}_limit" for verb in ("add", "change", "delete", "view")),
    *(f"notifications.{verb}_webhook" for verb in ("add", "delete")),
}

COMMANDS = {
    "add_examples": "登记示例服务器及其规则，并将其加入一个工具集",
    "wal_archive": "显示可以恢复到哪些时刻，查找某一时刻所用的基础备份，或删除旧文件",
    "archive_month": "将过去某个月的调用及其证明写入文件，进行验证，并可将其从数据库删除",
    "audit_export": "将整个已封存的审计日志写成 JSONL，供 verify.py 使用",
    "audit_forget": "遗忘一个名称，或一条记录、一个调用的文字；不带 `--yes` 时只显示",
    "audit_key": "输出为检查点签名的公钥，交给验证者",
    "audit_rotate_key": "改用另一个密钥签名；以前的密钥继续证明它们签过的内容",
    "audit_seal": "立即封存尚未封存的记录（封存进程每秒自动进行）",
    "audit_verify": "按签名和锚点检查数据库中的每条记录",
    "backup": "将全部内容备份到一个文件，或用 `--check` 检查备份",
    "call": "以智能体的名义调用工具；由工作进程运行",
    "changepassword": "设置用户的密码；写入审计日志",
    "confirm_person": "确认受邀账户由邀请人以外的人持有",
    "confirm_role": "在没有第二位管理员时，确认管理员申请授予的角色",
    "demo_day": "在 `up` 运行时，让智能体 scout 用示例服务器完成一天的工作",
    "discover": "刷新指定的或所有启用的服务器提供的内容",
    "ensure_roles": "使各角色具有应有的权限",
    "explain": "显示规则对一个调用的判定及原因；不调用也不记录",
    "fill_demo": "在演示数据库中填入 30 天的虚构数据；由 `up --demo` 运行",
    "findings": "输出对服务器当前文本的检查结果，或写成 SARIF 2.1.0",
    "grant_app_role": "授予应用程序角色和封存角色其权限（以所有者身份）",
    "issue_token": "为智能体签发令牌并输出一次；带 `--owner` 时先创建智能体",
    "maintain": "删除过期内容（大型结果、多数检查点），并创建后续月份的分区",
    "pause": "在 `resume` 之前不发送任何内容",
    "prepare": "迁移并授权；在新数据库上创建第一位管理员",
    "publish": "显示服务器未发布的内容及差异，并发布其中一项",
    "register_server": "按 URL 或主机命令目录中的名称注册 MCP 服务器",
    "reset_factors": "移除丢失设备的用户的通行密钥和验证器；写入审计日志",
    "restart": "逐个重启运行中的 `up` 的进程；调用继续进行",
    "check_restore": "将备份恢复到临时目录，在其中验证审计日志，然后删除",
    "erase_payload": "删除调用的参数、结果及其所有副本；不带 `--yes` 时只检查",
    "import_month": "验证归档文件后，将该月的调用放回数据库",
    "legal_hold": "设置或解除法律保留，或列出生效的保留：被保留的内容不会遗忘",
    "restore": "将备份恢复到已停止或已暂停的系统；不会重复发送",
    "resume": "结束暂停：重新接收和发送调用",
    "revoke_token": "按令牌本身或 csa_ 之后的八个字符吊销智能体令牌",
    "rotate_secret": "更换系统密钥，并用新密钥重新封装以前的内容",
    "sign_in_link": "输出 24 小时内有效的一次性登录地址",
    "toolset": "创建工具集，设置其内容和可以使用它的智能体，并显示",
    "up": "启动控制台、智能体端点、工作进程、beat 和封存进程，必要时启动数据库和消息代理",
    "update_agent": "设置智能体在多少秒后得知其调用待审批",
    "update_server": "更改服务器的地址或机密，或采用主机目录中更新后的命令",
    "verify_proofs": "仅凭存储的数据重新检查用通行密钥或动态验证码确认的决定",
}
