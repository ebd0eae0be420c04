// Reads answers, one JSON object of headers per line, and prints what somebody else's parser makes of
// each: the limit, what remains of it, and when there is more, in seconds since 1970.
//
//   node parser.mjs DIRECTORY_WITH_NODE_MODULES SECONDS_SINCE_1970

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const require = createRequire(join(process.argv[2], 'package.json'));
const { parseRateLimit } = require('ratelimit-header-parser');

// It is always the same moment.
const now = 1000 * Number(process.argv[3]);
globalThis.Date = class extends Date {
  constructor(...parts) {
    super(...(parts.length ? parts : [now]));
  }
};

for await (const line of createInterface({ input: process.stdin })) {
  const { limit, remaining, reset } = parseRateLimit(JSON.parse(line));
  console.log(JSON.stringify({ limit, remaining, reset: reset.getTime() / 1000 }));
}
