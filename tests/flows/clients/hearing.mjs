// node --import hearing.mjs SERVER: notes what it is told of calls that were given up, in $HEARD
import { appendFileSync } from 'node:fs';

const parse = JSON.parse;
JSON.parse = (...given) => {
  const message = parse(...given);
  if (message?.method === 'notifications/cancelled') appendFileSync(process.env.HEARD, '.');
  return message;
};
