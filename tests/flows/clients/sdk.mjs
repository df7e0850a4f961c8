// @modelcontextprotocol/sdk, the line before 2026-07-28: node sdk.mjs URL TOKEN v1|v1.22
import { NAME, say, serve } from './serve.mjs';

const [url, token, version] = process.argv.slice(2);
const sdk = version === 'v1.22' ? 'sdk-of-2025' : '@modelcontextprotocol/sdk';
const { Client } = await import(`${sdk}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`${sdk}/client/streamableHttp.js`);

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
