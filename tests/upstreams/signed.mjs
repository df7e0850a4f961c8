// node signed.mjs PORT ISSUER: an MCP server of the TypeScript SDK that takes the access tokens of
// one authorization server, and says for whom they are.
import { createServer } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import * as sdk from '@modelcontextprotocol/server';
import { createRemoteJWKSet, jwtVerify } from 'jose';

const [port, issuer] = process.argv.slice(2);
const resource = new URL(`http://127.0.0.1:${port}/mcp`);
const scopesSupported = ['use'];
const place = `${issuer}/.well-known/oauth-authorization-server`;
const oauthMetadata = await (await fetch(place)).json();
const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));

async function verifyAccessToken(token) {
  try {
    const { payload } = await jwtVerify(token, keys, { issuer, audience: resource.href });
    const { client_id: clientId, scope = '', exp: expiresAt, sub } = payload;
    return { token, clientId, scopes: scope.split(' '), expiresAt, resource, extra: { sub } };
  } catch (error) {
    throw new sdk.OAuthError(sdk.OAuthErrorCode.InvalidToken, String(error));
  }
}

function server() {
  const made = new sdk.McpServer({ name: 'signed', version: '1' });
  const about = { description: 'Names the account that the access token is for.' };
  made.registerTool('whoami', about, ({ http }) => ({
    content: [{ type: 'text', text: http.authInfo.extra.sub }],
  }));
  return made;
}

const gate = sdk.requireBearerAuth({
  verifier: { verifyAccessToken },
  requiredScopes: scopesSupported,
  resourceMetadataUrl: sdk.getOAuthProtectedResourceMetadataUrl(resource),
  expectedResource: resource,
});
const handler = sdk.createMcpHandler(server);
const documents = { oauthMetadata, resourceServerUrl: resource, scopesSupported };
createServer(toNodeHandler({
  async fetch(request) {
    const document = sdk.oauthMetadataResponse(request, documents);
    if (document) return document;
    const auth = await gate(request);
    return auth instanceof Response ? auth : handler.fetch(request, { authInfo: auth });
  },
})).listen(Number(port), '127.0.0.1');
