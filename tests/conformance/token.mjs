// Every request of this process brings the agent's token, as an agent's own client does.
import http from "node:http";
import { getGlobalDispatcher, setGlobalDispatcher } from "undici";

const authorization = `Bearer ${process.env.COUNTERSIGN_TOKEN}`;

const fetched = globalThis.fetch;
globalThis.fetch = (input, init = {}) => {
  const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : {}));
  if (!headers.has("authorization")) headers.set("authorization", authorization);
  return fetched(input, { ...init, headers });
};

const withToken = (dispatch) => (options, handler) =>
  dispatch({ ...options, headers: { authorization, ...options.headers } }, handler);
setGlobalDispatcher(getGlobalDispatcher().compose(withToken));

const requested = http.request;
http.request = (...given) => {
  const options = given.find((it) => it && typeof it === "object" && !(it instanceof URL));
  if (options) options.headers = { authorization, ...options.headers };
  return requested(...given);
};
