"""The resources, prompts and completions that the conformance suite asks for."""

from typing import Any

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp_types import (
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
)

from tests.conformance.servers import offer

Context = ServerRequestContext[Any]
Page = PaginatedRequestParams | None
# Who listens is told here what changed.
changes = InMemorySubscriptionBus()


async def list_resources(ctx: Context, params: Page) -> ListResourcesResult:
    return ListResourcesResult.model_validate({"resources": offer.resources()})


async def list_templates(ctx: Context, params: Page) -> ListResourceTemplatesResult:
    return ListResourceTemplatesResult.model_validate({"resourceTemplates": offer.templates()})


async def read(ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    found = offer.contents(params.uri)
    if found is None:
        raise MCPError(-32602, "Resource not found", {"uri": params.uri})
    return ReadResourceResult.model_validate({"contents": [found]})


async def list_prompts(ctx: Context, params: Page) -> ListPromptsResult:
    return ListPromptsResult.model_validate({"prompts": offer.prompts()})


async def get(
    ctx: Context, params: GetPromptRequestParams
) -> GetPromptResult | InputRequiredResult:
    asks: Any = offer.PROMPTS[params.name].get("asks")
    if asks and not params.input_responses:
        return InputRequiredResult(input_requests=asks)
    message = offer.prompt(params.name, params.arguments or {})
    return GetPromptResult.model_validate({"messages": [message]})


async def complete(ctx: Context, params: CompleteRequestParams) -> CompleteResult:
    values = [f"{params.argument.value}{end}" for end in ("", "ing")]
    return CompleteResult(completion=Completion(values=values, total=2, has_more=False))


HANDLERS: dict[str, Any] = {
    "on_list_resources": list_resources,
    "on_list_resource_templates": list_templates,
    "on_read_resource": read,
    "on_subscriptions_listen": ListenHandler(changes),
    "on_list_prompts": list_prompts,
    "on_get_prompt": get,
    "on_completion": complete,
}
