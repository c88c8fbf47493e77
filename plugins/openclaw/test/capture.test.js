import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { capture, GONE, isPrivate } from "../dist/capture.js";
import { openCursors } from "../dist/cursors.js";
import { folderFor } from "./help.js";

const PLACE = { agentId: "main", sessionKey: "agent:main:chat", sessionId: "one" };

function message(number) {
  return { role: "user", content: `message ${number}`, timestamp: 1_700_000_000_000 + number };
}

function update(number, place = PLACE) {
  return { target: place, message: message(number), messageId: `id-${number}`, messageSeq: number };
}

/** A host with a transcript, and a provider that has stored some of it. */
function world({ written = 0, stored = [], room = Infinity, isAway = false, path = "/dev/null/cursors.json" } = {}) {
  const sent = [];
  const problems = [];
  const transcript = [];
  const write = (number) => transcript.push({ id: `id-${number}`, message: message(number) });
  for (let number = 1; number <= written; number += 1) write(number);
  const known = new Set(stored.map((number) => `id-${number}`));
  const state = { delivered: 0, asked: 0, read: 0, room, isBroken: false, isGone: false, isReplaced: false, places: [] };
  const outbox = {
    add(item) {
      if (sent.length >= state.room) return false;
      sent.push(item.body.message.id);
      return true;
    },
    get bytes() {
      return sent.length - state.delivered;
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
  async function* readTranscript(place, cursor) {
    state.places.push(place.sessionId);
    if (state.isBroken) throw new Error("no reader here");
    if (state.isGone) throw Object.assign(new Error("no transcript"), { name: GONE });
    const isFromTheBeginning = state.isReplaced;
    let at = state.isReplaced ? 0 : Number(cursor ?? 0);
    state.isReplaced = false;
    for (;;) {
      const entries = transcript.slice(at, at + 3);
      at += entries.length;
      state.read += entries.length;
      const hasMore = at < transcript.length; // as of now: what is written from here on is seen by the next look
      yield { entries, cursor: String(at), isFromTheBeginning };
      if (!hasMore) return;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  const report = { captured() {}, outbox() {}, problem: (what) => problems.push(what) };
  const cursors = openCursors(path, "here", async () => {}, () => {});
  const taken = capture(outbox, () => {}, provider, readTranscript, cursors, report);
  return { taken, sent, problems, transcript, write, state, cursors };
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

test("who asks gets what was written before he asked, at whatever moment of a look that is", async () => {
  for (let ticks = 0; ticks < 60; ticks += 1) {
    const { taken, sent, write } = world({ written: 1 });
    void taken.read(PLACE);
    for (let tick = 0; tick < ticks; tick += 1) await undefined;
    write(2); // without a word
    await taken.read(PLACE);
    assert.deepEqual(sent, ids(1, 2), `after ${ticks} ticks`);
  }
});

test("what found no room is sent without another word, each once, when there is some", async () => {
  const { taken, sent, state, problems } = world({ written: 7, room: 2 });
  await taken.read(PLACE);
  state.room = Infinity;
  await taken.readUnfinished();
  assert.deepEqual(sent, ids(1, 2), "nothing was delivered: nothing more would fit");
  state.room = 4;
  state.delivered = 2;
  await taken.readUnfinished();
  assert.deepEqual(sent, ids(1, 4), "however little room there is, it goes on");
  state.room = Infinity;
  state.delivered = 4;
  await taken.readUnfinished();
  assert.deepEqual(sent, ids(1, 7));
  const { length } = state.places;
  await taken.readUnfinished();
  assert.equal(state.places.length, length, "it is finished");
  assert.equal(problems.length, 2);
});

test("a transcript that could not be read is tried again, and one that is gone is not", async () => {
  const { taken, sent, state, problems } = world({ written: 2 });
  state.isBroken = true;
  taken.take(update(2));
  await taken.settled(PLACE.sessionKey, 1_000);
  assert.deepEqual(sent, ["id-2"]);
  state.isBroken = false;
  await taken.readUnfinished();
  assert.deepEqual(sent, ["id-2", "id-1"], "what was told is not sent twice");
  state.isGone = true;
  await taken.read(PLACE);
  const { length } = state.places;
  await taken.readUnfinished();
  await taken.readAgain(PLACE.sessionKey);
  assert.equal(state.places.length, length);
  assert.equal(problems.length, 1);
});

test("one look that failed costs no comparison, a second one does", async () => {
  const { taken, sent, write, state } = world({ written: 3, isAway: true });
  await taken.read(PLACE);
  assert.equal(state.asked, 3);
  write(4);
  state.isBroken = true;
  await taken.read(PLACE);
  state.isBroken = false;
  await taken.readUnfinished();
  assert.deepEqual(sent, ids(1, 4));
  assert.equal(state.asked, 3);
  state.isBroken = true;
  await taken.read(PLACE);
  await taken.read(PLACE);
  state.isBroken = false;
  await taken.readUnfinished();
  assert.equal(state.asked, 7);
});

test("what cannot be taken at all is reported, and nobody is thrown at", async () => {
  const { taken, problems, state } = world({ written: 1 });
  state.isBroken = true;
  taken.take({ ...update(1), message: { get role() { throw new Error("strange"); } } });
  await taken.read(PLACE);
  assert.ok(problems.includes("a transcript could not be taken"));
});

test("what was told of a transcript that the host does not have is taken", async () => {
  const { taken, sent, state, problems } = world();
  state.isGone = true;
  taken.take(update(1));
  await taken.settled(PLACE.sessionKey, 1_000);
  assert.deepEqual(sent, ["id-1"]);
  assert.equal(problems.length, 1);
});

test("a new process reads on where the last one was, unasked, with nobody to compare with", async (t) => {
  const path = join(folderFor(t), "cursors.json");
  const before = world({ written: 40, path });
  before.taken.take(update(40));
  await before.taken.settled(PLACE.sessionKey, 1_000);
  await before.cursors.save();
  const after = world({ written: 43, isAway: true, path });
  await after.taken.catchUp();
  assert.deepEqual(after.sent, ids(41, 43));
  assert.equal(after.state.asked, 0);
});

test("one that was told of and killed before it read is read by the next", async (t) => {
  const path = join(folderFor(t), "cursors.json");
  const before = world({ written: 2, room: 0, path });
  before.taken.take(update(2));
  await before.taken.settled(PLACE.sessionKey, 1_000);
  await before.cursors.save();
  const after = world({ written: 2, stored: [1], path });
  await after.taken.catchUp();
  assert.deepEqual(after.sent, ["id-2"]);
});

test("catching up does not go back to a transcript that was left meanwhile", async (t) => {
  const path = join(folderFor(t), "cursors.json");
  const before = world({ written: 1, path });
  before.taken.take(update(1));
  await before.taken.settled(PLACE.sessionKey, 1_000);
  await before.cursors.save();
  const after = world({ path });
  const next = { ...PLACE, sessionId: "two" };
  after.taken.take(update(2, next));
  await after.taken.catchUp();
  await after.taken.settled(PLACE.sessionKey, 1_000);
  assert.deepEqual(after.state.places, ["one", "two"], "the one that was left is read to its end first, once");
  assert.equal(after.cursors.placeOf(PLACE.sessionKey).sessionId, "two");
});

test("a session is read again by its key, where it is known", async () => {
  const { taken, sent, write, state } = world({ written: 1 });
  await taken.readAgain(PLACE.sessionKey);
  assert.deepEqual(sent, []);
  await taken.read(PLACE);
  write(2);
  await taken.readAgain(PLACE.sessionKey);
  assert.deepEqual(sent, ids(1, 2));
  state.isBroken = true;
  await taken.readAgain(PLACE.sessionKey);
});

test("what the host keeps off its disk is not recorded", async () => {
  const { taken, sent } = world({ written: 1 });
  const hidden = { ...PLACE, sessionKey: "agent:main:dashboard:incognito-7f" };
  taken.take(update(1, hidden));
  await taken.settled(hidden.sessionKey, 1_000);
  await taken.read(hidden);
  assert.deepEqual(sent, []);
  assert.equal(isPrivate("agent:main:incognito-fans"), false);
});
