// A server on @modelcontextprotocol/server 2, which speaks 2026-07-28: … --http PORT
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import * as sdk from '@modelcontextprotocol/server';
import * as offer from './offer.mjs';
import * as tasking from './tasking.mjs';

const OFFERED = {
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  prompts: { listChanged: true },
  logging: {},
  completions: {},
  extensions: { [tasking.EXTENSION]: {} },
};

// As far as the client can be asked, which one tool insists on.
function wanted(name, at, given, ctx) {
  const able = tasking.abilities(ctx);
  if (name === 'test_missing_capability' && !able.sampling) {
    throw new sdk.MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
  }
  const all = offer.asked(name, at, given);
  const some = Object.entries(all).filter(([, { method }]) => able[method.split('/')[0]]);
  return some.length ? Object.fromEntries(some) : all;
}

// Which round it is stands in the state; a client without one is in the first.
function ask({ name, arguments: given }, ctx) {
  let at = Number(ctx.mcpReq.requestState() ?? 0);
  const answers = ctx.mcpReq.inputResponses ?? {};
  let requests = wanted(name, at, given, ctx);
  if (Object.keys(requests).every((key) => key in answers)) {
    at += 1;
    if (at === offer.TOOLS[name].asks.length) return { content: offer.stateOk(answers) };
    requests = wanted(name, at, given, ctx);
  }
  return { resultType: 'input_required', inputRequests: requests, requestState: String(at) };
}

async function call({ params }, ctx) {
  if (params.name in tasking.ARGUMENTS) return tasking.call(params, ctx);
  const tool = offer.TOOLS[params.name];
  if (!tool) throw new sdk.ProtocolError(-32602, `Unknown tool: ${params.name}`);
  if (tool.asks) return ask(params, ctx);
  for (const data of tool.logs ?? []) {
    await ctx.mcpReq.log('info', data);
    await offer.pause(0.05);
  }
  const { progressToken } = ctx.mcpReq._meta ?? {};
  for (const progress of progressToken === undefined ? [] : tool.progress ?? []) {
    const step = { progressToken, progress, total: 100 };
    await ctx.mcpReq.notify({ method: 'notifications/progress', params: step });
    await offer.pause(0.05);
  }
  await offer.pause(tool.lastsSeconds ?? 0);
  if (tool.changes === 'tools') handler.notify.toolsChanged();
  if (tool.changes === 'prompts') handler.notify.promptsChanged();
  return { content: tool.content, isError: tool.isError ?? false };
}

function read({ params: { uri } }) {
  const found = offer.contents(uri);
  if (!found) throw new sdk.ProtocolError(-32602, 'Resource not found', { uri });
  return { contents: [found] };
}

function prompt({ params: { name, arguments: given } }, ctx) {
  const { asks } = offer.PROMPTS[name];
  if (asks && !ctx.mcpReq.inputResponses) return { resultType: 'input_required', inputRequests: asks };
  return { messages: [offer.message(name, given)] };
}

function server() {
  const made = new sdk.Server({ name: 'conformance', version: '1.0' }, { capabilities: OFFERED });
  made.setRequestHandler('tools/list', () => ({ tools: [...offer.tools, ...tasking.tools] }));
  made.setRequestHandler('tools/call', call);
  made.setRequestHandler('resources/list', () => ({ resources: offer.resources }));
  made.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: offer.templates }));
  made.setRequestHandler('resources/read', read);
  made.setRequestHandler('prompts/list', () => ({ prompts: offer.prompts }));
  made.setRequestHandler('prompts/get', prompt);
  made.setRequestHandler('completion/complete', ({ params }) => offer.completion(params.argument.value));
  tasking.serve(made);
  return made;
}

const handler = sdk.createMcpHandler(server, { legacy: 'reject' });
createServer(toNodeHandler({
  fetch: (request, options) => (
    sdk.hostHeaderValidationResponse(request, sdk.localhostAllowedHostnames())
    ?? sdk.originValidationResponse(request, sdk.localhostAllowedOrigins())
    ?? handler.fetch(request, options)
  ),
})).listen(offer.port(), '127.0.0.1', () => console.log('running on', offer.port()));
