import assert from "node:assert/strict";
import { test } from "node:test";
import { registerCommands } from "../dist/commands.js";
import { away, entryOf, fakeHost, fakeMemory, statusOf } from "./fake-memory.js";

const STATE = {
  agentId: "main",
  topics: [
    {
      label: "gateway port",
      mentions: 2,
      total: 2,
      freshness: 1,
      isFixated: true,
      isStale: false,
      firstAt: "2026-11-11T10:00:00Z",
      lastAt: "2026-11-12T10:00:00Z",
      sessions: 1,
    },
  ],
  anchors: [
    {
      kind: "identity",
      text: "My cat is called Ada.",
      sessionId: "s",
      seq: 1,
      at: "2026-11-10T10:00:00Z",
      times: 1,
      isFresh: false,
    },
  ],
  working: [
    {
      sessionId: "s",
      lastAt: "2026-11-10T10:00:00Z",
      records: [{ kind: "goal", text: "Move the gateway", firstSeq: 1, lastSeq: 1, at: "2026-11-10T10:00:00Z" }],
    },
  ],
  session: {
    sessionId: "s",
    exchanges: 1,
    startedAt: "2026-11-10T10:00:00Z",
    lastAt: "2026-11-10T10:00:00Z",
    gap: "new",
  },
};

function world(answers = {}, report = {}) {
  const memory = fakeMemory({ status: ({ agentId }) => statusOf(agentId), ...answers });
  const host = fakeHost();
  registerCommands(
    host.api,
    () => memory,
    () => ["main"],
    () => report,
  );
  const say = async (text, context = { agentId: "main", sessionKey: "agent:main:chat" }) => {
    const [name, args] = text.slice(1).split(/ (.*)/s);
    return (await host.commands[name].handler({ ...context, args })).text;
  };
  return { memory, host, say };
}

test("the names are such as the host takes, and only authorised senders may use them", () => {
  const { host } = world();
  assert.deepEqual(Object.keys(host.commands).sort(), [
    "offbook",
    "swap-cross",
    "swap-dashboard",
    "swap-promote",
    "swap-status",
  ]);
  for (const command of Object.values(host.commands)) {
    assert.match(command.name, /^[a-z][a-z0-9_-]*$/);
    assert.ok(command.description.length > 0);
    assert.equal(command.requireAuth, true);
  }
});

test("a command is of the agent whose chat it is", async () => {
  const { memory, say } = world();
  assert.match(await say("/swap-status", { agentId: "research", sessionKey: "agent:research:x" }), /Agent research/);
  await say("/swap-status", { sessionKey: "agent:ops:x" });
  assert.deepEqual(memory.calls, [
    ["status", { agentId: "research" }],
    ["status", { agentId: "ops" }],
  ]);
});

test("no command throws", async () => {
  const verbs = ["status", "pin", "cross", "recall", "topics", "state", "ping"];
  const { say } = world(Object.fromEntries(verbs.map((verb) => [verb, away()])));
  for (const text of [
    "/swap-status",
    "/swap-dashboard",
    "/swap-promote x",
    "/swap-cross on",
    "/offbook",
    "/offbook recall x",
    "/offbook topics",
    "/offbook state",
    "/offbook doctor",
  ]) {
    assert.match(await say(text), /nobody answers.*Start it with `offbook serve`/, text);
  }
});

test("pins by keyword, by session, and back", async () => {
  const { memory, say } = world({
    pin: { changed: 2, entryIds: ["m1", "m2"] },
    unpin: { changed: 1, entryIds: ["m1"] },
  });
  assert.match(await say("/swap-promote gateway port"), /Pinned 2 messages with “gateway port”/);
  assert.match(await say("/swap-promote session:agent:main:main"), /of session agent:main:main/);
  assert.match(await say("/swap-promote unpin session:agent:main:main"), /Unpinned 1 message/);
  assert.match(await say("/swap-promote"), /Say what to pin/);
  assert.match(await say("/swap-promote session:"), /Say what to pin/);
  assert.deepEqual(memory.calls, [
    ["pin", { agentId: "main", keyword: "gateway port" }],
    ["pin", { agentId: "main", sessionId: "agent:main:main" }],
    ["unpin", { agentId: "main", sessionId: "agent:main:main" }],
  ]);
});

test("the same under one name", async () => {
  const { say, memory } = world({
    pin: { changed: 2, entryIds: ["m1", "m2"] },
    unpin: { changed: 1, entryIds: ["m1"] },
    cross: { enabled: true, agents: ["ops"] },
  });
  assert.match(await say("/offbook pin gateway port"), /Pinned 2 messages/);
  assert.match(await say("/offbook Unpin session:agent:main:main"), /Unpinned 1 message/);
  for (const words of ["pin", "unpin"]) assert.match(await say(`/offbook ${words}`), /Say what to pin or unpin: \/offbook pin/);
  assert.match(await say("/offbook cross on"), /is on for main/);
  assert.equal(await say("/offbook dashboard"), await say("/swap-dashboard"));
  assert.match(await say("/offbook constructor"), /There is no \/offbook/);
  assert.deepEqual(memory.calls.filter(([verb]) => verb !== "status").map(([verb]) => verb), ["pin", "unpin", "cross"]);
});

test("cross search on, off, and how it is", async () => {
  const { memory, say } = world({
    cross: ({ enabled }) => ({ enabled: enabled ?? true, agents: enabled === false ? [] : ["ops"] }),
  });
  assert.match(await say("/swap-cross ON"), /is on for main: open to each other now: main, ops/);
  assert.match(await say("/swap-cross off"), /is off for main/);
  assert.match(await say("/swap-cross"), /is on/);
  assert.match(await say("/swap-cross perhaps"), /Say on, off or status/);
  assert.deepEqual(
    memory.calls.map(([, body]) => body.enabled),
    [true, false, undefined],
  );
});

test("recall tells a person, and not the agent", async () => {
  const { memory, say } = world({ recall: { entries: [entryOf()], tookMs: 1, degraded: [] } });
  const text = await say("/offbook recall the  gateway port");
  assert.equal(memory.calls[0][1].query, "the  gateway port");
  assert.match(text, /^In the memory of main:\n- user \(main\), .*“Correction/);
  assert.doesNotMatch(text, /you/i);
  assert.match(await say("/offbook recall"), /Say what to look for/);
});

test("topics and state", async () => {
  const { memory, say } = world({ state: STATE, topics: { topics: STATE.topics } });
  assert.match(await say("/offbook topics"), /^- “gateway port”: 2 mentions, last .* ago, keeps coming back\n— Offbook$/);
  const text = await say("/offbook state");
  assert.match(text, /This session: 1 exchange, since 2026-11-10 10:00 UTC\./);
  assert.match(text, /- goal: “Move the gateway”/);
  assert.match(text, /- identity \(2026-11-10 10:00 UTC\): “My cat is called Ada\.”/);
  assert.deepEqual(memory.calls[1], ["state", { agentId: "main", sessionId: "agent:main:chat" }]);
  const empty = world({ state: { agentId: "main", topics: [], anchors: [], working: [] }, topics: { topics: [] } });
  assert.match(await empty.say("/offbook state"), /Nothing is noted/);
  assert.match(await empty.say("/offbook topics"), /No topics yet/);
});

test("the doctor says what is wrong and what to do", async () => {
  const well = world(
    { ping: { ok: true } },
    {
      level: "recall",
      startedAt: "2026-11-15T19:40:00Z",
      capture: { messages: 4, delivered: 4, waiting: 0, turnedAway: 0, refused: 0 },
      permissions: { conversation: true },
    },
  );
  const text = await well.say("/offbook doctor");
  assert.match(text, /✓ provider: answers at unix:\/somewhere\/offbook\.sock/);
  assert.match(text, /✓ capture: 4 of 4 delivered/);
  assert.doesNotMatch(text, /✗|!/);
  assert.match(await world({ ping: { ok: true } }, { level: "recall" }).say("/offbook doctor"), /✗ service: does not run/);
  const ill = world(
    { ping: away() },
    {
      level: "off",
      capture: { messages: 4, delivered: 1, waiting: 1, turnedAway: 1, refused: 1 },
      permissions: { conversation: false },
      problems: [{ at: "2026-11-15T19:43:54Z", what: "capture", detail: "the outbox is full" }],
    },
  );
  const told = await ill.say("/offbook doctor");
  assert.match(told, /✗ provider: .*offbook serve/);
  assert.match(told, /level: off, so nothing is recorded/);
  assert.match(told, /✗ permission: .*allowConversationAccess true/);
  assert.match(told, /✗ capture: 1 of 4 delivered, 1 waiting, 2 not taken/);
  assert.match(told, /! 2026-11-15 19:43 UTC capture: the outbox is full/);
});

test("level, help, and what there is not", async () => {
  const { say } = world({}, { level: "capture" });
  assert.match(await say("/offbook level"), /Level: capture\.\n.*\n.*plugins\.entries\.offbook\.config\.level/s);
  assert.match(await say("/offbook"), /Level: capture/);
  assert.match(await say("/offbook HELP"), /\/swap-promote/);
  assert.match(await say("/offbook frobnicate now"), /There is no \/offbook “frobnicate”/);
});
