"""The resources, prompts and completions that the conformance suite asks for."""

import re
from typing import Any

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp_types import (
    BlobResourceContents,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmbeddedResource,
    GetPromptRequestParams,
    GetPromptResult,
    ImageContent,
    InputRequiredResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from tests.conformance import questions

Context = ServerRequestContext[Any]
Page = PaginatedRequestParams | None
# The smallest of all PNG files.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="

RESOURCES = {
    "test://static-text": "text/plain",
    "test://static-binary": "image/png",
    "test://watched-resource": "text/plain",
}
PROMPTS = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    questions.PROMPT: [],
}
_of_template = re.compile(r"test://template/([^/]+)/data").fullmatch


async def list_resources(ctx: Context, params: Page) -> ListResourcesResult:
    listed = [
        Resource(uri=uri, name=uri.removeprefix("test://"), mime_type=kind, description="One.")
        for uri, kind in RESOURCES.items()
    ]
    return ListResourcesResult(resources=listed)


async def list_templates(ctx: Context, params: Page) -> ListResourceTemplatesResult:
    template = ResourceTemplate(uri_template="test://template/{id}/data", name="template")
    return ListResourceTemplatesResult(resource_templates=[template])


async def read(ctx: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    uri = params.uri
    if uri == "test://static-binary":
        blob = BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
        return ReadResourceResult(contents=[blob])
    found = _of_template(uri)
    if not found and uri not in RESOURCES:
        raise MCPError(-32602, "Resource not found", {"uri": uri})
    words = (
        f'{{"id":"{found[1]}"}}' if found else "This is the content of the static text resource."
    )
    kind = "application/json" if found else "text/plain"
    return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=kind, text=words)])


async def list_prompts(ctx: Context, params: Page) -> ListPromptsResult:
    return ListPromptsResult(prompts=[_prompt(name) for name in PROMPTS])


def _prompt(name: str) -> Prompt:
    arguments = [PromptArgument(name=one, required=True) for one in PROMPTS[name]]
    return Prompt(name=name, description=f"Prompt {name} of the suite.", arguments=arguments)


async def get(
    ctx: Context, params: GetPromptRequestParams
) -> GetPromptResult | InputRequiredResult:
    given = params.arguments or {}
    if params.name == questions.PROMPT and not params.input_responses:
        return questions.about_the_prompt()
    first: TextContent | ImageContent | EmbeddedResource
    match params.name:
        case "test_prompt_with_arguments":
            said = f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'"
            first = TextContent(type="text", text=said)
        case "test_prompt_with_embedded_resource":
            contents = TextResourceContents(
                uri=given["resourceUri"], mime_type="text/plain", text="Embedded."
            )
            first = EmbeddedResource(type="resource", resource=contents)
        case "test_prompt_with_image":
            first = ImageContent(type="image", data=PNG, mime_type="image/png")
        case _:
            first = TextContent(type="text", text="This is a simple prompt for testing.")
    return GetPromptResult(messages=[PromptMessage(role="user", content=first)])


async def complete(ctx: Context, params: CompleteRequestParams) -> CompleteResult:
    values = [f"{params.argument.value}{end}" for end in ("", "ing")]
    return CompleteResult(completion=Completion(values=values, total=2, has_more=False))


HANDLERS: dict[str, Any] = {
    "on_list_resources": list_resources,
    "on_list_resource_templates": list_templates,
    "on_read_resource": read,
    "on_subscriptions_listen": ListenHandler(InMemorySubscriptionBus()),
    "on_list_prompts": list_prompts,
    "on_get_prompt": get,
    "on_completion": complete,
}
