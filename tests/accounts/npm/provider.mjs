// An OpenID Connect provider (oidc-provider), told by its environment who its clients are. It says
// where it listens in one line of JSON.
import { createServer } from "node:http";
import Provider from "oidc-provider";

const { CLIENTS, KEYS, PORT, AHEAD_S } = process.env;
// Its clock, where a test has it differ from ours.
const now = Date.now;
Date.now = () => now() + 1000 * Number(AHEAD_S);
// Of every sign-in: its pages ask for any password.
const STRENGTH = "urn:example:mfa";
const PEOPLE = JSON.parse(process.env.PEOPLE);

const server = createServer();
server.listen(Number(PORT), "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: JSON.parse(CLIENTS),
    claims: {
      openid: ["sub", "sid"],
      profile: ["preferred_username", "groups"],
      email: ["email", "email_verified"],
    },
    jwks: { keys: JSON.parse(KEYS) },
    cookies: { keys: ["only for tests"] },
    features: {
      devInteractions: { enabled: true },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: { enabled: true },
    },
    pkce: { required: () => true },
    acrValues: [STRENGTH],
    // Our callbacks are on loopback, where it would not send logout tokens.
    fetch: (url, { dispatcher, ...options }) => fetch(url, options),
    findAccount: (_context, id) => ({
      accountId: id,
      claims: () => ({ sub: id, ...PEOPLE[id] }),
    }),
  });
  const finish = provider.interactionFinished.bind(provider);
  provider.interactionFinished = (request, response, result, options) => {
    if (result.login) result.login.acr = STRENGTH;
    return finish(request, response, result, options);
  };
  provider.on("server_error", (_context, error) => console.error(error));
  provider.on("backchannel.error", (_context, error) => console.error(error));
  provider.on("backchannel.success", () => console.error("logout token taken"));
  server.on("request", provider.callback());
  console.log(JSON.stringify({ issuer }));
});
