// @modelcontextprotocol/client 2 with ext-tasks: … URL TOKEN TOOL ARGUMENTS auto|legacy;
// see fastmcp_client.py
import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';

const [url, token, name, written, mode] = process.argv.slice(2);
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const INFO = { name: 'tasks', version: '1' };
const capabilities = { elicitation: { form: {} } };
const client = new Client(INFO, { versionNegotiation: { mode }, capabilities });
const headers = token ? { Authorization: `Bearer ${token}` } : {};
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
await client.listTools();

// What the SDK has no words for, its host sends: https://modelcontextprotocol.github.io/ext-tasks
let count = 0;
async function dispatch(request, { signal } = {}) {
  const { method, params } = request;
  const id = `raw-${(count += 1)}`;
  const response = await fetch(url, {
    method: 'POST',
    signal,
    headers: {
      ...headers,
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': protocolVersion,
      'Mcp-Method': method,
      'Mcp-Name': params.name ?? params.taskId,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
  });
  const text = await response.text();
  const whole = text.startsWith('{') ? [text] : text.match(/^data: .*$/gm).map((it) => it.slice(6));
  const answer = whole.map((it) => JSON.parse(it)).find((it) => it.id === id);
  if (answer.error) return { kind: 'error', error: answer.error };
  return { kind: 'result', result: answer.result };
}
const protocolVersion = client.getNegotiatedProtocolVersion();
const framing = { protocolVersion, clientInfo: INFO, clientCapabilities: capabilities };
const modern = client.getProtocolEra() === 'modern';
const session = createTaskSessionFromClient(client, {
  endpointId: 'tests',
  ...(modern ? { rawDispatch: dispatch, v2RequestFraming: framing } : {}),
  onInputRequest: async ({ params }) => {
    say({ type: 'asked', message: params.message });
    return { action: 'accept', content: { name: 'Ann', confirm: true, interpretation: 'snake' } };
  },
});

const began = performance.now();
const execution = await session.callTool(name, JSON.parse(written), {
  task: { preference: 'prefer', retentionMs: 60_000 },
});
createInterface({ input: process.stdin }).once('line', () => execution.cancel());
let ended = { status: 'failed', text: '' };
try {
  const { outcome } = await execution.settle({
    onEvent: ({ type, task }) => {
      if (type === 'task') say({ type: 'status', status: task.status, message: task.statusMessage });
    },
  });
  const content = outcome.result?.content ?? [];
  const text = content.map((item) => item.text ?? '').join('') || (outcome.error?.message ?? '');
  const failed = outcome.result?.isError;
  ended = { status: failed ? 'failed' : outcome.status, text };
} catch (error) {
  ended = { status: error.name === 'TaskCancelledError' ? 'cancelled' : 'failed', text: error.message };
}
say({ type: 'ended', ...ended, seconds: (performance.now() - began) / 1000 });
process.exit();
