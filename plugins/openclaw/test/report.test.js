import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openReport, VERSION } from "../dist/report.js";
import { folderFor, until } from "./help.js";

const ABOUT = { level: "capture", hostVersion: "2026.9.6", agents: ["main"] };

function saved(folder) {
  return JSON.parse(readFileSync(join(folder, "report.json"), "utf8"));
}

test("the version is that of the package", () => {
  assert.equal(VERSION, JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).version);
});

test("what happened is in the file, soon and whole", async (t) => {
  const folder = join(folderFor(t), "new");
  const report = openReport(folder, { ...ABOUT, agents: ["main", "other"] });
  report.captured("agent:main:a", "e1");
  report.captured("agent:main:a", "e2");
  report.delivered(2);
  report.outbox({ length: 3, bytes: 40, turnedAway: 1 });
  report.answered("unix:/x", null);
  report.turn({ sessionKey: "s", runId: null, recallChars: 5, memoryChars: 0, tookMs: 3, error: null });
  report.turn({ sessionKey: "s", runId: null, recallChars: 0, memoryChars: 0, tookMs: 600, error: "late: no answer" });
  report.turn({ sessionKey: "s", runId: "r", recallChars: 0, memoryChars: 0, tookMs: 1, error: "refused: no" });
  report.assembled({ sessionKey: "s", messagesIn: 9, messagesOut: 4, generation: 1 });
  report.swapped("s", 2, "threshold");
  report.assembled({ sessionKey: "s", messagesIn: 10, messagesOut: 5, generation: 2 });
  report.committed("s");
  report.fellBack("s");
  report.refused();
  report.conversationAllowed(false);
  assert.equal(existsSync(join(folder, "report.json")), false, "nothing is written in the way of the caller");
  await until(() => existsSync(join(folder, "report.json")));
  const found = saved(folder);
  assert.deepEqual(found, report.snapshot());
  assert.equal(found.version, 1);
  assert.deepEqual(found.host, { version: "2026.9.6" });
  assert.equal(found.provider.ok, true);
  const { lastAt, lastDeliveredAt, ...capture } = found.capture;
  assert.ok(lastAt && lastDeliveredAt);
  assert.deepEqual(capture, {
    messages: 2, delivered: 2, waiting: 3, waitingBytes: 40, turnedAway: 1, refused: 1, lastEntryId: "e2", lastSessionKey: "agent:main:a",
  });
  const { last: lastTurn, ...turns } = found.turns;
  assert.deepEqual(turns, { prepared: 1, injected: 1, late: 1, failed: 1 });
  assert.equal(lastTurn.runId, "r");
  const { last, ...engine } = found.engine;
  assert.deepEqual(engine, { assembled: 2, committed: 1, swaps: 1, fallbacks: 1 });
  assert.deepEqual([last.messagesIn, last.generation, last.reason], [10, 2, "threshold"]);
  assert.deepEqual(found.permissions, { conversation: false });
  assert.deepEqual(found.agents, ["main", "other"]);
});

test("it is written at most once a second", async (t) => {
  const folder = folderFor(t);
  let clock = 0;
  const report = openReport(folder, ABOUT, () => new Date((clock += 1)));
  report.problem("x", "1");
  await until(() => existsSync(join(folder, "report.json")));
  const first = saved(folder).savedAt;
  report.problem("x", "2");
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(saved(folder).savedAt, first);
  await until(() => saved(folder).savedAt !== first);
  assert.equal(saved(folder).problems.length, 2);
  report.problem("x", "3");
  await new Promise((resolve) => setTimeout(resolve, 400));
  report.problem("x", "4");
  const second = saved(folder).savedAt;
  await until(() => saved(folder).savedAt !== second);
  const third = saved(folder).savedAt;
  assert.equal(saved(folder).problems.length, 4);
  await new Promise((resolve) => setTimeout(resolve, 600));
  assert.equal(saved(folder).savedAt, third, "both were saved together");
  assert.deepEqual(readdirSync(folder), ["report.json"]);
});

test("the newest twenty problems are kept, the same one in a row counted", (t) => {
  const report = openReport(folderFor(t), ABOUT);
  for (let count = 0; count < 30; count += 1) report.problem("what", `detail ${count}`);
  report.problem("what", "detail 29");
  report.problem("long", "x".repeat(5_000));
  const { problems } = report.snapshot();
  assert.equal(problems.length, 20);
  assert.deepEqual([problems[0].what, problems[0].detail.length], ["long", 1_000]);
  assert.deepEqual([problems[1].detail, problems[1].times], ["detail 29", 2]);
});

test("closing saves at once; a folder that cannot be written stops nothing", (t) => {
  const folder = folderFor(t);
  const report = openReport(folder, ABOUT);
  report.captured("s", "e");
  report.close();
  assert.equal(saved(folder).capture.messages, 1);
  writeFileSync(join(folder, "file"), "");
  const lost = openReport(join(folder, "file", "below"), ABOUT);
  lost.captured("s", "e");
  lost.close();
});
