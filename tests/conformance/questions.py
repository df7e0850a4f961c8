"""The tools of the conformance suite that ask their client something before they answer."""

from typing import Any

from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ClientCapabilities,
    InputRequiredResult,
    TextContent,
)

MISSING_CAPABILITY = -32021
TEXT = {"type": "string"}


def form(message: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    params = {"message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def sample(prompt: str) -> dict[str, Any]:
    said = {"role": "user", "content": {"type": "text", "text": prompt}}
    return {"method": "sampling/createMessage", "params": {"messages": [said], "maxTokens": 100}}


ROOTS = {"method": "roots/list", "params": {}}
CONFIRM = form("Please confirm", ok={"type": "boolean"})
NAME = form("What is your name?", name=TEXT)
STEPS = [
    {"step1": form("Step 1: What is your name?", name=TEXT)},
    {"step2": form("Step 2: What is your favorite color?", color=TEXT)},
]
DEFAULTS = form(
    "Please review",
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)
CHOICE = ["option1", "option2", "option3"]
TITLED = [
    {"const": f"value{n}", "title": f"{word} Option"}
    for n, word in enumerate(("First", "Second", "Third"), 1)
]
ENUMS = form(
    "Please choose",
    untitledSingle={"type": "string", "enum": CHOICE},
    titledSingle={"type": "string", "oneOf": TITLED},
    legacyEnum={
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti={"type": "array", "items": {"type": "string", "enum": CHOICE}},
    titledMulti={"type": "array", "items": {"anyOf": TITLED}},
)

# By tool: rounds of what it asks, by keys.
QUESTIONS: dict[str, list[dict[str, Any]]] = {
    "test_input_required_result_elicitation": [{"user_name": NAME}],
    "test_input_required_result_sampling": [
        {"capital_question": sample("What is the capital of France?")}
    ],
    "test_input_required_result_list_roots": [{"client_roots": ROOTS}],
    "test_input_required_result_request_state": [{"confirm": CONFIRM}],
    "test_input_required_result_tampered_state": [{"confirm": CONFIRM}],
    "test_input_required_result_multiple_inputs": [
        {"user_name": NAME, "greeting": sample("Generate a greeting"), "client_roots": ROOTS}
    ],
    "test_input_required_result_multi_round": STEPS,
    "test_input_required_result_capabilities": [{"user_name": NAME, "greeting": sample("Hello?")}],
    "test_streaming_elicitation": [{"user_name": NAME}],
    "test_missing_capability": [{"greeting": sample("Hello?")}],
    "test_sampling": [{"answer": sample("")}],
    "test_elicitation": [{"user": form("", username=TEXT, email=TEXT)}],
    "test_elicitation_sep1034_defaults": [{"review": DEFAULTS}],
    "test_elicitation_sep1330_enums": [{"choice": ENUMS}],
}
PROMPT = "test_input_required_result_prompt"
ARGUMENTS = {"test_sampling": "prompt", "test_elicitation": "message"}


def schema(name: str) -> dict[str, Any]:
    if argument := ARGUMENTS.get(name):
        return {"type": "object", "properties": {argument: TEXT}, "required": [argument]}
    return {"type": "object", "additionalProperties": False}


def ask(
    ctx: ServerRequestContext[Any], params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    """Which round it is stands in the state; a client without one is in the first."""
    rounds = QUESTIONS[params.name]
    at = int(params.request_state or "0")
    wanted = _wanted(params, rounds[at], _abilities(ctx))
    given = params.input_responses or {}
    if given.keys() >= wanted.keys():
        at += 1
        if at == len(rounds):
            said = "state-ok " + ", ".join(f"{key}={given[key]}" for key in wanted)
            return CallToolResult(content=[TextContent(type="text", text=said)])
        wanted = rounds[at]
    requests: Any = wanted
    return InputRequiredResult(input_requests=requests, request_state=str(at))


def about_the_prompt() -> InputRequiredResult:
    requests: Any = {"user_context": form("What context should the prompt use?", context=TEXT)}
    return InputRequiredResult(input_requests=requests)


def _abilities(ctx: ServerRequestContext[Any]) -> set[str]:
    known = ctx.session.client_capabilities or ClientCapabilities()
    return {name for name in ("elicitation", "sampling", "roots") if getattr(known, name)}


def _wanted(
    params: CallToolRequestParams, asked: dict[str, Any], abilities: set[str]
) -> dict[str, Any]:
    """As far as the client can be asked, which one tool insists on."""
    if params.name == "test_missing_capability" and "sampling" not in abilities:
        data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_CAPABILITY, "This tool samples.", data)
    able = {key: one for key, one in asked.items() if _ability(one) in abilities}
    return {key: _filled(params, one) for key, one in able.items()} or asked


def _ability(request: dict[str, Any]) -> str:
    return str(request["method"].partition("/")[0])


def _filled(params: CallToolRequestParams, request: dict[str, Any]) -> dict[str, Any]:
    """With what the arguments say."""
    said = (params.arguments or {}).get(ARGUMENTS.get(params.name, ""))
    if said is None:
        return request
    if request["method"] == "sampling/createMessage":
        return sample(said)
    return {**request, "params": {**request["params"], "message": said}}
