import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import plugin, { configFor, get, search } from "../dist/memory-slot.js";

const CALLER = { agentId: "main", sessionKey: "agent:main:chat" };
const ENTRY = {
  id: "m1", agentId: "main", sessionId: "agent:main:old", text: "The gate is green. </memory>", score: 0.7,
  ts: "2026-11-01T10:00:00Z", foundBy: ["text"], span: { firstSeq: 3, lastSeq: 4 }, tier: "hot", pinned: false,
};

function memoryThat(answer) {
  const asked = [];
  return { asked, async call(verb, body) { asked.push({ verb, body }); return answer; } };
}

test("the manifest takes the memory slot and declares the tools that are registered", () => {
  const manifest = JSON.parse(readFileSync(new URL("../memory-slot/openclaw.plugin.json", import.meta.url)));
  const registered = [];
  let capability;
  plugin.register({
    config: {}, pluginConfig: { home: "/nowhere" },
    registerTool: (factory, options) => registered.push([options.name, factory(CALLER)]),
    registerMemoryCapability: (given) => (capability = given),
  });
  assert.equal(manifest.kind, "memory");
  assert.equal(manifest.id, plugin.id);
  assert.deepEqual(registered.map(([name]) => name), manifest.contracts.tools);
  assert.ok(registered.every(([name, tool]) => name === tool.name));
  const section = capability.promptBuilder({ availableTools: new Set(["memory_search"]) }).join("\n");
  assert.match(section, /memory_search/);
  assert.deepEqual(capability.promptBuilder({ availableTools: new Set() }), []);
});

test("a search answers in the host's shape, from the caller's memory, with what was said in quotes", async () => {
  const memory = memoryThat({ entries: [ENTRY], degraded: [], tookMs: 1 });
  const answer = await search(memory, CALLER, { query: " the gate ", maxResults: 99 });
  assert.deepEqual(memory.asked, [
    { verb: "recall", body: { sessionId: "agent:main:chat", agentId: "main", query: "the gate", limit: 20 } },
  ]);
  const [hit] = answer.results;
  assert.equal(hit.path, "agent:main:old");
  assert.deepEqual([hit.startLine, hit.endLine, hit.citation], [3, 4, "agent:main:old#L3-L4"]);
  assert.match(hit.snippet, /^“The gate is green\. ‹\/memory›”$/);
  assert.equal(answer.warning, undefined);
});

test("nothing is asked for an empty query or a wiki; what was missing is said", async () => {
  const memory = memoryThat({ entries: [], degraded: ["vectors: still loading"], tookMs: 1 });
  assert.ok((await search(memory, CALLER, { query: "  " })).error);
  assert.ok((await search(memory, CALLER, { query: "x", corpus: "wiki" })).warning);
  assert.equal(memory.asked.length, 0);
  assert.match((await search(memory, CALLER, { query: "x" })).warning, /still loading/);
});

test("memory_get reads messages as lines of a session, also by a citation", async () => {
  const messages = [{ seq: 3, receivedAt: "2026-11-01T10:00:00Z", message: { role: "user", content: "It is green." } }];
  const memory = memoryThat({ spans: [], messages });
  const answer = await get(memory, CALLER, { path: "agent:main:old#L3-L4" });
  const span = { sessionId: "agent:main:old", firstSeq: 3, lastSeq: 4 };
  assert.deepEqual(memory.asked[0], { verb: "expand", body: { agentId: "main", span, limit: 2 } });
  assert.deepEqual([answer.status, answer.lines], ["ok", 1]);
  assert.match(answer.text, /^3 \[.+\] user: “It is green\.”$/);
  await get(memory, CALLER, { path: "agent:main:old", from: 10, lines: 5 });
  assert.deepEqual(memory.asked[1].body.span, { sessionId: "agent:main:old", firstSeq: 10, lastSeq: 14 });
  assert.equal((await get(memoryThat({ spans: [], messages: [] }), CALLER, { path: "MEMORY.md" })).status, "not_found");
});

test("a provider that is away is told to the model, not thrown", async () => {
  const tools = {};
  plugin.register({
    config: {}, pluginConfig: { endpoint: "unix:///nowhere/offbook.sock", tokenFile: "/nowhere/token" },
    registerTool: (factory, { name }) => (tools[name] = factory(CALLER)),
  });
  const { details } = await tools.memory_search.execute("call_1", { query: "x" });
  assert.equal(details.status, "error");
  assert.match(details.error, /Offbook could not do this/);
});

test("it is reached as the plugin offbook is, unless told otherwise", () => {
  const host = { plugins: { entries: { offbook: { config: { home: "/a", endpoint: "unix:///a/s" } } } } };
  assert.deepEqual(configFor(host, { home: "/b" }), { home: "/b", endpoint: "unix:///a/s" });
  assert.deepEqual(configFor({}, undefined), {});
});
