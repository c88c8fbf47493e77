import assert from "node:assert/strict";
import { test } from "node:test";
import { registerLifecycle } from "../dist/lifecycle.js";
import { until } from "./help.js";

const KEY = "agent:main:chat";
const HIDDEN = "agent:main:dashboard:incognito-7f";
const CONTEXT = { sessionKey: KEY, agentId: "main" };

function world() {
  const told = [];
  const ended = [];
  const problems = [];
  const hooks = {};
  const reads = [];
  const state = { hasRoom: true };
  const runtime = () => ({
    capture: { readAgain: (sessionKey) => new Promise((resolve) => reads.push({ sessionKey, resolve })) },
    outbox: { add: ({ verb, body }) => state.hasRoom && Boolean(told.push([verb, body.reason ?? null])) },
    courier: { wake() {} },
    sessions: { ended: (sessionKey) => ended.push(sessionKey) },
    report: { problem: (what) => problems.push(what) },
  });
  state.running = runtime();
  registerLifecycle({ on: (name, handler) => (hooks[name] = handler) }, () => state.running);
  return { hooks, told, ended, problems, reads, state, runtime };
}

test("the end of a session is told behind its last messages, and its window is gone at once", async () => {
  const { hooks, told, ended, reads } = world();
  assert.equal(hooks.session_end({ reason: "idle" }, CONTEXT), undefined, "the host does not wait");
  assert.deepEqual(ended, [KEY]);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(told, []);
  assert.equal(reads[0].sessionKey, KEY);
  reads[0].resolve();
  await until(() => told.length === 1);
  assert.deepEqual(told, [["hooks/session-end", "idle"]]);
});

test("what is told of one session keeps its order, whichever read is done first", async () => {
  const { hooks, told, reads } = world();
  hooks.before_compaction({}, CONTEXT);
  hooks.after_compaction({}, CONTEXT);
  hooks.subagent_ended({ targetSessionKey: "agent:main:subagent:a", outcome: "ok" });
  reads[2].resolve();
  await until(() => told.length === 1);
  reads[1].resolve();
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(told.length, 1, "another session does not wait, this one does");
  reads[0].resolve();
  await until(() => told.length === 3);
  assert.deepEqual(told.map(([verb]) => verb), ["hooks/session-end", "hooks/pre-compaction", "hooks/post-compaction"]);
});

test("a transcript that is never read holds back nothing for ever", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { hooks, told } = world();
  hooks.before_reset({ reason: "new" }, CONTEXT);
  t.mock.timers.tick(5_000);
  for (let tick = 0; tick < 20; tick += 1) await undefined;
  assert.deepEqual(told, [["hooks/session-end", "new"]]);
});

test("one end is told once, though two hooks tell of it", async () => {
  const { hooks, told, ended, reads } = world();
  hooks.before_reset({ reason: "new" }, CONTEXT);
  hooks.session_end({ reason: "new" }, CONTEXT);
  hooks.session_end({ reason: "restart" }, CONTEXT);
  reads.forEach(({ resolve }) => resolve());
  await until(() => told.length === 1);
  assert.deepEqual([reads.length, ended.length], [1, 1]);
});

test("it is told to whoever runs by then", async () => {
  const { hooks, told, reads, state, runtime } = world();
  hooks.session_end({ reason: "idle" }, CONTEXT);
  const old = state.running;
  old.outbox.add = () => assert.fail("it is closed");
  state.running = runtime();
  reads[0].resolve();
  await until(() => told.length === 1);
});

test("what finds no room is reported", async () => {
  const { hooks, problems, reads, state } = world();
  state.hasRoom = false;
  hooks.session_end({ reason: "idle" }, CONTEXT);
  reads[0].resolve();
  await until(() => problems.length === 1);
});

test("nothing is told or kept of what the host keeps off its disk", async () => {
  const { hooks, told, ended, reads } = world();
  hooks.session_end({ reason: "idle" }, { sessionKey: HIDDEN, agentId: "main" });
  hooks.before_compaction({}, { sessionKey: HIDDEN, agentId: "main" });
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual([told, ended, reads], [[], [], []]);
});
