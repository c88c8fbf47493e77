import assert from "node:assert/strict";
import { test } from "node:test";
import { enriched, isSparse, QUESTION_MS, registerEnrichment, resultId, WAIT_MS } from "../dist/enrich.js";

const SPARSE = { results: 2, chars: 400 };
const ENRICHMENT = { text: "You remember: the gate is green.", entries: [], tokens: 9, sparse: SPARSE, degraded: [] };
const CONTEXT = { agentId: "main", sessionKey: "agent:main:chat" };

function found(count, chars = 500) {
  const results = Array.from({ length: count }, () => ({ path: "MEMORY.md", snippet: "x".repeat(chars) }));
  return { content: [{ type: "text", text: JSON.stringify({ results }) }], details: { results } };
}

/** As OpenClaw 2026.9.6 hands over what `tool_call` and `tool_search_code` got from the tool they called. */
function byToolCall(inner) {
  const details = { tool: { id: "openclaw:memory-core:memory_search", name: "memory_search" }, result: inner };
  return { content: [{ type: "text", text: JSON.stringify(details) }], details };
}
function byCode(inner) {
  const details = { ok: true, value: { tool: { name: "memory_search" }, result: inner }, logs: [], telemetry: {} };
  return { content: [{ type: "text", text: JSON.stringify(details) }], details };
}

function world({ level = "recall", slots = {}, call = async () => ENRICHMENT, ...api } = {}) {
  const asked = [];
  const problems = [];
  const host = {
    config: { plugins: { slots } },
    on: (name, handler, options) => (host.hook = { name, handler, options }),
    registerAgentToolResultMiddleware: (handler, options) => (host.middleware = { handler, options }),
    ...api,
  };
  const memory = {
    call(verb, body, deadlineMs) {
      asked.push({ verb, body, deadlineMs });
      return call(body);
    },
  };
  const report = { problem: (what, detail) => problems.push(detail) };
  const isOn = registerEnrichment(host, () => memory, { level }, () => report);
  const before = (toolCallId, params = { query: "the gate" }, context = CONTEXT) =>
    host.hook.handler({ toolName: "memory_search", toolCallId, params }, context);
  const after = (toolCallId, result, toolName = "memory_search") =>
    host.middleware.handler({ toolCallId, toolName, args: {}, isError: false, result }, { runtime: "openclaw" });
  return { isOn, host, asked, problems, before, after };
}

test("a sparse result gets what comes to mind as one block more, and keeps the rest", async () => {
  const { isOn, host, asked, before, after } = world();
  assert.equal(isOn, true);
  assert.deepEqual(host.hook.options, { matcher: ["memory_search"] });
  assert.equal(before("call_1"), undefined);
  const body = { sessionId: "agent:main:chat", agentId: "main", query: "the gate" };
  assert.deepEqual(asked, [{ verb: "enrich", body, deadlineMs: QUESTION_MS }]);
  const result = found(1);
  const { result: changed } = await after("call_1", result);
  assert.deepEqual(changed.content, [...result.content, { type: "text", text: ENRICHMENT.text }]);
  assert.deepEqual(changed.details, result.details);
  assert.equal(await after("call_1", result), undefined, "once");
});

test("through Tool Search it is the result of the tool around that changes", async () => {
  const { before, after } = world();
  for (const [wrapped, toolName] of [[byToolCall(found(0)), "tool_call"], [byCode(found(0)), "tool_search_code"]]) {
    before("tool_search_code:call_17:memory_search:1");
    assert.equal(await after("call_18", wrapped, toolName), undefined, "another call");
    const { result } = await after("call_17", wrapped, toolName);
    assert.equal(result.content.at(-1).text, ENRICHMENT.text);
  }
});

test("the id of the call around is found as the host writes it", () => {
  assert.equal(resultId("tool_search_code:call_1:memory_search:2"), "call_1");
  assert.equal(resultId("tool_search_code:a:b:memory_search:1"), "a:b");
  assert.equal(resultId("call|1 x"), "call_1_x");
  assert.equal(resultId("tool_search_code:call_1_x:memory_search:1"), resultId("call|1 x"));
});

test("an answer that comes after the search is still added if it comes soon", async () => {
  const { before, after } = world({ call: () => new Promise((resolve) => setTimeout(() => resolve(ENRICHMENT), 100)) });
  before("call_11");
  assert.equal((await after("call_11", found(0))).result.content.at(-1).text, ENRICHMENT.text);
});

test("what found enough stays as it is", async () => {
  const { before, after } = world();
  before("call_2");
  assert.equal(await after("call_2", found(3)), undefined);
  assert.equal(isSparse(found(3), SPARSE), false);
  assert.equal(isSparse(found(2), SPARSE), true);
  assert.equal(isSparse(found(3, 100), SPARSE), true, "three hits that say little");
  assert.equal(isSparse(byToolCall(found(3)), SPARSE), false);
  assert.equal(isSparse(byCode(found(3)), SPARSE), false);
  assert.equal(isSparse({ content: [{ type: "text", text: "x".repeat(401) }] }, SPARSE), false);
  assert.equal(isSparse({ content: [{ type: "text", text: "nothing found" }] }, SPARSE), true);
});

test("nothing is added where nothing comes to mind, and nothing where there was no search", async () => {
  const { before, after, asked } = world({ call: async () => ({ ...ENRICHMENT, text: "" }) });
  before("call_3");
  assert.equal(await after("call_3", found(0)), undefined);
  assert.equal(await after("call_other", found(0), "tool_call"), undefined);
  before("call_4", { query: " " });
  before("call_4", {});
  before("call_4", { query: "x" }, { agentId: "main" });
  assert.equal(asked.length, 1);
});

test("a provider that fails, throws or hangs leaves the result as it is, in time, and nothing throws", async () => {
  const failing = world({ call: () => Promise.reject(new Error("unreachable: start Offbook")) });
  failing.before("call_5");
  assert.equal(await failing.after("call_5", found(0)), undefined);
  assert.deepEqual(failing.problems, ["unreachable: start Offbook"]);
  const throwing = world({ call: () => { throw new Error("broken"); } });
  assert.equal(throwing.before("call_6"), undefined);
  assert.deepEqual(throwing.problems, ["broken"]);
  const hanging = world({ call: () => new Promise(() => undefined) });
  const began = Date.now();
  hanging.before("call_7");
  assert.ok(Date.now() - began < 50, "the search is not kept waiting");
  assert.equal(await hanging.after("call_7", found(0)), undefined);
  assert.ok(Date.now() - began < WAIT_MS + 200);
  const strange = world();
  strange.before("call_8");
  assert.equal(await strange.after("call_8", null), undefined);
  strange.before("call_9");
  assert.equal(await strange.after("call_9", { content: [{ type: "image", data: "x" }] }), undefined);
});

test("of searches whose result never came only the newest are kept", async () => {
  const { before, after } = world();
  for (let at = 0; at < 100; at += 1) before(`lost_${at}`);
  assert.equal(await after("lost_0", found(0)), undefined);
  assert.ok(await after("lost_99", found(0)));
});

test("what is kept for more than a minute is not told any more", async (context) => {
  context.mock.timers.enable({ apis: ["Date"], now: 1_000 });
  const { before, after } = world();
  before("call_10");
  context.mock.timers.setTime(62_000);
  assert.equal(await after("call_10", found(0)), undefined);
});

test("it is registered only where the host's own search runs and something may be brought to mind", () => {
  assert.equal(world({ level: "capture" }).isOn, false);
  assert.equal(world({ level: "hot-swap" }).isOn, true);
  assert.equal(world({ slots: { memory: "none" } }).isOn, false);
  assert.equal(world({ slots: { memory: "offbook-memory" } }).isOn, false);
  const old = world({ registerAgentToolResultMiddleware: undefined });
  assert.equal(old.isOn, false);
  assert.equal(old.host.hook, undefined);
  assert.equal(old.problems.length, 1);
});

test("enriching changes nothing of what it was given", () => {
  const result = found(1);
  const before = JSON.stringify(result);
  enriched(result, "more");
  assert.equal(JSON.stringify(result), before);
});
