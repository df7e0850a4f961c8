// What every one of these servers offers, read as in offer.py.
import { readFileSync } from 'node:fs';

const offer = JSON.parse(readFileSync(new URL('offer.json', import.meta.url)));
export const TOOLS = offer.tools;
export const PROMPTS = offer.prompts;

export const tools = Object.entries(TOOLS).map(([name, { inputSchema }]) => ({
  name, description: `Tool ${name} of the suite.`, inputSchema,
}));
export const resources = Object.entries(offer.resources).map(([uri, { mimeType }]) => ({
  uri, name: uri.replace('test://', ''), mimeType, description: 'One.',
}));
export const templates = [{ uriTemplate: offer.template.uriTemplate, name: 'template' }];
export const prompts = Object.entries(PROMPTS).map(([name, it]) => ({
  name,
  description: `Prompt ${name} of the suite.`,
  arguments: it.arguments.map((one) => ({ name: one, required: true })),
}));

// What stands at this address; undefined where nothing does.
export function contents(uri) {
  if (uri in offer.resources) return { uri, ...offer.resources[uri] };
  const [before, after] = offer.template.uriTemplate.split('{id}');
  const name = uri.slice(before.length, -after.length);
  if (uri !== `${before}${name}${after}` || name.includes('/')) return undefined;
  const { mimeType, text } = offer.template;
  return { uri, mimeType, text: text.replace('{id}', name) };
}

// The only message of a prompt, with the arguments filled in.
export function message(name, given = {}) {
  const filled = (value) => {
    if (typeof value === 'string') return value.replace(/\{(\w+)\}/g, (all, key) => given[key] ?? all);
    return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, filled(it)]));
  };
  return { role: 'user', content: filled(PROMPTS[name].content) };
}

// The requests of one round of a tool, by key, in the words of its caller where it has some.
export function asked(name, at, given = {}) {
  const words = given[TOOLS[name].asksWith];
  const inWords = ({ method, params }) => {
    if (words === undefined) return { method, params };
    if (method !== 'sampling/createMessage') return { method, params: { ...params, message: words } };
    const messages = [{ role: 'user', content: { type: 'text', text: words } }];
    return { method, params: { ...params, messages } };
  };
  return Object.fromEntries(
    Object.entries(TOOLS[name].asks[at]).map(([key, request]) => [key, inWords(request)]),
  );
}

export function completion(value) {
  return { completion: { values: [value, `${value}ing`], total: 2, hasMore: false } };
}

export const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
export const stateOk = (answers) => [{ type: 'text', text: `state-ok ${JSON.stringify(answers)}` }];

// `node … --http PORT`
export function port() {
  return Number(process.argv[process.argv.indexOf('--http') + 1]);
}
