// Reads answers, one JSON object of headers per line, and prints what other people's parsers make of
// each.
//
//   node read.mjs DIRECTORY_WITH_NODE_MODULES

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const require = createRequire(join(process.argv[2], 'package.json'));
const { parseDictionary, parseItem, parseList } = require('structured-headers');
const { parseRateLimit } = require('ratelimit-header-parser');

const item = ([value, params]) => [value, Object.fromEntries(params)];
const list = (text) => parseList(text).map(item);
const dictionary = (text) =>
  Object.fromEntries([...parseDictionary(text)].map(([name, member]) => [name, item(member)]));
const number = (text) => item(parseItem(text));

// What the fields are in each style, as structured fields.
const structures = {
  ietf: { 'ratelimit-policy': list, ratelimit: list },
  'draft-07': { 'ratelimit-policy': list, ratelimit: dictionary },
  'draft-06': {
    'ratelimit-policy': list,
    'ratelimit-limit': number,
    'ratelimit-remaining': number,
    'ratelimit-reset': number,
  },
  'x-ratelimit': {}, // They are none.
};

for await (const line of createInterface({ input: process.stdin })) {
  const { style, headers } = JSON.parse(line);
  const structured = {};
  for (const [name, read] of Object.entries(structures[style])) {
    if (name in headers) structured[name] = read(headers[name]);
  }
  const now = Date.now();
  const { limit, remaining, reset } = parseRateLimit(headers);
  const parsed = {
    limit,
    remaining,
    reset_at: Math.round(reset / 1000),
    reset_in: Math.round((reset - now) / 1000),
  };
  console.log(JSON.stringify({ structured, parsed }));
}
