// @modelcontextprotocol/client, for which a company's provider allows the sign-in:
// node by_id_jag.mjs URL CLIENT_ID ISSUER. Prints {"audience", "resource"}, reads an ID-JAG for these,
// and prints the tools.
import { createInterface } from 'node:readline';
import { Client, CrossAppAccessProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [url, clientId, expectedIssuer] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const authProvider = new CrossAppAccessProvider({
  clientId,
  clientSecret: 'it has none',
  expectedIssuer,
  async assertion({ authorizationServerUrl, resourceUrl }) {
    say({ audience: authorizationServerUrl, resource: resourceUrl });
    return (await lines.next()).value.trim();
  },
});
const client = new Client({ name: 'signs-in', version: '1' });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { authProvider }));
const { tools } = await client.listTools();
say({ tools: tools.map((tool) => tool.name) });
await client.close();
process.exit(0);
