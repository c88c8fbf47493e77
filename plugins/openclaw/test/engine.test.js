import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ProviderError } from "../dist/client.js";
import { engine } from "../dist/engine.js";
import { wireMessage } from "../dist/messages.js";
import { openSessions } from "../dist/sessions.js";
import { BOUNDARY, estimatedTokens } from "../dist/window.js";

const KEY = "agent:main:chat";

function conversation(turns, chars = 400) {
  const messages = [];
  for (let turn = 0; turn < turns; turn += 1) {
    messages.push({ role: "user", content: `question ${turn} ${"word ".repeat(chars / 5)}`, timestamp: 1_000_000 + turn * 10 });
    messages.push({ role: "assistant", content: [{ type: "text", text: `answer ${turn}` }], timestamp: 1_000_005 + turn * 10 });
  }
  return messages;
}

/** A gateway's runtime with everything outside the engine replaced; `folder` is what outlives it. */
function world(folder = mkdtempSync(join(tmpdir(), "offbook-engine-"))) {
  const asked = [];
  const problems = [];
  const state = { isAway: false, isIdle: true, flushed: 0, log: [] };
  const provider = {
    endpoint: "unix:/nowhere",
    async call(verb, body) {
      asked.push({ verb, body });
      if (state.isAway) throw new ProviderError({ kind: "unreachable", detail: "nobody there", next: "start it", retryable: true });
      if (verb === "swap" && state.isLate) throw new ProviderError({ kind: "late", detail: "no answer in time", next: "", retryable: true });
      if (verb === "swap" && state.why) return { swapped: false, reason: state.why, generation: 0, messages: [], tokensBefore: body.usedTokens, tokensAfter: body.usedTokens };
      if (verb === "swap") {
        const kept = state.log.slice(-4).map((message, at) => wireMessage(`id-${state.log.length - 4 + at}`, message, "host"));
        const memory = { role: "assistant", content: `memory of ${state.log.length - 4} messages` };
        return { swapped: true, reason: "forced", generation: asked.length, messages: [memory, ...kept], tokensBefore: body.usedTokens, tokensAfter: 100 };
      }
      return verb === "hooks/session-start" ? (state.context ?? null) : {};
    },
  };
  const report = { assembled() {}, committed() {}, swapped() {}, fellBack() { state.fellBack = (state.fellBack ?? 0) + 1; }, problem: (what) => problems.push(what) };
  const capture = { read: async () => undefined, settled: async () => true };
  const courier = { idle: async () => state.isIdle, wake() {} };
  const outbox = { flush: async () => { state.flushed += 1; } };
  const log = { info() {}, warn() {}, error() {} };
  const settings = { callDeadlineMs: 1_000, level: "hot-swap" };
  const sessions = openSessions(join(folder, "sessions"), (text) => problems.push(text));
  const runtime = { settings, provider, report, capture, courier, outbox, sessions, log, runs: new Set() };
  return { engine: engine(() => runtime), asked, problems, state, sessions, folder };
}

const request = (messages, more = {}) => ({ sessionId: "host", sessionKey: KEY, messages, tokenBudget: 8_000, model: "m", ...more });

test("below the threshold nothing is asked and nothing changed", async () => {
  const { engine, asked, state } = world();
  const messages = (state.log = conversation(5));
  const answer = await engine.assemble(request(messages));
  assert.deepEqual(answer.messages, messages);
  assert.deepEqual(asked, []);
});

test("at the threshold the context that stands by is taken, once, and stays until it grew again", async () => {
  const { engine, asked, state } = world();
  const messages = (state.log = conversation(60));
  await engine.assemble(request([]));
  const first = await engine.assemble(request(messages));
  assert.equal(asked.filter(({ verb }) => verb === "swap").length, 1);
  assert.equal(first.messages[0].content, BOUNDARY);
  assert.equal(first.messages[1].content[0].text, "memory of 116 messages");
  assert.deepEqual(first.messages.slice(2), messages.slice(-4));
  const second = await engine.assemble(request(first.messages));
  assert.deepEqual(second.messages, first.messages);
  const next = [...messages, ...conversation(1).map((message) => ({ ...message, timestamp: message.timestamp + 1e6 }))];
  const third = await engine.assemble(request(next));
  assert.deepEqual(third.messages.slice(0, 6), first.messages);
  assert.equal(asked.filter(({ verb }) => verb === "swap").length, 1);
});

const swaps = (asked) => asked.filter(({ verb }) => verb === "swap").map(({ body }) => body);
const later = (messages) => messages.map((message) => ({ ...message, timestamp: message.timestamp + 1e6 }));

test("a swap is asked for with its size, and forced only where it could not free a quarter otherwise", async () => {
  const { engine, asked, state } = world();
  state.log = conversation(300, 3_000);
  await engine.assemble(request([], { tokenBudget: 200_000 }));
  await engine.assemble(request(state.log, { tokenBudget: 200_000 }));
  const [roomy] = swaps(asked);
  assert.equal(roomy.force, undefined);
  assert.equal(roomy.contextWindow, 200_000);
  assert.equal(roomy.generation, 0);
  assert.equal(roomy.tokenRatio, 1);
  assert.ok(roomy.targetTokens >= 40_000 && roomy.targetTokens <= 80_000, `${roomy.targetTokens}`);
  assert.ok(roomy.usedTokens - roomy.targetTokens >= 50_000);

  const tight = world();
  tight.state.log = conversation(12);
  tight.state.log.at(-1).usage = { input: 9_000, output: 20 };
  await tight.engine.assemble(request([], { tokenBudget: 12_000 }));
  await tight.engine.assemble(request(tight.state.log, { tokenBudget: 12_000 }));
  assert.equal(swaps(tight.asked)[0].force, true);
});

test("a second swap in one turn never is, also where the host asks for one; the next turn may", async () => {
  const { engine, asked, state } = world();
  state.log = conversation(60);
  await engine.assemble(request([]));
  await engine.assemble(request(state.log));
  const grown = [...state.log, ...later(conversation(60))];
  state.log = grown;
  await engine.assemble(request(grown));
  const budget = { sessionId: "host", sessionKey: KEY, currentTokenCount: 7_900, runtimeContext: { trigger: "budget" } };
  const answer = await engine.compact(budget);
  assert.deepEqual([answer.ok, answer.compacted], [true, false]);
  assert.match(answer.reason, /^already compacted/);
  assert.equal(swaps(asked).length, 1);
  await engine.commitTurn({ advancementKey: "t", sessionId: "host", sessionKey: KEY });
  await engine.assemble(request(grown));
  assert.equal(swaps(asked).length, 2);
});

test("a swap whose answer was late is asked for again in the next turn, as one that is still on the generation before", async () => {
  const { engine, asked, state } = world();
  state.log = conversation(60);
  await engine.assemble(request([]));
  state.isLate = true;
  assert.deepEqual((await engine.assemble(request(state.log))).messages, state.log);
  await engine.assemble(request(state.log));
  assert.equal(swaps(asked).length, 1);
  state.isLate = false;
  await engine.commitTurn({ advancementKey: "t", sessionId: "host", sessionKey: KEY });
  const { messages } = await engine.assemble(request(state.log));
  assert.equal(messages[0].content, BOUNDARY);
  assert.deepEqual(swaps(asked).map(({ generation }) => generation), [0, 0]);
});

test("where nobody answers, the next turns do not wait for it either, however little room is left", async () => {
  const { engine, asked, state } = world();
  state.log = conversation(12);
  state.log.at(-1).usage = { input: 9_000, output: 20 };
  await engine.assemble(request([], { tokenBudget: 12_000 }));
  state.isAway = true;
  for (const turn of ["1", "2", "3"]) {
    await engine.assemble(request(state.log, { tokenBudget: 12_000 }));
    await engine.commitTurn({ advancementKey: turn, sessionId: "host", sessionKey: KEY });
  }
  assert.equal(swaps(asked).length, 1);
});

test("within a turn whose tools fill the window room is made as often as the host asks for it", async () => {
  const { engine, asked, state } = world();
  state.log = conversation(4);
  const limits = { limits: { promptTokenBudget: 8_000 } };
  await engine.assemble(request([]));
  await engine.assemble(request(state.log, { tokenBudget: 2_500, runtimeSettings: limits }));
  const budget = { sessionId: "host", sessionKey: KEY, tokenBudget: 6_000, currentTokenCount: 7_900, runtimeContext: { trigger: "budget" } };
  for (let times = 0; times < 2; times += 1) {
    const before = swaps(asked).length;
    assert.equal((await engine.compact(budget)).compacted, true);
    assert.equal(swaps(asked).length, before + 1);
    assert.equal(swaps(asked).at(-1).force, true);
  }
  await engine.commitTurn({ advancementKey: "t", sessionId: "host", sessionKey: KEY });
  assert.equal((await engine.compact({ ...budget, currentTokenCount: 900 })).compacted, false);
});

test("what is of this process only is not kept on disk", async () => {
  const { engine, state, folder } = world();
  state.log = conversation(60);
  await engine.assemble(request([]));
  await engine.assemble(request(state.log));
  const [file] = readdirSync(join(folder, "sessions"));
  const kept = Object.keys(JSON.parse(readFileSync(join(folder, "sessions", file), "utf8")));
  for (const name of ["pending", "isContinued", "prompt", "nextSwap", "used", "hasAsked"]) assert.ok(!kept.includes(name), name);
});

test("when the next swap will be asked for is known from the first look on", async () => {
  const { engine, sessions, state } = world();
  state.log = conversation(5);
  await engine.assemble(request(state.log));
  const { swapAtTokens, swapToTokens, tokenRatio } = sessions.of(KEY).nextSwap;
  assert.ok(swapToTokens > 0 && swapToTokens < swapAtTokens && swapAtTokens < 8_000, JSON.stringify(sessions.of(KEY).nextSwap));
  assert.ok(tokenRatio >= 0.6 && tokenRatio <= 2);
});

test("right after a swap, /compact has nothing to do; once something was said it has", async () => {
  const { engine, asked, state } = world();
  state.log = conversation(60);
  await engine.assemble(request([]));
  const { messages } = await engine.assemble(request(state.log));
  const left = estimatedTokens(messages);
  const manual = (currentTokenCount) => engine.compact({ sessionId: "host", sessionKey: KEY, currentTokenCount, runtimeContext: { trigger: "manual" } });
  assert.match((await manual(left + 300)).reason, /nothing to compact|already compacted/);
  assert.match((await manual(left + 700)).reason, /already compacted|nothing to compact/);
  assert.equal(swaps(asked).length, 1);
  assert.equal((await manual(6_000)).compacted, true);
});

test("where a swap is not worth it, the host is told so in its own words, and does not compact by itself", async () => {
  const { engine, state } = world();
  state.log = conversation(60);
  await engine.assemble(request(state.log));
  state.why = "the new context would have 7,000 tokens";
  const answer = await engine.compact({ sessionId: "host", sessionKey: KEY, force: true, currentTokenCount: 7_900 });
  assert.deepEqual([answer.ok, answer.compacted, answer.reason], [true, false, `already compacted: ${state.why}`]);
  assert.equal(state.fellBack, undefined);
});

test("what the model counts corrects the estimate, and both are known after a restart", async () => {
  const { engine, sessions, folder } = world();
  const messages = conversation(30, 2_000);
  for (const [at, message] of messages.entries()) {
    if (message.role === "assistant") message.usage = { input: 5_000 + Math.round(1.4 * estimatedTokens(messages.slice(0, at + 1))), output: 0 };
  }
  for (const turn of [2, 4, 6]) {
    await engine.assemble(request(messages.slice(0, turn), { tokenBudget: 200_000 }));
    await engine.commitTurn({ advancementKey: `${turn}`, sessionId: "host", sessionKey: KEY });
  }
  const real = 5_000 + 1.4 * estimatedTokens(messages.slice(0, 8));
  await engine.assemble(request(messages.slice(0, 8), { tokenBudget: 200_000 }));
  assert.ok(Math.abs(sessions.of(KEY).used / real - 1) < 0.1, `${sessions.of(KEY).used} for ${real}`);
  const after = world(folder);
  const bare = messages.slice(0, 8).map(({ usage: _usage, ...message }) => message);
  await after.engine.assemble(request(bare, { tokenBudget: 200_000 }));
  assert.ok(Math.abs(after.sessions.of(KEY).used / real - 1) < 0.1, `${after.sessions.of(KEY).used} for ${real}`);
});

test("what instructions and tools take is not part of what a swap may fill", async () => {
  const { engine, asked, state } = world();
  const messages = (state.log = conversation(20));
  messages.at(-1).usage = { input: 6_500, output: 20 };
  await engine.assemble(request([]));
  await engine.assemble(request(messages));
  const { body } = asked.find(({ verb }) => verb === "swap");
  assert.ok(body.contextWindow < 5_000, `${body.contextWindow}`);
  assert.ok(body.usedTokens < 3_000, `${body.usedTokens}`);
});

test("a window survives the process", async () => {
  const { engine, state, folder } = world();
  const messages = (state.log = conversation(60));
  await engine.assemble(request([]));
  const before = await engine.assemble(request(messages));
  const after = world(folder);
  const answer = await after.engine.assemble(request(messages));
  assert.deepEqual(answer.messages, before.messages);
  assert.deepEqual(after.asked, []);
  rmSync(folder, { recursive: true });
});

test("where nobody answers, the host's own messages are shown, and the next turns do not ask again at once", async () => {
  const { engine, asked, state, problems } = world();
  const messages = (state.log = conversation(60));
  await engine.assemble(request([]));
  state.isAway = true;
  asked.length = 0;
  assert.deepEqual((await engine.assemble(request(messages))).messages, messages);
  assert.deepEqual((await engine.assemble(request(messages))).messages, messages);
  assert.equal(asked.length, 1);
  assert.ok(problems.includes("a swap failed"));
  const compacted = await engine.compact({ sessionId: "host", sessionKey: KEY, force: true });
  assert.equal(compacted.compacted, false); // outside a host there is nothing to hand it to
  assert.equal(state.fellBack, 1);
});

test("compact takes the context that stands by; the next assembly lays it over the host's messages", async () => {
  const { engine, state } = world();
  const messages = (state.log = conversation(10));
  const compacted = await engine.compact({ sessionId: "host", sessionKey: KEY, force: true, tokenBudget: 8_000, currentTokenCount: 4_000 });
  assert.equal(compacted.compacted, true);
  assert.equal(compacted.result.tokensBefore, 4_000);
  assert.equal(compacted.result.firstKeptEntryId, "id-16");
  const { messages: shown } = await engine.assemble(request(messages));
  assert.deepEqual(shown.slice(2), messages.slice(-4));
});

test("a turn is committed once, and on disk before it is", async () => {
  const { engine, state } = world();
  const turn = { advancementKey: "turn-1", sessionId: "host", sessionKey: KEY, terminal: { agentId: "main" } };
  assert.deepEqual(await engine.commitTurn(turn), { status: "committed" });
  assert.deepEqual(await engine.commitTurn(turn), { status: "duplicate" });
  assert.equal(state.flushed, 0);
  state.isIdle = false; // the provider does not have it yet
  await engine.commitTurn({ ...turn, advancementKey: "turn-2" });
  assert.equal(state.flushed, 1);
});

test("a session begun anew shows nothing of before; one whose transcript is lost goes on", async () => {
  const { engine, state, sessions, asked } = world();
  const messages = (state.log = conversation(60));
  await engine.assemble(request(messages));
  sessions.ended(KEY);
  assert.deepEqual((await engine.assemble(request([]))).messages, []);
  assert.equal(asked.filter(({ verb }) => verb === "hooks/session-start").length, 0);

  const elsewhere = world();
  elsewhere.state.context = { generation: 3, messages: [{ role: "assistant", content: "I recall." }, wireMessage("id-9", messages[9], "host")] };
  const { messages: shown } = await elsewhere.engine.assemble(request([]));
  assert.equal(shown[1].content[0].text, "I recall.");
  assert.equal(shown.at(-1).timestamp, messages[9].timestamp);
});

test("the first call ever, which is given half the window, decides nothing; after a restart the window is known", async () => {
  const { engine, asked, state, folder } = world();
  const messages = (state.log = conversation(40));
  await engine.assemble(request(messages, { tokenBudget: 3_000 }));
  assert.deepEqual(asked, []);
  await engine.assemble(request(messages));
  assert.deepEqual(asked, []); // 40 short turns are nothing for 8,000 tokens
  await engine.commitTurn({ advancementKey: "t", sessionId: "host", sessionKey: KEY });
  const after = world(folder);
  after.state.log = messages;
  await after.engine.assemble(request(messages, { tokenBudget: 3_000 }));
  await after.engine.assemble(request(messages, { tokenBudget: 3_000 }));
  assert.deepEqual(after.asked, []);
});

test("where a conversation is small already, compacting says so", async () => {
  const { engine, state, asked } = world();
  await engine.assemble(request((state.log = conversation(2))));
  const answer = await engine.compact({ sessionId: "host", sessionKey: KEY, force: true });
  assert.deepEqual([answer.ok, answer.compacted], [true, false]);
  assert.match(answer.reason, /^nothing to compact/);
  assert.deepEqual(asked, []);
  const refused = { sessionId: "host", sessionKey: KEY, force: true, runtimeContext: { trigger: "overflow" } };
  assert.equal((await engine.compact(refused)).compacted, true); // the model's provider knows better
});

test("what the running turn has seen so far counts, and a swap that just was is not repeated", async () => {
  const { engine, asked, state } = world();
  const messages = (state.log = conversation(30));
  const limits = { runtimeSettings: { limits: { promptTokenBudget: 8_000 } } };
  await engine.assemble(request(messages, { ...limits, tokenBudget: 8_000 }));
  assert.equal(asked.length, 0);
  await engine.assemble(request(messages, { ...limits, tokenBudget: 4_000 })); // large results of tools
  assert.equal(asked.filter(({ verb }) => verb === "swap").length, 1);
  const again = await engine.compact({ sessionId: "host", sessionKey: KEY, force: true, currentTokenCount: 800 });
  assert.equal(again.compacted, false);
});

test("without a running service the host's own way is taken", async () => {
  const { engine: make } = await import("../dist/engine.js");
  const idle = make(() => undefined);
  const messages = conversation(2);
  assert.deepEqual((await idle.assemble(request(messages))).messages, messages);
  assert.match((await idle.compact({ sessionId: "host", sessionKey: KEY })).reason, /host's own compaction failed/);
});

test("another transcript under the same key is not filled with the one before", async () => {
  const { engine, asked, state } = world();
  state.context = { generation: 1, messages: [wireMessage("id-1", conversation(1)[0], "host")] };
  await engine.assemble(request((state.log = conversation(3))));
  const { messages } = await engine.assemble(request([], { sessionId: "the next heartbeat" }));
  assert.deepEqual(messages, []);
  assert.equal(asked.filter(({ verb }) => verb === "hooks/session-start").length, 0);
});

test("nothing that it is given makes it throw", async () => {
  const { engine } = world();
  const odd = [{ role: "user" }, { role: "custom", content: 7 }, { role: "assistant", content: [{ type: "thinking" }, {}] }, {}];
  assert.deepEqual((await engine.assemble(request(odd))).messages, odd);
  assert.equal((await engine.assemble(request(odd, { sessionKey: undefined }))).messages.length, 4);
  assert.equal((await engine.commitTurn({ advancementKey: "a", sessionId: "host" })).status, "committed");
  assert.ok(await engine.compact({ sessionId: "host", sessionKey: KEY }));
});
