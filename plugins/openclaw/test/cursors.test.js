import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openCursors } from "../dist/cursors.js";
import { folderFor, until } from "./help.js";

const PLACE = { agentId: "main", sessionKey: "agent:main:chat", sessionId: "one" };
const HERE = "unix:/here/offbook.sock";
const ignore = async () => {};

function keyed(number) {
  return { ...PLACE, sessionKey: `agent:main:${number}` };
}

test("places and cursors outlive the process, for the same transcript only", async (t) => {
  const path = join(folderFor(t), "offbook", "cursors.json");
  const cursors = openCursors(path, HERE, ignore, assert.fail);
  cursors.spoken(PLACE);
  cursors.readTo(PLACE, "c7");
  await cursors.close([]);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  const again = openCursors(path, HERE, ignore, assert.fail);
  assert.equal(again.of(PLACE), "c7");
  assert.equal(again.of({ ...PLACE, sessionId: "two" }), undefined);
  assert.deepEqual(again.placeOf(PLACE.sessionKey), PLACE);
  again.forget({ ...PLACE, sessionId: "two" });
  assert.equal(again.of(PLACE), "c7");
  again.forget(PLACE);
  await again.close([]);
  assert.equal(openCursors(path, HERE, ignore, assert.fail).placeOf(PLACE.sessionKey), undefined);
});

test("after a kill the places spoken in are open, after a stop those only that were left unfinished", async (t) => {
  const path = join(folderFor(t), "cursors.json");
  const cursors = openCursors(path, HERE, ignore, assert.fail);
  for (const number of [1, 2, 3]) cursors.spoken(keyed(number));
  for (const number of [1, 2]) cursors.readTo(keyed(number), "c1");
  await cursors.save();
  const open = () => openCursors(path, HERE, ignore, assert.fail).openSince(Date.now() - 60_000).map((place) => place.sessionKey);
  assert.deepEqual(open().sort(), ["agent:main:1", "agent:main:2", "agent:main:3"]);
  assert.deepEqual(openCursors(path, HERE, ignore, assert.fail).openSince(Date.now() + 60_000), []);
  await cursors.close(["agent:main:2"]);
  assert.deepEqual(open().sort(), ["agent:main:2", "agent:main:3"]);
  const next = openCursors(path, HERE, ignore, assert.fail);
  next.spoken(keyed(1));
  await next.save();
  assert.equal(next.of(keyed(1)), "c1");
  assert.ok(open().includes("agent:main:1"), "spoken in again");
});

test("another provider is told of the places, and compared with from the beginning", async (t) => {
  const path = join(folderFor(t), "cursors.json");
  const cursors = openCursors(path, HERE, ignore, assert.fail);
  cursors.spoken(PLACE);
  cursors.readTo(PLACE, "c7");
  await cursors.save();
  const there = openCursors(path, "unix:/there/offbook.sock", ignore, assert.fail);
  assert.equal(there.of(PLACE), undefined);
  assert.deepEqual(there.openSince(0), [PLACE]);
  there.readTo(PLACE, "c1");
  assert.equal(there.of(PLACE), "c1");
});

test("a cursor is never ahead of what is on the disk", async (t) => {
  const path = join(folderFor(t), "cursors.json");
  let flushed;
  const cursors = openCursors(path, HERE, () => new Promise((resolve) => (flushed = resolve)), assert.fail);
  cursors.spoken(PLACE);
  cursors.readTo(PLACE, "c1");
  const saved = cursors.save();
  await until(() => flushed);
  cursors.readTo(PLACE, "c2"); // while the disk is busy with what came before c1
  assert.equal(existsSync(path), false);
  flushed();
  await saved;
  assert.equal(JSON.parse(readFileSync(path, "utf8"))[PLACE.sessionKey].cursor, "c1");
});

test("nothing is written where what was read could not be brought to the disk", async (t) => {
  const path = join(folderFor(t), "cursors.json");
  const warned = [];
  let isBroken = true;
  const flush = async () => {
    if (isBroken) throw new Error("the disk is full");
  };
  const cursors = openCursors(path, HERE, flush, (text) => warned.push(text));
  cursors.spoken(PLACE);
  await cursors.save();
  await cursors.save();
  assert.equal(existsSync(path), false);
  assert.equal(warned.length, 1);
  isBroken = false;
  await cursors.save();
  assert.equal(existsSync(path), true);
});

test("it is saved by itself, at most every two seconds", async (t) => {
  const path = join(folderFor(t), "cursors.json");
  let flushes = 0;
  const cursors = openCursors(path, HERE, async () => void (flushes += 1), assert.fail);
  cursors.spoken(PLACE);
  await until(() => existsSync(path));
  for (let number = 0; number < 50; number += 1) {
    cursors.readTo(PLACE, `c${number}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.equal(flushes, 1);
  await until(() => readFileSync(path, "utf8").includes("c49"), 4_000);
  assert.equal(flushes, 2);
});

test("the newest thousand are kept", async (t) => {
  const path = join(folderFor(t), "cursors.json");
  t.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  const cursors = openCursors(path, HERE, ignore, assert.fail);
  for (let number = 0; number < 1_010; number += 1) {
    t.mock.timers.tick(1);
    cursors.spoken(keyed(number));
  }
  cursors.spoken(keyed(3)); // spoken in again
  await cursors.close([]);
  const kept = JSON.parse(readFileSync(path, "utf8"));
  assert.equal(Object.keys(kept).length, 1_000);
  assert.ok(kept["agent:main:3"] && kept["agent:main:1009"] && !kept["agent:main:0"]);
});

test("the last look at a transcript that was left does not bring it back", () => {
  const cursors = openCursors("/dev/null/cursors.json", HERE, ignore, () => {});
  cursors.spoken(PLACE);
  cursors.spoken({ ...PLACE, sessionId: "two" });
  cursors.readTo(PLACE, "c9");
  assert.equal(cursors.placeOf(PLACE.sessionKey).sessionId, "two");
  assert.equal(cursors.of({ ...PLACE, sessionId: "two" }), undefined);
});

test("a file that is torn or strange is as good as none", (t) => {
  const path = join(folderFor(t), "cursors.json");
  for (const text of ["{\"agent:main:chat\": {\"agen", "null", "[]", "{\"agent:main:chat\": {\"cursor\": 7}, \"b\": null}"]) {
    writeFileSync(path, text);
    assert.deepEqual(openCursors(path, HERE, ignore, assert.fail).openSince(0), []);
  }
});
