// Tasks of 2025-11-25 by @modelcontextprotocol/sdk: node legacy_tasks.mjs URL TOKEN TOOL ARGUMENTS
// Says each message of the task's stream on a line, then which tasks there are.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [url, token, name, written] = process.argv.slice(2);
const say = (what) => console.log(JSON.stringify(what));
const client = new Client({ name: 'tasks', version: '1' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  say({ type: 'asked', params: request.params });
  return { action: 'accept', content: { name: 'Ann' } };
});
await client.connect(
  new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { Authorization: `Bearer ${token}` } },
  }),
);
await client.listTools();
const tasks = client.experimental.tasks;
for await (const message of tasks.callToolStream({ name, arguments: JSON.parse(written) })) {
  say({ ...message, error: message.error?.message });
}
say({ type: 'list', ...(await tasks.listTasks()) });
await client.close();
