// @modelcontextprotocol/sdk 1 and one task: … URL TOKEN TOOL ARGUMENTS; see fastmcp_client.py
import { createInterface } from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [url, token, name, written] = process.argv.slice(2);
const say = (what) => process.stdout.write(`${JSON.stringify(what)}\n`);
const client = new Client({ name: 'tasks', version: '1' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
  say({ type: 'asked', message: params.message });
  return { action: 'accept', content: { name: 'Ann', confirm: true, interpretation: 'snake' } };
});
const headers = token ? { Authorization: `Bearer ${token}` } : {};
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
await client.listTools();

const { tasks } = client.experimental;
const began = performance.now();
const ended = (status, text) =>
  say({ type: 'ended', status, text, seconds: (performance.now() - began) / 1000 });
let last = 'working';
const call = { name, arguments: JSON.parse(written) };
const patience = { task: { ttl: 60_000 } };
for await (const message of tasks.callToolStream(call, undefined, patience)) {
  if (message.type === 'taskCreated') {
    const { taskId } = message.task;
    createInterface({ input: process.stdin }).once('line', () => tasks.cancelTask(taskId));
  } else if (message.type === 'taskStatus') {
    last = message.task.status;
    say({ type: 'status', status: last, message: message.task.statusMessage });
  } else if (message.type === 'result') {
    const text = message.result.content.map((item) => item.text ?? '').join('');
    ended(message.result.isError ? 'failed' : 'completed', text);
  } else {
    ended(last === 'cancelled' ? last : 'failed', message.error.message);
  }
}
await client.close();
process.exit();
