import assert from "node:assert/strict";
import { test } from "node:test";
import { registerHostCli } from "../dist/host-cli.js";
import { registerMethods } from "../dist/methods.js";
import { away, entryOf, fakeHost, fakeMemory, refused, statusOf } from "./fake-memory.js";

function world(answers = {}) {
  const memory = fakeMemory(answers);
  const host = fakeHost();
  registerMethods(
    host.api,
    () => memory,
    () => ["main", "ops"],
  );
  const ask = async (name, params) => {
    const answers = [];
    await host.methods[name].handler({ params, respond: (...values) => void answers.push(values) });
    assert.equal(answers.length, 1, "answered once");
    return answers[0];
  };
  return { memory, host, ask };
}

test("all five are there, for whoever may read", () => {
  const { host } = world();
  const names = ["getArchiveStats", "getConfig", "getState", "getTopics", "search"].map((name) => `continuity.${name}`);
  assert.deepEqual(Object.keys(host.methods).sort(), names);
  for (const { options } of Object.values(host.methods)) assert.deepEqual(options, { scope: "operator.read" });
});

test("the provider's answers are handed on", async () => {
  const recall = { entries: [entryOf()], tookMs: 1, degraded: [] };
  const { memory, ask } = world({
    state: { agentId: "ops" },
    config: { settings: {} },
    topics: { topics: [] },
    recall,
  });
  assert.deepEqual(await ask("continuity.getState", { agentId: "ops", sessionKey: "agent:ops:x" }), [
    true,
    { agentId: "ops" },
  ]);
  assert.deepEqual(await ask("continuity.getState", {}), [true, { agentId: "ops" }]);
  assert.deepEqual(await ask("continuity.getConfig", undefined), [true, { settings: {} }]);
  assert.deepEqual(await ask("continuity.getTopics", { sessionKey: "agent:ops:x" }), [true, { topics: [] }]);
  assert.deepEqual(await ask("continuity.search", { query: "port", limit: 3 }), [true, recall]);
  assert.deepEqual(memory.calls, [
    ["state", { agentId: "ops", sessionId: "agent:ops:x" }],
    ["state", { agentId: "main" }],
    ["config", { agentId: "main" }],
    ["topics", { agentId: "ops", sessionId: "agent:ops:x" }],
    ["recall", { sessionId: "agent:main:main", agentId: "main", query: "port", limit: 3, scope: "agent" }],
  ]);
});

test("archives are what went cold and what was learnt", async () => {
  const session = { lastAt: "2026-11-12T10:00:00Z" };
  const lessons = { learnt: 4, accepted: 2, edited: 1, rejected: 3 };
  const tiers = { hot: 1, warm: 2, cold: 5 };
  const status = statusOf("main", { pinned: 3, tiers, lessons, forgets: 2, sessions: [{ lastAt: "2026-11-10T10:00:00Z" }, session] });
  const [ok, stats] = await world({ status }).ask("continuity.getArchiveStats", {});
  assert.equal(ok, true);
  assert.deepEqual([stats.archives, stats.lessons, stats.forgets], [{ cold: 5, lessons: 7 }, lessons, 2]);
  assert.deepEqual([stats.pinned, stats.messages, stats.lastAt], [3, 0, session.lastAt]);
  const [, older] = await world({ status: statusOf("main") }).ask("continuity.getArchiveStats", {});
  assert.deepEqual([older.archives, older.lessons, older.forgets], [{ cold: 0, lessons: 0 }, {}, 0]);
});

test("a wrong question is told from a provider that is away", async () => {
  const { memory, ask } = world({ state: away(), config: refused("no such agent") });
  for (const params of [
    {},
    { query: 7 },
    { query: "x", limit: 0 },
    { query: "x", limit: 1.5 },
    { query: "x", agentId: {} },
  ]) {
    const [ok, payload, error] = await ask("continuity.search", params);
    assert.deepEqual([ok, payload, error.code], [false, undefined, "INVALID_REQUEST"], JSON.stringify(params));
  }
  assert.deepEqual(memory.calls, []);
  const [, , unreachable] = await ask("continuity.getState", {});
  assert.deepEqual([unreachable.code, unreachable.retryable], ["UNAVAILABLE", true]);
  assert.match(unreachable.message, /offbook serve/);
  const [, , known] = await ask("continuity.getConfig", {});
  assert.deepEqual([known.code, known.retryable], ["INVALID_REQUEST", false]);
});

/** As much of commander as is used. */
function commandLine() {
  const actions = {};
  const made = (path) => {
    const command = {
      command: (name) => made([...path, name]),
      description: () => command,
      option: () => command,
      argument: () => command,
      addHelpText: () => command,
      action: (run) => ((actions[path.join(" ")] = run), command),
    };
    return command;
  };
  return { program: made([]), actions };
}

async function ran(answers, name, options) {
  const memory = fakeMemory(answers);
  const host = fakeHost();
  registerHostCli(
    host.api,
    () => memory,
    () => ["main"],
  );
  const { program, actions } = commandLine();
  host.clis[0].registrar({ program });
  const written = { out: "", err: "" };
  const [out, err] = [process.stdout.write, process.stderr.write];
  process.stdout.write = (text) => ((written.out += text), true);
  process.stderr.write = (text) => ((written.err += text), true);
  try {
    await actions[name](options);
  } finally {
    process.stdout.write = out;
    process.stderr.write = err;
  }
  const code = process.exitCode ?? 0;
  process.exitCode = undefined;
  return { ...written, code, memory, options: host.clis[0].options };
}

const SUMMARY = {
  id: "L1-0001",
  level: 1,
  spans: [{ sessionId: "agent:main:main", firstSeq: 1, lastSeq: 9 }],
  sources: [],
  text: "They moved\nthe gateway.",
  sourceMessages: 9,
  sourceTokens: 6000,
  tokens: 400,
  summarizer: "extractive",
  promptVersion: "1",
  fingerprint: "f",
  usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, dollars: 0 },
  firstAt: "2026-11-10T10:00:00Z",
  lastAt: "2026-11-12T10:00:00Z",
  madeAt: "2026-11-12T10:00:00Z",
  lost: 2,
  losses: [],
};

test("openclaw offbook status", async () => {
  const status = ({ agentId }) => statusOf(agentId);
  const all = await ran({ status }, "offbook status", {});
  assert.deepEqual([all.code, all.err], [0, ""]);
  assert.match(all.out, /main +0 messages\n[^]*Asked at unix:\/somewhere/);
  assert.match((await ran({ status }, "offbook status", { agent: "ops" })).out, /^Agent ops/);
  const json = JSON.parse((await ran({ status }, "offbook status", { json: true })).out);
  assert.equal(json[0].agentId, "main");
  const [descriptor] = all.options.descriptors;
  assert.deepEqual([descriptor.name, descriptor.hasSubcommands], ["offbook", true]);
  assert.equal(descriptor.machineOutput({ argv: ["offbook", "status", "--json"] }), true);
});

test("openclaw offbook inspect", async () => {
  const answers = { summaries: { summaries: [SUMMARY], next: "L1-0001" } };
  const shown = await ran(answers, "offbook inspect", { level: "L1", limit: "1", agent: "ops" });
  assert.deepEqual(shown.memory.calls, [["summaries", { agentId: "ops", limit: 1, level: 1 }]]);
  assert.match(shown.out, /^L1-0001 .* 9 messages, 6,000 tokens in 400, by extractive, 2 particulars left out$/m);
  assert.match(shown.out, /agent:main:main#1-9\n {2}“They moved the gateway\.”/);
  assert.match(shown.out, /There are more/);
  const none = await ran({ summaries: { summaries: [] } }, "offbook inspect", { limit: "10", level: "2" });
  assert.match(none.out, /no summaries of level L2 yet/);
  assert.deepEqual(
    JSON.parse((await ran(answers, "offbook inspect", { limit: "10", json: true })).out),
    answers.summaries,
  );
});

test("what fails is one line on stderr and exit status 1", async () => {
  for (const [name, options, told] of [
    ["offbook status", {}, /offbook serve/],
    ["offbook inspect", { limit: "10" }, /offbook serve/],
    ["offbook inspect", { limit: "0" }, /--limit is .*--help/],
    ["offbook inspect", { limit: "10", level: "Lx" }, /--level is L1 to L9/],
  ]) {
    const { out, err, code } = await ran({ status: away(), summaries: away() }, name, options);
    assert.deepEqual([out, code], ["", 1]);
    assert.match(err, told);
    assert.equal(err.trimEnd().split("\n").length, 1);
  }
  const { out } = await ran({ status: away() }, "offbook status", { json: true });
  assert.match(JSON.parse(out).error, /offbook serve/);
});
