import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { provider, ProviderError } from "../dist/client.js";
import { folderFor, problem, serve, settingsIn } from "./help.js";

async function failure(call) {
  const error = await call.then(() => assert.fail("it answered"), (reason) => reason);
  assert.ok(error instanceof ProviderError, String(error));
  return error;
}

test("a verb is asked and answered", async (t) => {
  const home = folderFor(t);
  const server = await serve(home, ({ body }) => ({ body: { got: body } }));
  t.after(() => server.close());
  const memory = provider(settingsIn(home));
  assert.deepEqual(await memory.call("hooks/session-end", { sessionId: "ä" }), { got: { sessionId: "ä" } });
  assert.equal(server.seen[0].verb, "hooks/session-end");
  assert.equal(memory.endpoint, `unix:${join(home, "offbook.sock")}`);
});

test("one connection is used again and again", async (t) => {
  const home = folderFor(t);
  const server = await serve(home, () => ({}));
  t.after(() => server.close());
  const memory = provider(settingsIn(home));
  for (let count = 0; count < 20; count += 1) await memory.call("ping", {});
  assert.equal(server.connections, 1);
});

test("what an older provider does not know is left out, from then on at once", async (t) => {
  const home = folderFor(t);
  const known = new Set(["sessionId", "prompt"]);
  const server = await serve(home, ({ body }) => {
    const other = Object.keys(body).find((name) => !known.has(name));
    return other ? problem(422, `Object contains unknown field \`${other}\``) : { body: { got: body } };
  });
  t.after(() => server.close());
  const memory = provider(settingsIn(home));
  const asked = { sessionId: "a", prompt: "hi", swapAtTokens: 1, tokenRatio: 1 };
  assert.deepEqual(await memory.call("prepareTurn", asked), { got: { sessionId: "a", prompt: "hi" } });
  assert.equal(server.seen.length, 3);
  await memory.call("prepareTurn", asked);
  assert.equal(server.seen.length, 4);
});

test("where nobody listens it says how to start one", async (t) => {
  const home = folderFor(t);
  const error = await failure(provider(settingsIn(home)).call("ping", {}));
  assert.equal(error.kind, "unreachable");
  assert.equal(error.retryable, true);
  assert.equal(error.message, `no provider answers on unix:${join(home, "offbook.sock")}: start it with \`offbook serve --home ${home}\``);
});

test("a socket nobody listens on any more is the same", async (t) => {
  const home = folderFor(t);
  writeFileSync(join(home, "offbook.sock"), "");
  assert.match((await failure(provider(settingsIn(home)).call("ping", {}))).message, /no provider answers on .*offbook serve/);
});

for (const [name, endpoint] of [["no scheme", "localhost:8770"], ["another scheme", "ftp://x"], ["nothing", "unix://"]]) {
  test(`an endpoint that cannot be read fails each call, not the start: ${name}`, async (t) => {
    const error = await failure(provider(settingsIn(folderFor(t), { endpoint })).call("ping", {}));
    assert.match(error.message, /neither unix:.*put `endpoint`/);
  });
}

test("an answer that does not come in time is late, and the next call works", async (t) => {
  const home = folderFor(t);
  const server = await serve(home, ({ body }) => (body.slow ? undefined : {}));
  t.after(() => server.close());
  const memory = provider(settingsIn(home));
  const began = performance.now();
  const error = await failure(memory.call("ping", { slow: true }, 120));
  const tookMs = performance.now() - began;
  assert.equal(error.kind, "late");
  assert.equal(error.retryable, true);
  assert.ok(tookMs >= 115 && tookMs < 1_000, `${tookMs} ms`);
  assert.equal(server.seen.length, 1, "a call that is late is not asked twice");
  await memory.call("ping", {});
});

test("a body that trickles is late too", async (t) => {
  const home = folderFor(t);
  const server = await serve(home, ({ response }) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write(" "), 10);
    response.on("close", () => clearInterval(timer));
  });
  t.after(() => server.close());
  assert.equal((await failure(provider(settingsIn(home)).call("ping", {}, 150))).kind, "late");
});

test("an answer that came while the event loop was busy is not late", async (t) => {
  const home = folderFor(t);
  const program = `
    require("node:http").createServer((request, response) => {
      request.resume();
      setTimeout(() => response.end("{}"), 30);
    }).listen(${JSON.stringify(join(home, "offbook.sock"))}, () => console.log("listening"));`;
  const server = spawn(process.execPath, ["--eval", program], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => server.kill());
  await once(server.stdout, "data");
  const memory = provider(settingsIn(home));
  await memory.call("ping", {}, 10_000);
  const asked = memory.call("ping", {}, 200);
  await new Promise((resolve) => setTimeout(resolve, 10)); // it is sent
  await new Promise((resolve) => setImmediate(resolve)); // so that timers come next, before anything is read
  const ends = performance.now() + 1_000;
  while (performance.now() < ends);
  await asked;
});

test("a provider started again is asked at once, over a new connection", async (t) => {
  const home = folderFor(t);
  let server = await serve(home, () => ({}));
  const memory = provider(settingsIn(home));
  await Promise.all([memory.call("ping", {}), memory.call("ping", {}), memory.call("ping", {})]);
  await server.close();
  rmSync(join(home, "offbook.sock"), { force: true });
  server = await serve(home, () => ({}));
  t.after(() => server.close());
  for (let count = 0; count < 5; count += 1) await memory.call("ping", {});
  assert.equal(server.seen.length, 5);
});

test("a kept connection that dies under the question is tried once more", async (t) => {
  const home = folderFor(t);
  let count = 0;
  const server = await serve(home, ({ request }) => {
    count += 1;
    if (count !== 2) return {};
    request.socket.destroy();
    return undefined;
  });
  t.after(() => server.close());
  const memory = provider(settingsIn(home));
  await memory.call("ping", {});
  await memory.call("ping", {});
  assert.equal(count, 3);
});

test("a new connection that dies under the question is not tried again here", async (t) => {
  const home = folderFor(t);
  const server = await serve(home, ({ request }) => void request.socket.destroy());
  t.after(() => server.close());
  const error = await failure(provider(settingsIn(home)).call("ping", {}));
  assert.equal(error.kind, "unreachable");
  assert.equal(server.seen.length, 1);
});

test("a provider that dies in the middle of its answer is unreachable", async (t) => {
  const home = folderFor(t);
  const server = await serve(home, ({ response }) => {
    response.writeHead(200, { "content-length": 100 });
    response.write('{"ok":');
    setTimeout(() => response.destroy(), 20);
  });
  t.after(() => server.close());
  assert.equal((await failure(provider(settingsIn(home)).call("ping", {}))).kind, "unreachable");
});

test("a refusal says what the provider said", async (t) => {
  const home = folderFor(t);
  const server = await serve(home, ({ body }) => problem(body.status, "`limit` is 0: give 1 to 100", body.status === 503));
  t.after(() => server.close());
  const memory = provider(settingsIn(home));
  const refused = await failure(memory.call("ping", { status: 400 }));
  assert.deepEqual([refused.kind, refused.status, refused.retryable], ["refused", 400, false]);
  assert.equal(refused.message, "`limit` is 0: give 1 to 100");
  const busy = await failure(memory.call("ping", { status: 503 }));
  assert.deepEqual([busy.kind, busy.status, busy.retryable], ["refused", 503, true]);
});

test("what is not a provider is told from one, and what we have to send waits", async (t) => {
  const home = folderFor(t);
  const server = await serve(home, ({ body }) => ({ status: body.status, body: "<html>" }));
  t.after(() => server.close());
  for (const status of [200, 400, 502]) {
    const error = await failure(provider(settingsIn(home)).call("ping", { status }));
    assert.deepEqual([error.kind, error.status, error.retryable], ["refused", status, true]);
    assert.match(error.message, /is it Offbook that listens there/);
  }
});

test("an answer without end is given up", async (t) => {
  const home = folderFor(t);
  const part = Buffer.alloc(8 * 1024 * 1024, 0x20);
  const server = await serve(home, ({ response }) => {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write(part));
    };
    response.on("drain", more);
    more();
  });
  t.after(() => server.close());
  const error = await failure(provider(settingsIn(home)).call("ping", {}, 20_000));
  assert.equal(error.kind, "unreachable");
  assert.match(error.message, /longer than 67108864 bytes/);
});

test("over TCP the token of the data folder is shown, read again after a 401", async (t) => {
  const home = folderFor(t);
  let wanted = "one";
  const server = await serve("tcp", ({ headers }) =>
    headers.authorization === `Bearer ${wanted}` ? {} : problem(401, "this token is not known", false));
  t.after(() => server.close());
  const memory = provider(settingsIn(home, { endpoint: `http://127.0.0.1:${server.port}` }));
  assert.match((await failure(memory.call("ping", {}))).message, /not known: look at `tokenFile`/);
  writeFileSync(join(home, "token"), "one\n"); // made after us
  await memory.call("ping", {});
  writeFileSync(join(home, "token"), "two\n");
  wanted = "two";
  await memory.call("ping", {});
  wanted = "three";
  const before = server.seen.length;
  assert.equal((await failure(memory.call("ping", {}))).status, 401);
  assert.equal(server.seen.length, before + 1, "the same token is not shown twice");
});

test("the token of the data folder is not shown to a socket, one that was named is", async (t) => {
  const home = folderFor(t);
  const server = await serve(home, () => ({}));
  t.after(() => server.close());
  writeFileSync(join(home, "token"), "own");
  writeFileSync(join(home, "bound"), "bound");
  await provider(settingsIn(home)).call("ping", {});
  await provider(settingsIn(home, { tokenFile: join(home, "bound") })).call("ping", {});
  assert.deepEqual(server.seen.map(({ headers }) => headers.authorization), [undefined, "Bearer bound"]);
});

test("half a character is sent as the sign for a broken one", async (t) => {
  const home = folderFor(t);
  const server = await serve(home, () => ({}));
  t.after(() => server.close());
  const memory = provider(settingsIn(home));
  for (const prompt of ["a\ud800b", "\\ud800", "😀", "\\\udc00"]) await memory.call("prepareTurn", { sessionId: "s", prompt });
  assert.deepEqual(server.seen.map(({ body }) => body.prompt), ["a\ufffdb", "\\ud800", "😀", "\\\ufffd"]);
  assert.ok(server.seen.every(({ text }) => !/(?<!\\)(\\\\)*\\ud/.test(text)));
});

test("a body that is not JSON is refused here", async (t) => {
  const error = await failure(provider(settingsIn(folderFor(t))).call("ping", { count: 1n }));
  assert.deepEqual([error.kind, error.retryable], ["refused", false]);
});
