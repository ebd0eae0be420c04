// ioredis as a client: one case by name, at a port. Says nothing if all is well.
"use strict";

const assert = require("node:assert/strict");
const Redis = require("ioredis");

const DAY = 86400;
const [name, port, ...more] = process.argv.slice(2);

/// Connects; what the client complains about ends it all.
function connect(options = {}) {
  const client = new Redis(Number(port), { ...options });
  client.on("error", (error) => {
    console.error("complaint:", error);
    process.exitCode = 1;
  });
  return client;
}

const throttle = (client, key, ...numbers) => client.call("CL.THROTTLE", key, ...numbers);

/// Each way to begin a conversation that it knows.
const protocols = { usual: {}, two: { protocol: 2 }, three: { protocol: 3 } };

async function eachProtocol(work) {
  for (const [protocol, options] of Object.entries(protocols)) await work(protocol, options);
}

const cases = {
  async plain() {
    await eachProtocol(async (protocol, options) => {
      const client = connect(options);
      await new Promise((resolve) => client.once("ready", resolve));
      assert.equal(client.status, "ready");
      assert.equal(await client.ping(), "PONG");
      assert.deepEqual(await throttle(client, protocol, 15, 30, 60), [0, 16, 15, -1, 2]);
      assert.deepEqual(await client.call("cl.throttle", `${protocol}-0`, "0", "1", `${DAY}`), [0, 1, 0, -1, DAY]);
      const key = Buffer.from([255, 0, 13, 10, protocol.length, protocol.charCodeAt(1)]);
      assert.deepEqual(await throttle(client, key, 0, 1, DAY), [0, 1, 0, -1, DAY]);
      assert.deepEqual(await client.callBuffer("CL.THROTTLE", key, 0, 1, DAY), [1, 1, 0, DAY, DAY]);
      assert.equal(await client.quit(), "OK");
    });
  },

  async options() {
    const client = connect({ db: 0, connectionName: "me", keepAlive: 1000, maxRetriesPerRequest: 1 });
    assert.equal(await client.client("GETNAME"), "me");
    assert.deepEqual(await throttle(client, "k", 15, 30, 60), [0, 16, 15, -1, 2]);
    const other = client.duplicate();
    assert.deepEqual(await throttle(other, "k", 15, 30, 60, 0), [0, 16, 15, -1, 2]);
    client.disconnect();
    other.disconnect();
    const lazy = connect({ lazyConnect: true, enableReadyCheck: true });
    await lazy.connect();
    assert.match(await lazy.info("server"), /redis_version/);
    lazy.disconnect();
  },

  async pipelines() {
    await eachProtocol(async (protocol, options) => {
      const client = connect(options);
      const pipeline = client.pipeline();
      for (let nth = 0; nth < 500; nth++) pipeline.call("CL.THROTTLE", protocol, 99, 1, DAY);
      const told = await pipeline.exec();
      told.forEach(([error, five], nth) => {
        assert.equal(error, null);
        assert.deepEqual(five.slice(0, 3), nth < 100 ? [0, 100, 99 - nth] : [1, 100, 0]);
      });
      // Errors are where they belong.
      const mixed = client.pipeline();
      mixed.call("CL.THROTTLE", protocol, 99, 1, DAY, 0).call("CL.THROTTLE", protocol, 99, 0, DAY).ping();
      const [look, wrong, pong] = await mixed.exec();
      assert.equal(look[1][0], 0);
      assert.equal(wrong[0].message, "Cell error: Store error: Zero rates are not supported");
      assert.equal(pong[1], "PONG");
      client.disconnect();
    });
  },

  async automatically() {
    const client = connect({ enableAutoPipelining: true });
    await new Promise((resolve) => client.once("ready", resolve));
    const asked = Array.from({ length: 300 }, () => throttle(client, "auto", 99, 1, DAY));
    const told = await Promise.all(asked);
    assert.equal(told.filter(([limited]) => limited === 0).length, 100);
    const mixed = [throttle(client, "k", 15, 0, 60), throttle(client, "k", 15, 30, 60)];
    const [wrong, right] = await Promise.allSettled(mixed);
    assert.equal(wrong.reason.message, "Cell error: Store error: Zero rates are not supported");
    assert.deepEqual(right.value, [0, 16, 15, -1, 2]);
    client.disconnect();
  },

  async errors() {
    await eachProtocol(async (protocol, options) => {
      const client = connect(options);
      const usage = "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]";
      const refused = (words, message) => assert.rejects(throttle(client, ...words), { name: "ReplyError", message });
      await refused(["k", 15, 30], usage);
      await refused(["k", "abc", 30, 60], "Cell error: Store error: Couldn't parse as integer: abc");
      await refused(["k", 15, 0, 60], "Cell error: Store error: Zero rates are not supported");
      await refused(["k", 15, 30, 60, -1], "Cell error: Store error: quantity must not be negative");
      await assert.rejects(client.get("x"), /ERR unknown command '(GET|get)', with args beginning with: 'x'/);
      assert.deepEqual(await throttle(client, protocol, 15, 30, 60), [0, 16, 15, -1, 2]);
      client.disconnect();
    });
  },

  async password() {
    const [right] = more;
    await eachProtocol(async (protocol, options) => {
      for (const said of [{ password: right }, { username: "default", password: right }]) {
        const client = connect({ ...options, ...said });
        await new Promise((resolve) => client.once("ready", resolve));
        assert.deepEqual(await throttle(client, protocol, 15, 30, 60, 0), [0, 16, 16, -1, 0]);
        client.disconnect();
      }
      for (const [said, message] of [
        [{ password: "wrong" }, /WRONGPASS invalid username-password pair or user is disabled\./],
        // To HELLO, Redis says more than that.
        [{}, /^NOAUTH (Authentication required\.|HELLO must be called with the client already authenticated, )/m],
      ]) {
        const client = new Redis(Number(port), { ...options, ...said, retryStrategy: null, maxRetriesPerRequest: 0 });
        const complaints = [];
        client.on("error", (error) => complaints.push(error.message));
        await assert.rejects(throttle(client, "k", 15, 30, 60));
        assert.match(complaints.join("\n"), message);
        client.disconnect();
      }
    });
  },

  /// The connection goes, and the client comes back by itself.
  async again() {
    const client = connect();
    assert.deepEqual(await throttle(client, "k", 9, 1, DAY), [0, 10, 9, -1, DAY]);
    client.disconnect(true);
    await new Promise((resolve) => client.once("ready", resolve));
    assert.deepEqual(await throttle(client, "k", 9, 1, DAY), [0, 10, 8, -1, 2 * DAY]);
    client.disconnect();
  },
};

cases[name]().catch((error) => {
  console.error(error);
  process.exit(1);
});
