import assert from "node:assert/strict";
import { test } from "node:test";
import { capture, isPrivate } from "../dist/capture.js";

const PLACE = { agentId: "main", sessionKey: "agent:main:chat", sessionId: "one" };

function message(number) {
  return { role: "user", content: `message ${number}`, timestamp: 1_700_000_000_000 + number };
}

function update(number, place = PLACE) {
  return { target: place, message: message(number), messageId: `id-${number}`, messageSeq: number };
}

/** A host with a transcript, and a provider that has stored some of it. */
function world({ written = 0, stored = [], room = Infinity, isAway = false } = {}) {
  const sent = [];
  const problems = [];
  const transcript = Array.from({ length: written }, (_, at) => ({ id: `id-${at + 1}`, message: message(at + 1) }));
  const known = new Set(stored.map((number) => `id-${number}`));
  const state = { reads: 0, room };
  const outbox = {
    add(item) {
      if (sent.length >= state.room) return false;
      sent.push(item.body.message.id);
      return true;
    },
  };
  const provider = {
    async call(verb, body) {
      assert.equal(verb, "missing");
      if (isAway) throw new Error("away");
      return { missing: body.ids.filter((id) => !known.has(id)) };
    },
  };
  async function* readTranscript() {
    state.reads += 1;
    for (let at = 0; at < transcript.length; at += 3) yield transcript.slice(at, at + 3);
  }
  const report = { captured() {}, problem: (what) => problems.push(what) };
  const taken = capture(outbox, () => {}, provider, readTranscript, report);
  return { taken, sent, problems, transcript, state };
}

const ids = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => `id-${from + at}`);

test("messages go out in the order they are written, and each once however often it is told", () => {
  const { taken, sent, state } = world();
  for (const number of [1, 1, 2, 3, 3, 3, 4]) taken.take(update(number));
  assert.deepEqual(sent, ids(1, 4));
  assert.equal(state.reads, 0);
});

test("a session met in its middle is read from its beginning, and what is missing goes first", async () => {
  const { taken, sent, transcript } = world({ written: 8, stored: [1, 2, 5] });
  taken.take(update(8));
  transcript.push({ id: "id-9", message: message(9) });
  taken.take(update(9)); // while it is read
  assert.equal(await taken.settled(PLACE.sessionKey, 1_000), true);
  assert.deepEqual(sent, ["id-3", "id-4", ...ids(6, 9)]);
});

test("a number that is missing between two messages is looked for", async () => {
  const { taken, sent, state } = world({ written: 5 });
  taken.take(update(1));
  taken.take(update(5));
  await taken.settled(PLACE.sessionKey, 1_000);
  assert.equal(state.reads, 1);
  assert.deepEqual(sent, ids(1, 5));
});

test("an update without its message is looked up", async () => {
  const { taken, sent } = world({ written: 2 });
  taken.take({ target: PLACE });
  await taken.settled(PLACE.sessionKey, 1_000);
  assert.deepEqual(sent, ids(1, 2));
});

test("where nobody answers, all is sent: what is known is not stored twice", async () => {
  const { taken, sent } = world({ written: 4, stored: [1, 2], isAway: true });
  taken.take(update(4));
  await taken.settled(PLACE.sessionKey, 1_000);
  assert.deepEqual(sent, ids(1, 4));
});

test("what a full outbox turned away is sent when there is room", async () => {
  const { taken, sent, state, problems, transcript } = world({ room: 2 });
  for (const number of [1, 2, 3]) {
    transcript.push({ id: `id-${number}`, message: message(number) });
    taken.take(update(number));
  }
  assert.deepEqual(sent, ids(1, 2));
  assert.equal(problems.length, 1);
  state.room = Infinity;
  transcript.push({ id: "id-4", message: message(4) });
  taken.take(update(4));
  await taken.settled(PLACE.sessionKey, 1_000);
  assert.deepEqual(sent, ids(1, 4));
});

test("a new transcript under the same key starts from its own beginning", () => {
  const { taken, sent } = world();
  taken.take(update(1));
  taken.take({ ...update(1, { ...PLACE, sessionId: "two" }), messageId: "other-1" });
  assert.deepEqual(sent, ["id-1", "other-1"]);
});

test("what the host keeps off its disk is not recorded", () => {
  const { taken, sent } = world();
  const hidden = { ...PLACE, sessionKey: "agent:main:dashboard:incognito-7f" };
  taken.take(update(1, hidden));
  assert.deepEqual(sent, []);
  assert.equal(isPrivate("agent:main:incognito-fans"), false);
});
