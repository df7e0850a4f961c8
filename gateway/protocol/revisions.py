"""Which revisions of MCP agents may speak, and the names and numbers that MCP gives things.

Source: MCP 2026-07-28, changelog and basic/index; earlier revisions' basic/lifecycle.
"""

MODERN = "2026-07-28"
# Those that begin with a handshake, newest first.
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26")
# What a legacy client speaks that names no revision; the only one with batches.
OLDEST = LEGACY[-1]
# The only one with tasks that clients ask for (today's are an extension, which servers decide on),
# and the only one whose clients expect events that only name a place.
LAST_LEGACY = LEGACY[0]
SUPPORTED = (MODERN, *LEGACY)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022
# Of the revisions before 2026-07-28, which has -32602 for it.
RESOURCE_NOT_FOUND = -32002

META = "io.modelcontextprotocol/"
META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT = "io.modelcontextprotocol/clientInfo"
META_SERVER = "io.modelcontextprotocol/serverInfo"
TASKS = "io.modelcontextprotocol/tasks"
RELATED_TASK = META + "related-task"
IMMEDIATE = META + "model-immediate-response"

SERVER_INFO = {"name": "countersign", "title": "Countersign", "version": "0.1.0"}
