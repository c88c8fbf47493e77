import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openOutbox } from "../dist/outbox.js";
import { folderFor, message, until } from "./help.js";

const MEGABYTE = 1024 * 1024;

function opened(t, folder, maxBytes = 64 * MEGABYTE) {
  const warnings = [];
  const outbox = openOutbox(folder, maxBytes, (text) => warnings.push(text));
  t.after(() => outbox.close());
  return Object.assign(outbox, { warnings });
}

function ids(outbox, most = 10_000) {
  return outbox.peek(most).map(({ body }) => body.message.id);
}

function numbers(from, to) {
  return Array.from({ length: to - from }, (_, index) => String(from + index));
}

function segments(folder) {
  return readdirSync(folder).filter((name) => /^\d+\.jsonl$/.test(name));
}

/** Takes all, as a courier does. */
function drained(outbox) {
  const taken = [];
  while (outbox.length > 0) {
    const found = ids(outbox, 100);
    assert.ok(found.length > 0, `${outbox.length} wait and none is found`);
    taken.push(...found);
    outbox.done(found.length);
  }
  return taken;
}

test("what goes in comes out, in order, and is gone when done", (t) => {
  const outbox = opened(t, folderFor(t));
  for (const id of numbers(0, 10)) assert.equal(outbox.add(message("s", id)), true);
  assert.equal(outbox.length, 10);
  const { bytes, ...first } = outbox.peek(1)[0];
  assert.deepEqual(first, message("s", "0"));
  assert.equal(bytes, Buffer.byteLength(JSON.stringify(message("s", "0"))) + 1);
  assert.deepEqual(ids(outbox, 4), numbers(0, 4));
  assert.deepEqual(ids(outbox, 4), numbers(0, 4), "looking takes nothing away");
  outbox.done(4);
  assert.deepEqual(ids(outbox), numbers(4, 10));
  outbox.done(6);
  assert.deepEqual([outbox.length, outbox.bytes, outbox.peek(9)], [0, 0, []]);
  outbox.add(message("s", "later"));
  assert.deepEqual(ids(outbox), ["later"]);
});

test("the next process goes on where this one was", (t) => {
  const folder = folderFor(t);
  let outbox = opened(t, folder);
  for (const id of numbers(0, 10)) outbox.add(message("s", id));
  outbox.peek(3);
  outbox.done(3);
  const { bytes } = outbox;
  for (const from of [3, 4, 5]) {
    outbox.close();
    outbox = opened(t, folder);
    assert.deepEqual(ids(outbox), numbers(from, 10));
    outbox.done(1);
  }
  assert.ok(outbox.bytes < bytes);
  outbox.add(message("s", "10"));
  assert.deepEqual(drained(outbox), numbers(6, 11));
});

test("many files are written and read, and those delivered are deleted", (t) => {
  const folder = folderFor(t);
  let outbox = opened(t, folder, 4 * MEGABYTE);
  const text = "x".repeat(10_000);
  for (const id of numbers(0, 300)) outbox.add(message("s", id, text));
  assert.equal(segments(folder).length, 3);
  assert.ok(outbox.peek(300).length < 300, "no more is read ahead than a megabyte");
  outbox.close();
  outbox = opened(t, folder, 4 * MEGABYTE);
  assert.equal(outbox.length, 300);
  outbox.add(message("s", "300", text));
  assert.deepEqual(drained(outbox), numbers(0, 301));
  assert.deepEqual(segments(folder), []);
  for (const id of numbers(0, 100)) outbox.add(message("s", id, text));
  assert.deepEqual(drained(outbox), numbers(0, 100));
  assert.deepEqual(segments(folder), []);
  outbox.close();
  outbox = opened(t, folder, 4 * MEGABYTE);
  assert.equal(outbox.length, 0);
  outbox.add(message("s", "new"));
  assert.deepEqual(ids(outbox), ["new"]);
});

test("of what was delivered not a byte stays, however little it was", async (t) => {
  const folder = folderFor(t);
  let outbox = opened(t, folder);
  const bytes = () => readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8")).join();
  for (const id of ["a", "b"]) outbox.add(message("s", id, "the blue heron"));
  const flushed = outbox.flush(); // goes on while the file is left
  outbox.peek(1);
  outbox.done(1);
  assert.match(bytes(), /blue heron/, "as long as any of a file waits");
  outbox.peek(1);
  outbox.done(1);
  await flushed;
  assert.doesNotMatch(bytes(), /blue heron/);
  outbox.add(message("s", "c"));
  outbox.close();
  outbox = opened(t, folder);
  assert.deepEqual(drained(outbox), ["c"]);
  assert.deepEqual(segments(folder), [], "nor of what an earlier process left");
});

test("an item larger than any piece that is read comes back whole", (t) => {
  const outbox = opened(t, folderFor(t));
  outbox.add(message("s", "small"));
  outbox.add(message("s", "large", "ä".repeat(5 * MEGABYTE)));
  outbox.add(message("s", "last"));
  assert.deepEqual(ids(outbox, 10), ["small", "large"]);
  outbox.done(1);
  assert.equal(outbox.peek(1)[0].body.message.content.length, 5 * MEGABYTE);
  outbox.done(1);
  assert.deepEqual(ids(outbox), ["last"]);
});

test("torn at any byte of the last record, the others are there and new ones follow", (t) => {
  const folder = folderFor(t);
  const whole = opened(t, folder);
  for (const id of ["a", "b", "c"]) whole.add(message("s", id, "häß\n"));
  whole.close();
  const file = join(folder, segments(folder)[0]);
  const size = statSync(file).size;
  const begin = size - size / 3;
  const bytes = readFileSync(file);
  for (let cut = begin; cut < size; cut += 1) {
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
    writeFileSync(file, bytes.subarray(0, cut));
    let outbox = opened(t, folder);
    assert.equal(outbox.length, 2, `cut at ${cut}`);
    outbox.add(message("s", "d"));
    assert.deepEqual(ids(outbox), ["a", "b", "d"], `cut at ${cut}`);
    outbox.done(1);
    outbox.close();
    outbox = opened(t, folder);
    assert.deepEqual(drained(outbox), ["b", "d"]);
    outbox.close();
  }
});

test("a line that cannot be read is left out and told, those around it are kept", (t) => {
  const folder = folderFor(t);
  const before = opened(t, folder);
  before.add(message("s", "a"));
  before.close();
  const file = join(folder, segments(folder)[0]);
  appendFileSync(file, Buffer.concat([Buffer.alloc(50), Buffer.from('\n{"verb":1}\n[]\nnull\n'), readFileSync(file)]));
  const outbox = opened(t, folder);
  assert.equal(outbox.length, 6);
  assert.deepEqual(ids(outbox), ["a", "a"]);
  assert.equal(outbox.length, 2);
  assert.equal(outbox.warnings.length, 4);
  outbox.done(2);
  assert.deepEqual([outbox.length, outbox.bytes], [0, 0]);
});

for (const [name, content] of [["torn", '{"segm'], ["empty", ""], ["of something else", '{"segment":"x"}']]) {
  test(`a position that is ${name} delivers again rather than not at all`, (t) => {
    const folder = folderFor(t);
    const before = opened(t, folder);
    for (const id of ["a", "b"]) before.add(message("s", id));
    before.peek(1);
    before.done(1);
    before.close();
    writeFileSync(join(folder, "position.json"), content);
    assert.deepEqual(ids(opened(t, folder)), ["a", "b"]);
  });
}

test("a position past the end of a file that lost its end loses nothing that comes later", (t) => {
  const folder = folderFor(t);
  const before = opened(t, folder);
  for (const id of ["a", "b", "torn"]) before.add(message("s", id));
  before.peek(2);
  before.done(2);
  before.close();
  truncateSync(join(folder, segments(folder)[0]), 10);
  const outbox = opened(t, folder);
  assert.equal(outbox.length, 0);
  outbox.add(message("s", "c"));
  outbox.close();
  assert.deepEqual(ids(opened(t, folder)), ["c"]);
});

test("a full outbox turns away and counts, and takes again once there is room", (t) => {
  const folder = folderFor(t);
  const outbox = opened(t, folder, 10_000);
  let taken = 0;
  while (outbox.add(message("s", String(taken), "x".repeat(500)))) taken += 1;
  assert.ok(taken > 10 && outbox.bytes <= 10_000, `${taken} of ${outbox.bytes} bytes`);
  outbox.add(message("s", "no", "x".repeat(500)));
  assert.equal(outbox.turnedAway, 2);
  assert.deepEqual(drained(outbox), numbers(0, taken));
  for (let round = 0; round < 50; round += 1) {
    assert.equal(outbox.add(message("s", String(round), "x".repeat(500))), true);
    drained(outbox);
  }
  const size = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  assert.ok(size < 20_000, `${size} bytes on disk`);
  assert.equal(outbox.add(message("s", "huge", "x".repeat(10_000))), false);
});

test("a folder that cannot be written turns away, tells once, and recovers", (t) => {
  const folder = folderFor(t);
  const outbox = opened(t, folder);
  rmSync(folder, { recursive: true });
  assert.equal(outbox.add(message("s", "a")), false);
  assert.equal(outbox.add(message("s", "b")), false);
  assert.deepEqual([outbox.turnedAway, outbox.warnings.length], [2, 1]);
  mkdirSync(folder);
  assert.equal(outbox.add(message("s", "c")), true);
  assert.deepEqual(ids(outbox), ["c"]);
});

test("no room in the middle of a line: it is turned away, and nothing of it stays", { skip: process.platform === "win32" }, async (t) => {
  const folder = folderFor(t);
  // A file may have 8 KB here: the write that goes beyond stops halfway, as on a full disk.
  const program = `
    import { openOutbox } from ${JSON.stringify(new URL("../dist/outbox.js", import.meta.url).href)};
    const outbox = openOutbox(${JSON.stringify(folder)}, 1024 * 1024, () => {});
    const add = (id, size) => outbox.add({ verb: "onMessage", body: { sessionId: "s", message: { id, content: "x".repeat(size) } } });
    const taken = [["a", 3000], ["b", 3000], ["c", 3000], ["d", 10], ["e", 3000], ["f", 10]].map(([id, size]) => add(id, size));
    console.log(JSON.stringify([taken, outbox.turnedAway, outbox.length, outbox.peek(9).map(({ body }) => body.message.id)]));`;
  const script = join(folderFor(t), "full.mjs");
  writeFileSync(script, program);
  const made = spawn("sh", ["-c", 'trap "" XFSZ; ulimit -f 16; exec "$0" "$1"', process.execPath, script], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  made.stdout.on("data", (part) => (output += part));
  await once(made, "close");
  assert.deepEqual(JSON.parse(output), [[true, true, false, true, false, true], 2, 4, ["a", "b", "d", "f"]]);
  assert.deepEqual(ids(opened(t, folder)), ["a", "b", "d", "f"]);
});

test("what is refused is kept beside, with the reason", (t) => {
  const folder = folderFor(t);
  const outbox = opened(t, folder);
  for (const id of ["bad", "good"]) outbox.add(message("s", id));
  outbox.refuse("no such role");
  assert.deepEqual(ids(outbox), ["good"]);
  const kept = JSON.parse(readFileSync(join(folder, "refused.jsonl"), "utf8"));
  assert.deepEqual([kept.reason, kept.verb, kept.body.message.id], ["no such role", "onMessage", "bad"]);
  outbox.close();
  assert.deepEqual(ids(opened(t, folder)), ["good"]);
});

test("a record that is not JSON is turned away", (t) => {
  const outbox = opened(t, folderFor(t));
  assert.equal(outbox.add({ verb: "onMessage", body: { count: 1n } }), false);
  assert.deepEqual([outbox.length, outbox.turnedAway, outbox.warnings.length], [0, 1, 1]);
});

test("flush waits for the disk, also for files that were left meanwhile", async (t) => {
  const outbox = opened(t, folderFor(t), 400_000);
  await outbox.flush();
  for (const id of numbers(0, 30)) outbox.add(message("s", id, "x".repeat(10_000)));
  const both = Promise.all([outbox.flush(), outbox.flush()]);
  for (const id of numbers(30, 35)) outbox.add(message("s", id, "x".repeat(10_000)));
  await both;
  outbox.close();
  await outbox.flush();
  assert.deepEqual(outbox.warnings, []);
});

// ── one owner ──

test("a folder has one owner in a process, and is free again when closed", (t) => {
  const folder = folderFor(t);
  const first = opened(t, folder);
  assert.throws(() => openOutbox(folder, MEGABYTE, () => {}), /in use by this process/);
  first.close();
  first.close();
  assert.equal(first.add(message("s", "late")), false);
  opened(t, folder).close();
  assert.equal(existsSync(join(folder, "lock")), false);
});

async function child(t, folder, loop) {
  const program = `
    import { openOutbox } from ${JSON.stringify(new URL("../dist/outbox.js", import.meta.url).href)};
    const outbox = openOutbox(${JSON.stringify(folder)}, 64 * 1024 * 1024, console.error);
    const message = (id) => ({ verb: "onMessage", body: { sessionId: "s", message: { id: String(id), role: "user", content: "x".repeat(id % 3000) } } });
    ${loop}`;
  const made = spawn(process.execPath, ["--input-type=module", "--eval", program], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => made.kill("SIGKILL"));
  let output = "";
  made.stdout.on("data", (part) => (output += part));
  return { made, output: () => output };
}

test("another process that lives keeps the folder; one that was killed does not", async (t) => {
  const folder = folderFor(t);
  const { made, output } = await child(t, folder, `console.log("open"); setInterval(() => {}, 1000);`);
  await until(() => output().includes("open"));
  assert.throws(() => openOutbox(folder, MEGABYTE, () => {}), new RegExp(`in use by process ${made.pid}`));
  made.kill("SIGKILL");
  await once(made, "exit");
  opened(t, folder).add(message("s", "a"));
});

test("a lock of a process id that was given again is stale", { skip: !existsSync("/proc/self/stat") }, async (t) => {
  const folder = folderFor(t);
  const { made, output } = await child(t, folderFor(t), `console.log("open"); setInterval(() => {}, 1000);`);
  await until(() => output().includes("open"));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "lock"), JSON.stringify({ pid: made.pid, started: "1" }));
  opened(t, folder);
});

for (const content of ["", "nonsense"]) {
  test(`a lock that says nothing (${JSON.stringify(content)}) holds for a moment only`, (t) => {
    const folder = folderFor(t);
    writeFileSync(join(folder, "lock"), content);
    assert.throws(() => openOutbox(folder, MEGABYTE, () => {}), /in use by another process/);
  });
}

// ── kill -9 ──

test("what add() took is there after kill -9, in order and once", async (t) => {
  for (let round = 0; round < 5; round += 1) {
    const folder = folderFor(t);
    // What it has added is told after the fact, so what is told must be there.
    const { made, output } = await child(t, folder, `
      import { writeSync } from "node:fs";
      let delivered = 0;
      for (let id = 0; ; id += 1) {
        outbox.add(message(id));
        if (id % 7 === 0 && outbox.length > 50) { const count = outbox.peek(10).length; outbox.done(count); delivered += count; }
        if (id % 10 === 0) writeSync(1, id + " " + delivered + "\\n");
      }`);
    await until(() => output().length > 200);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 200));
    made.kill("SIGKILL");
    await once(made, "close");
    const [added, delivered] = output().trim().split("\n").filter((line) => /^\d+ \d+$/.test(line)).at(-1).split(" ").map(Number);
    const outbox = opened(t, folder);
    const found = drained(outbox).map(Number);
    assert.ok(found.length > 0);
    assert.ok(found.at(-1) >= added, `${added} was added, the last found is ${found.at(-1)}`);
    assert.ok(found[0] >= delivered, `${delivered} were done, the first found is ${found[0]}`);
    assert.ok(found[0] <= delivered + 20, `${delivered} were done, the first found is ${found[0]}`);
    assert.deepEqual(found, numbers(found[0], found.at(-1) + 1).map(Number));
    assert.deepEqual(outbox.warnings, []);
    outbox.close();
  }
});
