// A server that limits: express, with express-rate-limit in each of the forms that it tells limits in.
// Prints its port. What came is told at /log, which is not limited.
//
//   node express.mjs DIRECTORY_WITH_NODE_MODULES

import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.argv[2], 'package.json'));
const express = require('express');
const { rateLimit } = require('express-rate-limit');

// Each attempt: whose, when it came, and when it was turned away or let in. In milliseconds of a clock that
// nobody sets.
const log = [];

const note = (request, _, next) => {
  request.entry = { path: request.path, call: request.get('x-call'), at: performance.now() };
  log.push(request.entry);
  next();
};

const deny = (request, response) => {
  Object.assign(request.entry, { denied: performance.now(), retry_after: response.get('retry-after') });
  response.status(429).send('too many');
};

const limiter = (options) =>
  rateLimit({
    windowMs: 1000,
    limit: 5,
    standardHeaders: false,
    legacyHeaders: false,
    handler: deny,
    ...options,
  });

const limits = {
  '/draft-6': [limiter({ standardHeaders: 'draft-6' })],
  '/draft-7': [limiter({ standardHeaders: 'draft-7' })],
  '/draft-8': [limiter({ standardHeaders: 'draft-8' })],
  '/legacy': [limiter({ legacyHeaders: true })],
  // Two, in a line of the header each.
  '/two': [
    limiter({ standardHeaders: 'draft-8', identifier: 'second' }),
    limiter({ standardHeaders: 'draft-8', identifier: 'longer', windowMs: 2000, limit: 7 }),
  ],
  // Nothing is told but when to come back.
  '/silent': [
    limiter({
      windowMs: 2000,
      handler: (request, response) => {
        const wait = Math.ceil((request.rateLimit.resetTime - Date.now()) / 1000);
        response.set('Retry-After', String(Math.max(wait, 1)));
        deny(request, response);
      },
    }),
  ],
};

const serve = (request, response) => {
  request.entry.served = performance.now();
  response.send('here you are');
};

const app = express();
app.get('/log', (_, response) => response.json(log));
for (const [path, limiters] of Object.entries(limits)) {
  // Those who are let in take their time where it matters who comes meanwhile.
  const slowly = (...call) => (path === '/silent' ? setTimeout(serve, 50, ...call) : serve(...call));
  app.get(path, note, ...limiters, slowly);
}
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
