import assert from "node:assert/strict";
import { test } from "node:test";
import { registerEnrichment } from "../dist/enrich.js";
import { isRunning } from "../dist/runs.js";
import { registerTurns } from "../dist/turns.js";

const HIDDEN = "agent:main:dashboard:incognito-7f";
const MINUTE_MS = 60_000;

function world() {
  const hooks = {};
  const asked = [];
  const state = { memory: "", contextWindow: 0 };
  const runtime = {
    runs: new Map(),
    settings: { level: "recall", turnDeadlineMs: 600 },
    provider: { call: async (verb) => (asked.push(verb), { recall: "the gate is green", memory: "" }) },
    report: { turn() {} },
    sessions: { of: () => state, save() {} },
    forgetting: { told: () => false },
  };
  registerTurns({ on: (name, handler) => (hooks[name] = handler) }, () => runtime);
  return { hooks, asked, runtime };
}

test("a run goes on until its end is told, or it is too old to go on", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  const { hooks, runtime } = world();
  const context = { runId: "a", sessionKey: "agent:main:chat" };
  await hooks.before_prompt_build({ prompt: "hello" }, context);
  assert.equal(isRunning(runtime.runs, Date.now()), true);
  hooks.agent_end({}, context);
  assert.equal(isRunning(runtime.runs, Date.now()), false);

  await hooks.before_prompt_build({ prompt: "hello" }, context); // whose end nobody tells
  t.mock.timers.tick(9 * MINUTE_MS);
  await hooks.before_prompt_build({ prompt: "hello" }, context); // the same run
  assert.equal(isRunning(runtime.runs, Date.now()), true);
  t.mock.timers.tick(2 * MINUTE_MS);
  assert.equal(isRunning(runtime.runs, Date.now()), false);
});

test("runs that nobody ends do not pile up where nobody asks for them", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  const { hooks, runtime } = world();
  for (let run = 0; run < 100; run += 1) {
    t.mock.timers.tick(MINUTE_MS);
    await hooks.before_prompt_build({ prompt: "hello" }, { runId: `run-${run}`, sessionKey: "agent:main:chat" });
  }
  assert.ok(runtime.runs.size <= 11, String(runtime.runs.size));
});

test("what comes to mind stands behind the user's words", async () => {
  const { hooks, asked } = world();
  const injected = await hooks.before_prompt_build({ prompt: "the gate?" }, { runId: "a", sessionKey: "agent:main:chat" });
  assert.deepEqual(injected, { appendContext: "the gate is green" });
  assert.deepEqual(asked, ["prepareTurn"]);
});

test("a turn that goes on after a swap within it brings nothing to mind once more; the next turn does", async () => {
  const { hooks, runtime } = world();
  const context = { runId: "a", sessionKey: "agent:main:chat" };
  await hooks.before_prompt_build({ prompt: "the gate?" }, context);
  runtime.sessions.of().isContinued = true;
  assert.deepEqual(await hooks.before_prompt_build({ prompt: "Continue the current task." }, context), {});
  const again = await hooks.before_prompt_build({ prompt: "the gate?" }, context);
  assert.deepEqual(again, { appendContext: "the gate is green" }, "what the user said is asked once more");
  hooks.agent_end({}, context);
  assert.deepEqual(await hooks.before_prompt_build({ prompt: "the gate?" }, context), { appendContext: "the gate is green" });
});

test("the provider is told what is in use, and when a swap will be asked for", async () => {
  const { hooks, runtime } = world();
  Object.assign(runtime.sessions.of(), { used: 9_000.4, contextWindow: 24_000, nextSwap: { swapAtTokens: 8_000, swapToTokens: 3_000, tokenRatio: 1.1 } });
  let body = {};
  runtime.provider.call = async (_verb, asked) => ((body = asked), { recall: "", memory: "" });
  await hooks.before_prompt_build({ prompt: "the gate?" }, { runId: "a", sessionKey: "agent:main:chat" });
  assert.deepEqual(
    [body.currentTokens, body.contextWindow, body.swapAtTokens, body.swapToTokens, body.tokenRatio],
    [9_000, 24_000, 8_000, 3_000, 1.1],
  );
});

test("nothing is asked for a session that the host keeps off its disk, by a turn or by a search", async () => {
  const { hooks, asked } = world();
  assert.equal(await hooks.before_prompt_build({ prompt: "the gate?" }, { runId: "a", sessionKey: HIDDEN }), undefined);
  const host = {
    config: {},
    on: (_name, handler) => (host.ask = handler),
    registerAgentToolResultMiddleware() {},
  };
  const memory = { call: async (verb) => void asked.push(verb) };
  registerEnrichment(host, () => memory, { level: "recall" }, () => undefined);
  host.ask({ toolCallId: "call_1", params: { query: "the gate" } }, { sessionKey: HIDDEN });
  assert.deepEqual(asked, []);
  host.ask({ toolCallId: "call_2", params: { query: "the gate" } }, { sessionKey: "agent:main:chat" });
  assert.deepEqual(asked, ["enrich"]);
});
