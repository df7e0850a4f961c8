// @modelcontextprotocol/client, which signs in by itself: node sign_in.mjs URL REDIRECT [DOCUMENT]
// Prints {"open": …}, reads the address to which the browser came back, and prints the tools.
import { createInterface } from 'node:readline';
import {
  Client,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';

const [url, redirect, document] = process.argv.slice(2);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);
const kept = {};
const authProvider = {
  redirectUrl: redirect,
  clientMetadataUrl: document || undefined,
  clientMetadata: { redirect_uris: [redirect], client_name: 'TypeScript SDK' },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  saveDiscoveryState: (state) => { kept.discovery = state; },
  discoveryState: () => kept.discovery,
  redirectToAuthorization: (there) => say({ open: there.href }),
};
const transport = () => new StreamableHTTPClientTransport(new URL(url), { authProvider });
const made = () => new Client({ name: 'signs-in', version: '1' });
const first = transport();
try {
  await made().connect(first);
  throw new Error('it was let in without a sign-in');
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
const { value } = await lines.next();
await first.finishAuth(new URL(value.trim()).searchParams);
const client = made();
await client.connect(transport());
const { tools } = await client.listTools();
say({ tools: tools.map((tool) => tool.name), client_id: kept.client.client_id });
await client.close();
process.exit(0);
