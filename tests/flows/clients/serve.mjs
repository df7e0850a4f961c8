// Lets a test drive a client: a line of JSON on stdin is a request, each line on stdout an answer.
import { createInterface } from 'node:readline';

export const NAME = { name: 'flows', version: '1' };

export function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

// `listPage(cursor)` and `callTool(params, options)` are all that differs between the SDKs.
export async function serve(client, { listPage, callTool }) {
  const running = new Map();

  async function list() {
    const tools = [];
    let page = {};
    do {
      page = await listPage(page.nextCursor);
      tools.push(...page.tools);
    } while (page.nextCursor);
    return { tools };
  }

  async function call({ id, name, arguments: given, progress }) {
    const aborting = new AbortController();
    running.set(id, aborting);
    const options = { signal: aborting.signal };
    if (progress) options.onprogress = (step) => say({ id, progress: step });
    return { result: await callTool({ name, arguments: given }, options) };
  }

  const asking = {
    'resources/list': () => client.listResources(),
    'resources/templates/list': () => client.listResourceTemplates(),
    'resources/read': (params) => client.readResource(params),
    'prompts/list': () => client.listPrompts(),
    'prompts/get': (params) => client.getPrompt(params),
  };

  async function answered(request) {
    if (request.method) return { result: await asking[request.method](request.params) };
    return request.name ? call(request) : list();
  }

  async function answer(request) {
    try {
      say({ id: request.id, ...(await answered(request)) });
    } catch (error) {
      say({ id: request.id, error: { code: error.code ?? error.name, message: error.message } });
    }
  }

  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line);
    if (request.abort) running.get(request.abort).abort();
    else answer(request);
  }
  await client.close();
}
