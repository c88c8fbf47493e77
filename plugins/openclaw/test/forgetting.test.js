import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { engine } from "../dist/engine.js";
import { openForgetting } from "../dist/forgetting.js";
import { wireMessage } from "../dist/messages.js";
import { openSessions } from "../dist/sessions.js";
import { registerTurns } from "../dist/turns.js";
import { BOUNDARY } from "../dist/window.js";
import { folderFor } from "./help.js";

const KEY = "agent:main:chat";
const SECRET = "the blue heron";
const request = (messages) => ({ sessionId: "host", sessionKey: KEY, messages, tokenBudget: 8_000, model: "m" });

function conversation(turns) {
  const turn = (at) => [
    { role: "user", content: `question ${at} ${"x".repeat(400)}`, timestamp: 1_000_000 + at * 10 },
    { role: "assistant", content: [{ type: "text", text: `answer ${at}` }], timestamp: 1_000_005 + at * 10 },
  ];
  return Array.from({ length: turns }, (_, at) => turn(at)).flat();
}

/** Turns, engine, sessions and what is forgotten, as they run together; the provider is `state`. */
function world(folder, level = "hot-swap") {
  const asked = [];
  const warnings = [];
  const turns = [];
  const hooks = {};
  const state = { memory: SECRET, recall: "", forgets: undefined, log: [], answer: undefined };
  const swap = (body) => {
    const kept = state.log.slice(-4).map((message, at) => wireMessage(`id-${at}`, message, "host"));
    const memory = { role: "assistant", content: `I recall ${state.memory}` };
    return { swapped: true, reason: "", generation: asked.length, messages: [memory, ...kept], tokensBefore: body.usedTokens, tokensAfter: 9 };
  };
  const provider = {
    async call(verb, body, deadlineMs) {
      asked.push({ verb, body, deadlineMs });
      const own = await state.answer?.(verb, body);
      if (own) return own;
      if (verb === "swap") return swap(body);
      if (verb === "status") return { agentId: body.agentId, forgets: state.forgets };
      if (verb === "hooks/session-start") return null;
      return { memory: state.memory, recall: state.recall, forgets: state.forgets };
    },
  };
  const sessions = openSessions(join(folder, "sessions"), (text) => warnings.push(text));
  const forgetting = openForgetting(join(folder, "forgets.json"), sessions, (text) => warnings.push(text));
  const runtime = {
    settings: { level, turnDeadlineMs: 600, callDeadlineMs: 1_000 },
    runs: new Map(),
    provider,
    sessions,
    forgetting,
    report: { turn: (note) => turns.push(note), assembled() {}, swapped() {}, problem: (what, detail) => warnings.push(`${what}: ${detail}`) },
    capture: { settled: async () => true },
    courier: { idle: async () => true },
    log: { info() {} },
  };
  registerTurns({ on: (name, handler) => (hooks[name] = handler) }, () => runtime);
  const prompted = (sessionKey = KEY, agentId = undefined) =>
    hooks.before_prompt_build({ prompt: "what now?" }, { runId: "r", sessionKey, sessionId: "host", agentId });
  const verbs = (verb) => asked.filter((one) => one.verb === verb).length;
  return { engine: engine(() => runtime), sessions, forgetting, provider, prompted, asked, verbs, state, turns, warnings, folder };
}

function bytesIn(folder) {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map((file) => readFileSync(join(file.parentPath, file.name), "utf8")).join("\n");
}

/** A session that runs on a window. */
async function windowed(t, level) {
  const one = world(folderFor(t), level);
  const messages = (one.state.log = conversation(60));
  await one.prompted();
  await one.engine.assemble(request([]));
  const shown = (await one.engine.assemble(request(messages))).messages;
  assert.equal(shown.length, 6);
  assert.match(JSON.stringify(shown), /blue heron/);
  assert.match(bytesIn(one.folder), /blue heron/);
  return { ...one, messages, shown };
}

test("what was forgotten is in no file and no context from the next turn on, which runs on a new window", async (t) => {
  const one = await windowed(t);
  Object.assign(one.state, { memory: "of other birds", forgets: 1 });
  await one.prompted();
  assert.doesNotMatch(bytesIn(one.folder), /blue heron/);
  const swaps = one.verbs("swap");
  const { messages: shown } = await one.engine.assemble(request(one.messages));
  assert.equal(one.verbs("swap"), swaps + 1, "the host's messages alone would be too many");
  assert.equal(shown[0].content, BOUNDARY);
  assert.match(shown[1].content[0].text, /of other birds/);
  assert.deepEqual(shown.slice(2), one.messages.slice(-4));
  assert.deepEqual((await one.engine.assemble(request(one.messages))).messages, shown);
  assert.equal(one.verbs("swap"), swaps + 1);
  assert.deepEqual(one.warnings, []);
});

test("the same where the host puts its context together before and after the word comes", async (t) => {
  const one = await windowed(t);
  const first = (await one.engine.assemble(request(one.messages))).messages;
  Object.assign(one.state, { memory: "of other birds", forgets: 1 });
  await one.prompted();
  const { messages: second } = await one.engine.assemble(request(first)); // its own answer comes back to it
  assert.doesNotMatch(JSON.stringify(second), /blue heron/);
  assert.deepEqual(second.slice(2), one.messages.slice(-4));
  assert.deepEqual((await one.engine.assemble(request(one.messages))).messages, second);
});

test("a conversation that fits is not without its window either, and one without a window is not swapped", async (t) => {
  const one = await windowed(t);
  const short = one.messages.slice(-10);
  Object.assign(one.state, { memory: "of other birds", forgets: 1, log: short });
  await one.prompted();
  await one.engine.assemble(request(short));
  assert.equal(one.verbs("swap"), 2);

  const other = world(folderFor(t));
  await other.prompted();
  Object.assign(other.state, { memory: "of other birds", forgets: 1 });
  await other.prompted();
  const { messages } = await other.engine.assemble(request(short));
  assert.equal(other.verbs("swap"), 0);
  assert.deepEqual(messages.slice(2), short);
  assert.doesNotMatch(JSON.stringify(messages), /blue heron/);
});

test("a new window that nobody gives is asked for later; the host's own messages are shown until then", async (t) => {
  const one = await windowed(t);
  Object.assign(one.state, { memory: "of other birds", forgets: 1 });
  await one.prompted();
  one.state.answer = (verb) => {
    if (verb === "swap") throw new Error("away");
  };
  const untouched = (await one.engine.assemble(request(one.messages))).messages;
  assert.deepEqual(untouched.slice(2), one.messages);
  // Another process: still owed.
  const after = world(one.folder);
  Object.assign(after.state, { memory: "of other birds", forgets: 1, log: one.messages });
  assert.deepEqual((await after.engine.assemble(request(one.messages))).messages.slice(2), one.messages.slice(-4));
  assert.equal(after.verbs("swap"), 1);
  // One that has nothing to give is not asked each time.
  const third = await windowed(t);
  third.state.forgets = 1;
  await third.prompted();
  third.state.answer = (verb) => (verb === "swap" ? { swapped: false, reason: "nothing is known", messages: [] } : undefined);
  const swaps = third.verbs("swap");
  for (let look = 0; look < 3; look += 1) {
    await third.engine.assemble(request(conversation(3)));
    third.sessions.of(KEY).restUntil = 0;
  }
  assert.equal(third.verbs("swap"), swaps + 1);
});

test("the section that came with the word is asked for again, within the same deadline", async (t) => {
  const one = world(folderFor(t), "recall");
  await one.prompted();
  one.state.forgets = 1;
  const answers = [SECRET, "of other birds"];
  one.state.answer = () => ({ memory: answers[0], recall: answers.shift(), forgets: 1 });
  const before = one.asked.length;
  assert.deepEqual(await one.prompted(), { appendContext: "of other birds", appendSystemContext: "of other birds" });
  assert.equal(one.asked.length, before + 2);
  for (const { deadlineMs, body } of one.asked) assert.ok(deadlineMs <= 600 && body.deadlineMs <= 500);
  assert.doesNotMatch(bytesIn(one.folder), /blue heron/);
  answers.push("the same as ever");
  await one.prompted();
  assert.equal(one.asked.length, before + 3);
});

test("a turn during which more and more is forgotten goes on without memory", async (t) => {
  const one = world(folderFor(t), "recall");
  let forgets = 1;
  one.state.answer = () => ({ memory: SECRET, recall: SECRET, forgets: forgets++ });
  assert.deepEqual(await one.prompted(), {});
  assert.match(one.turns.at(-1).error, /forgotten/);
  assert.doesNotMatch(bytesIn(one.folder), /blue heron/);
});

test("a first count is news where something was forgotten before anybody counted, and is not where nothing was", async (t) => {
  const none = await windowed(t);
  none.state.forgets = 0;
  await none.prompted();
  assert.ok(none.sessions.of(KEY).window);
  assert.equal(none.verbs("prepareTurn"), 2);
  const some = await windowed(t); // an agent is not counted before its first time
  Object.assign(some.state, { memory: "", forgets: 1 });
  await some.prompted();
  assert.equal(some.sessions.of(KEY).window, undefined);
});

test("the count outlives the process, for its user alone; no count changes nothing; a torn file costs one new window", async (t) => {
  const one = await windowed(t);
  one.state.forgets = 3;
  await one.prompted();
  const path = join(one.folder, "forgets.json");
  assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), { main: 3 });
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(one.folder).sort(), ["forgets.json", "sessions"]);
  for (const [forgets, isNews] of [[3, false], [undefined, false], [null, false], [4, true], [2, true]]) {
    const after = world(one.folder);
    assert.equal(after.forgetting.told("main", forgets), isNews, String(forgets));
  }
  for (const torn of ['{"main":', "null", "[]", '{"main":"3"}', ""]) {
    writeFileSync(path, torn);
    assert.equal(world(one.folder).forgetting.told("main", 3), true, torn);
  }
  assert.equal(world(one.folder).forgetting.told("__proto__", 1), true);
  assert.equal(world(one.folder).forgetting.told("__proto__", 1), false);
});

test("all sessions of the agent, whether in use or not, and none of another's", async (t) => {
  const folder = folderFor(t);
  const before = world(folder);
  const keys = { mine: "agent:main:old", other: "agent:bob:old", odd: "global", prefixed: "agent:main2:old" };
  for (const sessionKey of Object.values(keys)) {
    const state = before.sessions.of(sessionKey, "host");
    Object.assign(state, { memory: SECRET, contextWindow: 8_000, committed: ["turn-1"] });
    state.handed = { generation: 1, at: 1, messages: [{ role: "assistant", content: SECRET }] };
    before.sessions.save(state);
  }
  writeFileSync(join(folder, "sessions", "0000.json.new"), `{"memory": "${SECRET}`); // of one that was killed
  writeFileSync(join(folder, "sessions", "0001.json"), `{"memory": "${SECRET}`);
  const after = world(folder);
  assert.deepEqual(after.sessions.agents().sort(), ["bob", "main", "main2"]);
  const used = after.sessions.of(keys.mine, "host");
  const unsaved = after.sessions.of("agent:main:unsaved", "host");
  unsaved.memory = SECRET;
  assert.equal(after.forgetting.told("Main", 1), true); // as the host spells it, which is not how its keys do
  assert.deepEqual([used.memory, used.handed, used.isSwapOwed, unsaved.memory], ["", undefined, true, ""]);
  const again = openSessions(join(folder, "sessions"), assert.fail);
  for (const [name, isKept] of [["mine", false], ["odd", false], ["other", true], ["prefixed", true]]) {
    const { memory, handed, isSwapOwed, committed, contextWindow } = again.of(keys[name], "host");
    assert.deepEqual([memory !== "", handed !== undefined, isSwapOwed], [isKept, isKept, !isKept], name);
    assert.deepEqual([committed, contextWindow], [["turn-1"], 8_000], name);
  }
  assert.equal(readdirSync(join(folder, "sessions")).length, 4);
  assert.deepEqual(again.agents().sort(), ["bob", "main2"]);
});

test("what cannot be removed is told, and tried again by the next process", { skip: process.getuid?.() === undefined }, async (t) => {
  const one = await windowed(t);
  const [name] = readdirSync(join(one.folder, "sessions"));
  const blocked = join(one.folder, "sessions", `${name}.new`);
  mkdirSync(join(blocked, "x"), { recursive: true }); // it can neither be written over nor removed as a file
  assert.equal(one.forgetting.told("main", 1), true);
  assert.equal(existsSync(join(one.folder, "sessions", name)), false, "what cannot be written again is removed");
  assert.equal(existsSync(join(one.folder, "forgets.json")), false);
  assert.match(one.warnings.at(-1), /remove it by hand/);
  assert.equal(one.forgetting.told("main", 1), false, "not at every turn");
  assert.equal(world(one.folder).forgetting.told("main", 1), true);
});

test("what was on the way while something was forgotten is asked for again", async (t) => {
  const one = await windowed(t);
  one.state.forgets = 1;
  await one.prompted();
  const swaps = one.verbs("swap");
  one.state.answer = (verb) => {
    if (verb !== "swap" || one.verbs("swap") > swaps + 1) return;
    one.forgetting.told("main", 2);
    one.state.memory = "of other birds";
    return { swapped: true, generation: 9, messages: [{ role: "assistant", content: SECRET }], tokensBefore: 1, tokensAfter: 1 };
  };
  one.sessions.of(KEY).memory = "";
  const { messages } = await one.engine.assemble(request(one.messages));
  assert.equal(one.verbs("swap"), swaps + 2);
  assert.doesNotMatch(JSON.stringify(messages) + bytesIn(one.folder), /blue heron/);

  const lost = world(folderFor(t)); // a session that is picked up
  lost.state.answer = (verb) => {
    if (verb !== "hooks/session-start") return;
    const isFirst = lost.verbs(verb) === 1;
    if (isFirst) lost.forgetting.told("main", 1);
    return { generation: 1, messages: [{ role: "assistant", content: isFirst ? SECRET : "of other birds" }] };
  };
  const { messages: pickedUp } = await lost.engine.assemble(request([]));
  assert.doesNotMatch(JSON.stringify(pickedUp) + bytesIn(lost.folder), /blue heron/);
  assert.match(JSON.stringify(pickedUp), /of other birds/);
});

test("an agent that is silent is asked about; one of whom nothing is kept is not", async (t) => {
  const one = await windowed(t);
  one.state.forgets = 0; // of a provider that has not counted yet
  assert.equal(await one.forgetting.ask(one.provider), true);
  assert.match(bytesIn(one.folder), /blue heron/);
  one.state.forgets = 1;
  assert.equal(await one.forgetting.ask(one.provider), true);
  assert.doesNotMatch(bytesIn(one.folder), /blue heron/);
  assert.equal(one.verbs("status"), 2);
  await one.forgetting.ask(one.provider);
  assert.equal(one.verbs("status"), 2);
  one.sessions.of(KEY).memory = "of other birds";
  one.state.forgets = 0; // it was started again
  await one.forgetting.ask(one.provider);
  assert.equal(one.sessions.of(KEY).memory, "of other birds");
  const away = await windowed(t);
  away.state.answer = () => Promise.reject(new Error("nobody there"));
  assert.equal(await away.forgetting.ask(away.provider), false);
});
