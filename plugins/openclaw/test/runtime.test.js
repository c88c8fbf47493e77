import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openOutbox } from "../dist/outbox.js";
import { registerRuntime, running } from "../dist/runtime.js";
import { folderFor, serve, settingsIn, store, until } from "./help.js";

const PLACE = { agentId: "main", sessionKey: "agent:main:chat", sessionId: "one" };
/** The host waits so long for a service that is replaced. */
const HOST_WAITS_MS = 5_000;

function update(number) {
  return { target: PLACE, message: { role: "user", content: `message ${number}` }, messageId: `id-${number}` };
}

/** A host with one service: ours. Its transcripts cannot be read here, so what it tells is what is taken. */
function host(home, more = {}) {
  const listeners = new Set();
  const errors = [];
  const logger = { info() {}, warn() {}, error: (text) => errors.push(text) };
  const api = {
    id: "offbook",
    config: {},
    logger,
    runtime: {
      events: {
        onSessionTranscriptUpdate(listener) {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
      },
      llm: { complete: () => new Promise(() => {}) },
    },
    registerService: (service) => (api.service = service),
  };
  registerRuntime(api, settingsIn(home, more), () => ["main"]);
  return {
    errors,
    listeners,
    start: () => api.service.start({ stateDir: home, logger }),
    stop: () => api.service.stop(),
    tell: (number) => listeners.forEach((listener) => listener(update(number))),
  };
}

test("what is said is delivered, and how far it was read is kept when it stops", async (t) => {
  const home = folderFor(t);
  const kept = store();
  const provider = await serve(home, ({ verb, body }) => (verb === "onMessage" ? kept.take(body) : { body: {} }));
  t.after(() => provider.close());
  const { start, stop, tell } = host(home);
  start();
  tell(1);
  await until(() => kept.messages.length === 1);
  await stop();
  assert.equal(running(), undefined);
  assert.equal(JSON.parse(readFileSync(join(home, "offbook", "cursors.json"), "utf8"))[PLACE.sessionKey].sessionId, "one");
});

test("with a provider that hangs it stops in time, and is there for the engine until it has", async (t) => {
  const home = folderFor(t);
  const provider = await serve(home, ({ verb }) =>
    verb === "status" ? { body: { summaries: { summarizers: ["host"] } } } : undefined,
  );
  t.after(() => provider.close());
  const { start, stop, tell, listeners } = host(home, { hostModel: true });
  start();
  tell(1);
  await until(() => provider.seen.some(({ verb }) => verb === "onMessage"));
  const began = performance.now();
  const stopped = stop();
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.ok(running(), "the next one is not there yet");
  tell(2);
  await stopped;
  assert.ok(performance.now() - began < HOST_WAITS_MS - 1_000, `${performance.now() - began} ms`);
  assert.equal(running(), undefined);
  assert.equal(listeners.size, 0);
  const outbox = openOutbox(join(home, "offbook", "outbox"), 1_000_000, assert.fail);
  t.after(() => outbox.close());
  assert.deepEqual(outbox.peek(10).map(({ body }) => body.message.id), ["id-1", "id-2"]);
});

test("one that finds the folder in use takes over when it is free", async (t) => {
  const home = folderFor(t);
  const { start, stop, errors } = host(home);
  const old = openOutbox(join(home, "offbook", "outbox"), 1_000_000, assert.fail);
  start();
  assert.equal(running(), undefined);
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(running(), undefined);
  old.close();
  await until(() => running(), 2_000);
  assert.deepEqual(errors, []);
  await stop();
});

test("one that is replaced while it stops leaves the next in its place", async (t) => {
  const home = folderFor(t);
  const provider = await serve(home, () => undefined);
  t.after(() => provider.close());
  const first = host(home);
  first.start();
  first.tell(1);
  await until(() => running().outbox.length === 1);
  const old = running();
  const stopped = first.stop();
  const second = host(home);
  second.start();
  await stopped;
  await until(() => running() && running() !== old, 2_000);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(running().outbox.length, 1);
  await second.stop();
});

test("what is not its own it does not take away", async (t) => {
  const first = host(folderFor(t));
  const second = host(folderFor(t));
  first.start();
  second.start();
  const next = running();
  await first.stop();
  assert.equal(running(), next);
  await second.stop();
  assert.equal(running(), undefined);
});

test("one that is stopped while it waits never starts", async (t) => {
  const home = folderFor(t);
  const { start, stop } = host(home);
  const old = openOutbox(join(home, "offbook", "outbox"), 1_000_000, assert.fail);
  start();
  await stop();
  old.close();
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal(running(), undefined);
  assert.equal(existsSync(join(home, "offbook", "report.json")), false);
});

test("what was forgotten while the host was off is gone soon after it starts, though nobody speaks", async (t) => {
  const home = folderFor(t);
  const file = join(home, "offbook", "sessions", "one.json");
  mkdirSync(join(home, "offbook", "sessions"), { recursive: true });
  writeFileSync(file, JSON.stringify({ sessionKey: PLACE.sessionKey, hostSessionId: "one", memory: "the blue heron", committed: [] }));
  const provider = await serve(home, ({ verb }) => ({ body: verb === "status" ? { agentId: "main", forgets: 1 } : {} }));
  t.after(() => provider.close());
  const { start, stop } = host(home, { level: "recall" });
  start();
  t.after(stop);
  await until(() => existsSync(join(home, "offbook", "forgets.json")));
  assert.equal(existsSync(file), false); // under a name that is not ours
  const [name, ...others] = readdirSync(join(home, "offbook", "sessions"));
  assert.deepEqual(others, []);
  assert.equal(JSON.parse(readFileSync(join(home, "offbook", "sessions", name), "utf8")).memory, "");
  assert.deepEqual(provider.seen.filter(({ verb }) => verb === "status").map(({ body }) => body), [{ agentId: "main" }]);
});
