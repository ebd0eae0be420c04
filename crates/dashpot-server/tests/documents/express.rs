//! What docs/from-express-rate-limit.md tells people to put in front of their routes.

use crate::book::blocks_of;
use crate::edge::run;

#[test]
fn the_middleware() {
    let [middleware] = &*blocks_of("docs/from-express-rate-limit.md", "js") else {
        panic!("one block of js")
    };
    let script = format!(
        "{middleware}\n{}",
        r#"
import { strict as assert } from 'node:assert';
const request = (ip) => ({ ip });
// Express's answer, as far as it is used.
const ask = async (middleware, request) => {
  const told = { headers: {}, code: null, body: null, passed: false };
  const response = {
    set(name, value) { told.headers[name.toLowerCase()] = value; return this; },
    status(code) { told.code = code; return this; },
    json(body) { told.body = body; return this; },
  };
  await middleware(request, response, () => { told.passed = true; });
  return told;
};
const patient = { timeout: 5000 };
const two = limit('2/h', (request) => request.ip, patient);
const first = await ask(two, request('203.0.113.7'));
assert.ok(first.passed && first.code === null);
assert.match(first.headers['ratelimit'], /r=1/);
await ask(two, request('203.0.113.7'));
const third = await ask(two, request('203.0.113.7'));
assert.ok(!third.passed);
assert.equal(third.code, 429);
assert.equal(third.body.outcome, 'deny');
assert.ok(Number(third.headers['retry-after']) >= 1);
assert.ok((await ask(two, request('203.0.113.8'))).passed, 'somebody else');
// By whatever it is told to count by.
const byUser = limit('1/h', (request) => request.user.id, patient);
assert.ok((await ask(byUser, { user: { id: 7 } })).passed);
assert.ok(!(await ask(byUser, { user: { id: 7 } })).passed);
// A limit that is none is not held against callers, nor is a service that does not answer.
console.error = () => {};
assert.ok((await ask(limit('1/fortnight', () => 'x', patient), {})).passed);
globalThis.fetch = async () => { throw new Error('nobody there'); };
assert.ok((await ask(two, request('203.0.113.7'))).passed);
console.log('right');
"#
    );
    let told = run("node", "middleware.mjs", "", &script);
    assert!(told.contains("right"), "{told}");
}
