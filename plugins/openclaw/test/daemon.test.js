import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startDaemon } from "../dist/daemon.js";
import { folderFor, serve, settingsIn } from "./help.js";

/** Something that is called as `offbook serve` is. */
function command(folder, body) {
  const path = join(folder, "offbook");
  writeFileSync(path, `#!${process.execPath}\n${body}`);
  chmodSync(path, 0o755);
  return path;
}

const LISTENING = `
  const { createServer } = require("node:http");
  const { appendFileSync } = require("node:fs");
  appendFileSync(process.env.OFFBOOK_HOME + "/started", process.pid + " " + process.argv.slice(2).join(" ") + "\\n");
  console.error("listening");
  setTimeout(() => process.exit(), 60000);
  createServer((request, response) => response.end("{}")).listen(process.env.OFFBOOK_HOME + "/offbook.sock");`;

function started(home) {
  return readFileSync(join(home, "started"), "utf8").trim().split("\n").map((line) => line.split(" "));
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("a provider is started where nobody answers, once", async (t) => {
  const home = join(folderFor(t), "new");
  const settings = settingsIn(home, { command: command(folderFor(t), LISTENING) });
  const told = [];
  const log = (text) => told.push(text);
  const outcomes = await Promise.all([startDaemon(settings, log), startDaemon(settings, log)]);
  const [pid] = started(home)[0];
  t.after(() => process.kill(Number(pid), "SIGKILL"));
  assert.deepEqual(outcomes, [true, true]);
  assert.equal(await startDaemon(settings, log), true);
  assert.deepEqual(started(home).map(([, ...given]) => given), [["serve"]]);
  assert.match(readFileSync(join(home, "serve.log"), "utf8"), /listening/);
  assert.equal(told.length, 1);
});

test("one that was started and has died is started again at once", async (t) => {
  const home = join(folderFor(t), "new");
  const settings = settingsIn(home, { command: command(folderFor(t), `require("node:fs").rmSync(process.env.OFFBOOK_HOME + "/offbook.sock", { force: true });${LISTENING}`) });
  assert.equal(await startDaemon(settings, () => {}), true);
  const first = Number(started(home)[0][0]);
  process.kill(first, "SIGKILL");
  while (isAlive(first)) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(await startDaemon(settings, () => {}), true);
  assert.equal(started(home).length, 2);
  const second = Number(started(home)[1][0]);
  t.after(() => process.kill(second, "SIGKILL"));
});

test("where one answers, none is started", async (t) => {
  const home = folderFor(t);
  const server = await serve(home, () => ({}));
  t.after(() => server.close());
  assert.equal(await startDaemon(settingsIn(home, { command: command(folderFor(t), LISTENING) }), assert.fail), true);
  assert.equal(existsSync(join(home, "started")), false);
});

test("one that ends at once is told, with its log, and not tried again for a minute", async (t) => {
  const home = folderFor(t);
  const settings = settingsIn(home, {
    command: command(folderFor(t), `require("node:fs").appendFileSync(process.env.OFFBOOK_HOME + "/started", "x\\n"); process.exit(3);`),
  });
  const told = [];
  assert.equal(await startDaemon(settings, (text) => told.push(text)), false);
  assert.equal(await startDaemon(settings, (text) => told.push(text)), false);
  assert.equal(told.length, 1);
  assert.match(told[0], /ended with status 3; its log is .*serve\.log/);
  assert.equal(started(home).length, 1);
});

test("a command that is not there says what to set", async (t) => {
  const told = [];
  const settings = settingsIn(folderFor(t), { command: "no-such-offbook" });
  assert.equal(await startDaemon(settings, (text) => told.push(text)), false);
  assert.match(told[0], /was not found: set `command`/);
});

test("nothing is started for a provider on another machine", async (t) => {
  const home = folderFor(t);
  const told = [];
  const settings = settingsIn(home, { endpoint: "http://192.0.2.1:9", command: command(folderFor(t), LISTENING) });
  assert.equal(await startDaemon(settings, (text) => told.push(text)), false);
  assert.match(told[0], /another machine/);
  assert.equal(existsSync(join(home, "started")), false);
});
