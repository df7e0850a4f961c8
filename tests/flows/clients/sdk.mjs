// @modelcontextprotocol/sdk, the line before 2026-07-28: node sdk.mjs URL TOKEN
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { NAME, say, serve } from './serve.mjs';

const [url, token] = process.argv.slice(2);
const client = new Client(NAME);
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
await client.connect(transport);
say({
  revision: transport.protocolVersion,
  can: Object.keys(client.getServerCapabilities()),
});
await serve(client, {
  listPage: (cursor) => client.listTools(cursor ? { cursor } : undefined),
  callTool: (params, options) => client.callTool(params, undefined, options),
});
