// An OAuth authorization server (oidc-provider) for one MCP server, which is told by RESOURCE. It says
// where it listens in one line of JSON, and after that each token endpoint's grant in one more.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const { KEYS, PORT, RESOURCE, TTL_S } = process.env;

const server = createServer();
server.listen(Number(PORT), "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    jwks: { keys: JSON.parse(KEYS) },
    cookies: { keys: ["only for tests"] },
    scopes: ["openid", "offline_access", "use"],
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: "use",
          audience: RESOURCE,
          accessTokenFormat: "jwt",
          accessTokenTTL: Number(TTL_S),
        }),
      },
    },
    clientDefaults: { grant_types: ["authorization_code", "refresh_token"] },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    fetch: (url, { dispatcher, ...options }) => fetch(url, options),
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  });
  provider.on("server_error", (_context, error) => console.error(error));
  provider.on("grant.success", ({ oidc }) => console.log(JSON.stringify({ grant: oidc.params.grant_type })));
  provider.on("grant.error", (_context, error) => console.log(JSON.stringify({ error: String(error) })));
  server.on("request", provider.callback());
  console.log(JSON.stringify({ issuer }));
});
