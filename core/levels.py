"""How important a line of a server's log is, least first (RFC 5424, as MCP has them)."""

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
