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
  const transcript = [];
  const write = (number) => transcript.push({ id: `id-${number}`, message: message(number) });
  for (let number = 1; number <= written; number += 1) write(number);
  const known = new Set(stored.map((number) => `id-${number}`));
  const state = { asked: 0, read: 0, room, isBroken: false, isReplaced: false };
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
      state.asked += body.ids.length;
      if (isAway) throw new Error("away");
      return { missing: body.ids.filter((id) => !known.has(id)) };
    },
  };
  async function* readTranscript(_place, cursor) {
    if (state.isBroken) throw new Error("no reader here");
    const isFromTheBeginning = state.isReplaced;
    let at = state.isReplaced ? 0 : Number(cursor ?? 0);
    state.isReplaced = false;
    do {
      const entries = transcript.slice(at, at + 3);
      at += entries.length;
      state.read += entries.length;
      yield { entries, cursor: String(at), isFromTheBeginning };
      await new Promise((resolve) => setImmediate(resolve));
    } while (at < transcript.length);
  }
  const report = { captured() {}, problem: (what) => problems.push(what) };
  const taken = capture(outbox, () => {}, provider, readTranscript, report);
  return { taken, sent, problems, transcript, write, state };
}

const ids = (from, to) => Array.from({ length: to - from + 1 }, (_, at) => `id-${from + at}`);

test("messages go out in the order of the transcript, those too that the host says nothing of", async () => {
  const { taken, sent, write } = world();
  for (const number of [1, 2]) {
    write(number);
    taken.take(update(number));
  }
  write(3); // the result of a tool
  write(4);
  taken.take(update(4));
  taken.take(update(4));
  await taken.settled(PLACE.sessionKey, 1_000);
  assert.deepEqual(sent, ids(1, 4));
});

test("what was read is not read again, however long the session is", async () => {
  const { taken, sent, write, state } = world({ written: 50, stored: Array.from({ length: 50 }, (_, at) => at + 1) });
  taken.take(update(50));
  await taken.settled(PLACE.sessionKey, 1_000);
  assert.equal(state.asked, 50);
  state.read = 0;
  for (let number = 51; number <= 60; number += 1) {
    write(number);
    taken.take(update(number));
    await taken.settled(PLACE.sessionKey, 1_000);
  }
  assert.deepEqual(sent, ids(51, 60));
  assert.equal(state.read, 10);
  assert.equal(state.asked, 50);
});

test("a session met in its middle is compared from its beginning, and what is missing goes first", async () => {
  const { taken, sent, write } = world({ written: 8, stored: [1, 2, 5] });
  taken.take(update(8));
  write(9);
  taken.take(update(9)); // while it is read
  await taken.settled(PLACE.sessionKey, 1_000);
  assert.deepEqual(sent, ["id-3", "id-4", ...ids(6, 9)]);
});

test("a transcript that the host replaced is compared again", async () => {
  const { taken, sent, write, state } = world({ written: 4 });
  await taken.read(PLACE);
  assert.deepEqual(sent, ids(1, 4));
  write(5);
  state.isReplaced = true;
  await taken.read(PLACE);
  assert.equal(state.asked, 9);
});

test("where nobody answers, all is sent: what is known is not stored twice", async () => {
  const { taken, sent } = world({ written: 4, stored: [1, 2], isAway: true });
  await taken.read(PLACE);
  assert.deepEqual(sent, ids(1, 4));
});

test("where the transcript cannot be read, what was told is taken, and compared later", async () => {
  const { taken, sent, problems, write, state } = world({ written: 2, stored: [1] });
  state.isBroken = true;
  taken.take(update(1));
  await taken.settled(PLACE.sessionKey, 1_000);
  assert.deepEqual(sent, ["id-1"]);
  assert.equal(problems.length, 1);
  state.isBroken = false;
  write(3);
  taken.take(update(3));
  await taken.settled(PLACE.sessionKey, 1_000);
  assert.deepEqual(sent, ids(1, 3));
});

test("what a full outbox turned away is sent when there is room", async () => {
  const { taken, sent, state, problems } = world({ written: 5, room: 2 });
  await taken.read(PLACE);
  assert.deepEqual(sent, ids(1, 2));
  assert.equal(problems.length, 1);
  state.room = Infinity;
  await taken.read(PLACE);
  assert.deepEqual([...new Set(sent)], ids(1, 5));
});

test("what the host keeps off its disk is not recorded", async () => {
  const { taken, sent } = world({ written: 1 });
  const hidden = { ...PLACE, sessionKey: "agent:main:dashboard:incognito-7f" };
  taken.take(update(1, hidden));
  await taken.settled(hidden.sessionKey, 1_000);
  assert.deepEqual(sent, []);
  assert.equal(isPrivate("agent:main:incognito-fans"), false);
});
