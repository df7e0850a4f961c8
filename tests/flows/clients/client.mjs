// @modelcontextprotocol/client: node client.mjs URL TOKEN auto|default|legacy|opens
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { NAME, say, serve } from './serve.mjs';

const [url, token, mode] = process.argv.slice(2);
const opens = mode === 'opens';
const options = {
  versionNegotiation: { mode: mode === 'legacy' ? 'legacy' : 'auto' },
  capabilities: opens ? { elicitation: { url: {} } } : {},
};
const client = mode === 'default' ? new Client(NAME) : new Client(NAME, options);
if (opens) {
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    say({ asked: params });
    return { action: 'accept' };
  });
}
await client.connect(
  new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { Authorization: `Bearer ${token}` } },
  }),
);
say({
  revision: client.getNegotiatedProtocolVersion(),
  can: Object.keys(client.getServerCapabilities()),
});
await serve(client, {
  listPage: (cursor) => client.listTools(cursor ? { cursor } : undefined),
  callTool: (params, options) => client.callTool(params, options),
});
