// express with express-rate-limit, one route.
//
//   node express.mjs DIRECTORY_WITH_NODE_MODULES PORT LIMIT

import { createRequire } from 'node:module';
import { join } from 'node:path';

const [directory, port, limit] = process.argv.slice(2);
const require = createRequire(join(directory, 'package.json'));
const express = require('express');
const { rateLimit } = require('express-rate-limit');

const app = express();
const limits = {
  allow: { windowMs: 1000, limit: 1_000_000_000 },
  deny: { windowMs: 3_600_000, limit: 1 },
  fifty: { windowMs: 1000, limit: 50 },
};
app.use(rateLimit({ ...limits[limit], standardHeaders: 'draft-8', legacyHeaders: false }));
app.get('/api/books', (_, response) => response.type('text').send('hello'));
app.listen(Number(port), '127.0.0.1');
