// A server on @modelcontextprotocol/sdk 1, which speaks 2025-06-18 and 2025-11-25: … --http PORT
import { randomUUID } from 'node:crypto';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import * as offer from './offer.mjs';

const RETRY_MS = 500;
const ANSWER = {
  'elicitation/create': types.ElicitResultSchema,
  'sampling/createMessage': types.CreateMessageResultSchema,
  'roots/list': types.ListRootsResultSchema,
};
const OFFERED = {
  tools: {}, resources: { subscribe: true }, prompts: {}, logging: {}, completions: {},
};

async function answers({ name, arguments: given }, extra) {
  const got = {};
  for (const at of offer.TOOLS[name].asks.keys()) {
    for (const [key, request] of Object.entries(offer.asked(name, at, given))) {
      got[key] = await extra.sendRequest(request, ANSWER[request.method]);
    }
  }
  return offer.stateOk(got);
}

async function call({ params }, extra) {
  const tool = offer.TOOLS[params.name];
  const content = tool.content ?? await answers(params, extra);
  for (const data of tool.logs ?? []) {
    await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
    await offer.pause(0.05);
  }
  const { progressToken } = extra._meta ?? {};
  for (const progress of progressToken === undefined ? [] : tool.progress ?? []) {
    const step = { progressToken, progress, total: 100 };
    await extra.sendNotification({ method: 'notifications/progress', params: step });
    await offer.pause(0.05);
  }
  if (tool.lastsSeconds && extra.closeSSEStream) {
    // Its client has to come back for the answer.
    extra.closeSSEStream();
    await offer.pause(tool.lastsSeconds);
  }
  return { content, isError: tool.isError ?? false };
}

function read({ params: { uri } }) {
  const found = offer.contents(uri);
  if (!found) throw new types.McpError(-32002, 'Resource not found', { uri });
  return { contents: [found] };
}

function server() {
  const made = new Server({ name: 'conformance', version: '1.0' }, { capabilities: OFFERED });
  const answered = (schema, handler) => made.setRequestHandler(schema, handler);
  answered(types.ListToolsRequestSchema, () => ({ tools: offer.tools }));
  answered(types.CallToolRequestSchema, call);
  answered(types.ListResourcesRequestSchema, () => ({ resources: offer.resources }));
  answered(types.ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: offer.templates }));
  answered(types.ReadResourceRequestSchema, read);
  answered(types.SubscribeRequestSchema, () => ({}));
  answered(types.UnsubscribeRequestSchema, () => ({}));
  answered(types.ListPromptsRequestSchema, () => ({ prompts: offer.prompts }));
  answered(types.GetPromptRequestSchema, ({ params }) => (
    { messages: [offer.message(params.name, params.arguments)] }
  ));
  answered(types.CompleteRequestSchema, ({ params }) => offer.completion(params.argument.value));
  return made;
}

// All events of the process, each with its number as id.
const events = [];
const eventStore = {
  async storeEvent(stream, message) {
    return String(events.push({ stream, message }));
  },
  async replayEventsAfter(last, { send }) {
    const { stream } = events[Number(last) - 1];
    for (const [at, event] of events.entries()) {
      const told = Object.keys(event.message).length > 0;
      if (at >= Number(last) && event.stream === stream && told) await send(String(at + 1), event.message);
    }
    return stream;
  },
};

const sessions = new Map();

async function opened() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore,
    retryInterval: RETRY_MS,
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await server().connect(transport);
  return transport;
}

const app = createMcpExpressApp();
app.all('/mcp', async (request, response) => {
  const id = request.headers['mcp-session-id'];
  if (id && !sessions.has(id)) {
    const error = { code: -32001, message: 'There is no such session.' };
    response.status(404).json({ jsonrpc: '2.0', error, id: null });
    return;
  }
  const transport = id ? sessions.get(id) : await opened();
  await transport.handleRequest(request, response, request.body);
});
app.listen(offer.port(), '127.0.0.1', () => console.log('running on', offer.port()));
