// Counts days between dates, and working days from one: a server in TypeScript.
//
//     npm install && node dates.ts               over stdio, as a client starts it
//     npm install && node dates.ts --http 9000   at http://127.0.0.1:9000/mcp
//
// Node.js from 22.18 on runs it as it is.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

const DAY_MS = 86_400_000;
const SATURDAY = 6;
const SUNDAY = 0;
const READ_ONLY = { readOnlyHint: true, openWorldHint: false };

const day = (about: string) => z.iso.date().describe(`${about}, as in 2026-03-01.`);

function toDate(text: string): Date {
  return new Date(`${text}T00:00:00Z`);
}

function toText(date: Date): string {
  return date.toISOString().slice(0, 10);
}

function isWorkingDay(date: Date, holidays: Set<string>): boolean {
  const weekday = date.getUTCDay();
  return weekday !== SATURDAY && weekday !== SUNDAY && !holidays.has(toText(date));
}

function addWorkingDays(start: Date, count: number, holidays: Set<string>): Date {
  const step = count < 0 ? -DAY_MS : DAY_MS;
  let date = start;
  for (let left = Math.abs(count); left > 0; ) {
    date = new Date(date.getTime() + step);
    if (isWorkingDay(date, holidays)) left -= 1;
  }
  return date;
}

function answer<T extends Record<string, unknown>>(structuredContent: T) {
  return {
    content: [{ type: 'text' as const, text: JSON.stringify(structuredContent) }],
    structuredContent,
  };
}

function makeServer(): McpServer {
  const server = new McpServer({ name: 'dates', title: 'Dates', version: '1.0.0' });
  server.registerTool(
    'days_between',
    {
      title: 'Days between two dates',
      description: 'Count the days from one date to another. Negative if the second is earlier.',
      inputSchema: z.object({ first: day('The first date'), second: day('The second date') }),
      outputSchema: z.object({ days: z.int() }),
      annotations: READ_ONLY,
    },
    ({ first, second }) =>
      answer({ days: (toDate(second).getTime() - toDate(first).getTime()) / DAY_MS }),
  );
  server.registerTool(
    'add_working_days',
    {
      title: 'Add working days',
      description:
        'Find the date that is so many working days after another, or before it. ' +
        'Saturdays, Sundays and the holidays given are not counted; it knows no holidays itself.',
      inputSchema: z.object({
        start: day('The date to count from'),
        count: z.int().min(-1000).max(1000).describe('How many working days; negative goes back.'),
        holidays: z.array(day('A holiday')).max(100).default([]).describe('Days not to count.'),
      }),
      outputSchema: z.object({ date: z.iso.date() }),
      annotations: READ_ONLY,
    },
    ({ start, count, holidays }) =>
      answer({ date: toText(addWorkingDays(toDate(start), count, new Set(holidays))) }),
  );
  return server;
}

function serveHttp(port: number): void {
  const isOurHost = localhostHostValidation();
  const isOurOrigin = localhostOriginValidation();
  const handle = toNodeHandler(createMcpHandler(makeServer));
  const server = createServer((request, response) => {
    if (!isOurHost(request, response) || !isOurOrigin(request, response)) return;
    if (request.url !== '/mcp') {
      response.writeHead(404).end();
      return;
    }
    void handle(request, response);
  });
  server.listen(port, '127.0.0.1', () => {
    const { port: chosen } = server.address() as AddressInfo;
    console.error(`Dates is running on http://127.0.0.1:${chosen}/mcp`);
  });
}

const { values } = parseArgs({ options: { http: { type: 'string' } } });
if (values.http === undefined) {
  serveStdio(makeServer);
} else {
  serveHttp(Number(values.http));
}
