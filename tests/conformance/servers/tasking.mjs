// The tools that run as tasks of 2026-07-28, as in tasking.py: this server keeps them itself.
import { randomUUID } from 'node:crypto';
import { ProtocolError } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';
import { pause } from './offer.mjs';

export const EXTENSION = 'io.modelcontextprotocol/tasks';
const POLL_MS = 200;
const TTL_MS = 600_000;
const TEXT = { type: 'string' };
const YES = { type: 'boolean' };
const form = (message, properties) => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties, required: Object.keys(properties) } },
});
const NAME = form('What is your name?', { name: TEXT });

export const ARGUMENTS = {
  greet: { name: TEXT },
  slow_compute: { seconds: { type: 'number' }, label: TEXT },
  failing_job: {},
  protocol_error_job: {},
  confirm_delete: { filename: TEXT },
  multi_input: {},
  test_tool_with_task: {},
};
const WANTED = {
  confirm_delete: { confirm: form('Delete it?', { confirm: YES }) },
  multi_input: {
    first: form('The first?', { name: TEXT, confirm: YES }),
    second: form('The second?', { name: TEXT, confirm: YES }),
  },
};
// The others are not for who cannot follow a task.
const ALSO_AT_ONCE = ['confirm_delete', 'greet', 'slow_compute'];
const LASTS_S = { failing_job: 1, protocol_error_job: 0.5, test_tool_with_task: 3 };

export const tools = Object.entries(ARGUMENTS).map(([name, properties]) => ({
  name, description: `Tool ${name} of the suite.`, inputSchema: { type: 'object', properties },
}));

// Of the client that asks, from the request's envelope.
export function abilities(ctx) {
  return ctx.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
}

const takesTasks = (ctx) => EXTENSION in (abilities(ctx).extensions ?? {});

function needsTasks() {
  const data = { requiredCapabilities: { extensions: { [EXTENSION]: {} } } };
  return new ProtocolError(-32021, 'This is for clients that can follow a task.', data);
}

function result(name, text) {
  const content = [{ type: 'text', text }];
  return { content, isError: name === 'failing_job', resultType: 'complete' };
}

// How far it is, its clock says; nothing runs.
class Task {
  constructor(name, says, seconds) {
    Object.assign(this, { name, says, seconds, id: randomUUID(), began: Date.now() });
    this.wanted = { ...WANTED[name] };
  }

  state() {
    if (this.cancelled) return { status: 'cancelled' };
    if (Object.keys(this.wanted).length) return { status: 'input_required', inputRequests: this.wanted };
    const past = (Date.now() - this.began) / 1000;
    if (past < this.seconds) {
      return { status: 'working', statusMessage: `Step ${Math.floor((4 * past) / this.seconds) + 1}` };
    }
    if (this.name === 'protocol_error_job') {
      return { status: 'failed', error: { code: -32603, message: 'It broke.' } };
    }
    return { status: 'completed', result: result(this.name, this.says) };
  }

  shown() {
    const at = new Date().toISOString();
    const times = { createdAt: at, lastUpdatedAt: at, ttlMs: TTL_MS, pollIntervalMs: POLL_MS };
    return { taskId: this.id, ...times, ...this.state() };
  }
}

const tasks = new Map();

export async function call({ name, arguments: given = {} }, ctx) {
  const seconds = given.seconds ?? LASTS_S[name] ?? 0;
  let says = name === 'greet' ? `Hello, ${given.name}!` : `${name} is done.`;
  if (name === 'test_tool_with_task') {
    const answer = ctx.mcpReq.inputResponses?.user_name;
    if (!answer) return { resultType: 'input_required', inputRequests: { user_name: NAME }, requestState: 'asked' };
    says = `It is done for ${JSON.stringify(answer)}.`;
  }
  if (name === 'greet' || !takesTasks(ctx)) {
    if (!ALSO_AT_ONCE.includes(name)) throw needsTasks();
    await pause(seconds);
    return result(name, says);
  }
  const made = new Task(name, says, seconds);
  tasks.set(made.id, made);
  const { inputRequests, ...created } = made.shown();
  return { resultType: 'task', ...created, status: 'working' };
}

function found({ taskId }, ctx) {
  if (!takesTasks(ctx)) throw needsTasks();
  const name = ctx.http?.req?.headers.get('mcp-name');
  if (name && name !== taskId) throw new ProtocolError(-32020, 'Mcp-Name is not the task that is asked about.');
  if (!tasks.has(taskId)) throw new ProtocolError(-32602, 'There is no such task.');
  return tasks.get(taskId);
}

export function serve(server) {
  const params = z.looseObject({ taskId: z.string() });
  const answered = (method, handler) => server.setRequestHandler(method, { params }, handler);
  answered('tasks/get', (about, ctx) => ({ resultType: 'complete', ...found(about, ctx).shown() }));
  answered('tasks/update', (about, ctx) => {
    const task = found(about, ctx);
    for (const key of Object.keys(ctx.mcpReq.inputResponses ?? about.inputResponses ?? {})) delete task.wanted[key];
    return { resultType: 'complete' };
  });
  answered('tasks/cancel', (about, ctx) => {
    const task = found(about, ctx);
    task.cancelled ||= !['completed', 'failed'].includes(task.state().status);
    return { resultType: 'complete' };
  });
}
