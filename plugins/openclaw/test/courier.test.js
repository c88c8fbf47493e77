import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { provider, ProviderError } from "../dist/client.js";
import { batchOf, courier, isOfTheItem, pauseMs } from "../dist/courier.js";
import { openOutbox } from "../dist/outbox.js";
import { openReport } from "../dist/report.js";
import { folderFor, message, problem, serve, settingsIn, store, until } from "./help.js";

function made(t, { home = folderFor(t), memory = provider(settingsIn(home)) } = {}) {
  const report = openReport(join(home, "report"), { level: "capture", hostVersion: null, agents: [] });
  const outbox = openOutbox(join(home, "outbox"), 64 * 1024 * 1024, (text) => assert.fail(text));
  const post = courier(outbox, memory, report);
  t.after(async () => {
    await post.stop();
    outbox.close();
    report.close();
  });
  const send = (...items) => {
    for (const item of items) assert.equal(outbox.add(item), true);
    post.wake();
  };
  return { home, report, outbox, post, send };
}

function ids(messages) {
  return messages.map(({ id }) => id);
}

function range(count, from = 0) {
  return Array.from({ length: count }, (_, index) => String(from + index));
}

// ── decisions ──

const waiting = (item, bytes = 100) => ({ ...item, bytes });

test("neighbours of one session go together", () => {
  const items = [message("a", "1"), message("a", "2"), message("b", "3"), message("a", "4")].map((item) => waiting(item));
  const batch = batchOf(items, 100);
  assert.equal(batch.items.length, 2);
  assert.deepEqual(batch.call, { verb: "onMessage", body: { sessionId: "a", agentId: "main", messages: [items[0].body.message, items[1].body.message] } });
  assert.equal(batchOf(items, 1).items.length, 1);
  assert.equal(batchOf([], 100), undefined);
  const other = { ...items[1], body: { ...items[1].body, agentId: "other" } };
  assert.equal(batchOf([items[0], other], 100).items.length, 1);
});

test("a hook goes alone, in its place", () => {
  const hook = waiting({ verb: "hooks/session-end", body: { sessionId: "a", reason: "new" } });
  const said = waiting(message("a", "1"));
  assert.deepEqual(batchOf([hook, said], 100).call, { verb: "hooks/session-end", body: hook.body });
  assert.equal(batchOf([said, hook, said], 100).items.length, 1);
});

test("a batch is at most a megabyte, or one item", () => {
  const items = range(9).map((id) => waiting(message("a", id), 300_000));
  assert.equal(batchOf(items, 100).items.length, 3);
  assert.equal(batchOf([waiting(message("a", "x"), 9_000_000), ...items], 100).items.length, 1);
});

test("what is wrong with the message, and what is not", () => {
  const error = (status, retryable = false, kind = "refused") => new ProviderError({ kind, status, retryable, detail: "", next: "" });
  for (const status of [400, 413, 422]) assert.equal(isOfTheItem(error(status), "onMessage"), true);
  for (const status of [401, 403, 404, 500, 503, 507]) assert.equal(isOfTheItem(error(status), "onMessage"), false);
  assert.equal(isOfTheItem(error(400, true), "onMessage"), false);
  assert.equal(isOfTheItem(error(undefined, true, "late"), "onMessage"), false);
  assert.equal(isOfTheItem(error(404), "hooks/session-end"), true);
});

test("pauses grow from a quarter of a second to fifteen", () => {
  assert.deepEqual([1, 2, 3, 6, 7, 8, 1_000].map(pauseMs), [250, 500, 1_000, 8_000, 15_000, 15_000, 15_000]);
});

// ── deliveries ──

test("all arrives once, in order, in batches", async (t) => {
  const home = folderFor(t);
  const kept = store();
  const server = await serve(home, ({ verb, body }) => (verb === "onMessage" ? kept.take(body) : { body: { ok: true } }));
  t.after(() => server.close());
  const { report, outbox, post, send } = made(t, { home });
  send(...range(250).map((id) => message("s", id)), { verb: "hooks/session-end", body: { sessionId: "s" } }, message("s", "last"));
  assert.equal(await post.idle(5_000), true);
  assert.deepEqual(ids(kept.messages), [...range(250), "last"]);
  assert.deepEqual(server.seen.map(({ verb, body }) => body.messages?.length ?? verb), [100, 100, 50, "hooks/session-end", 1]);
  assert.deepEqual([outbox.length, report.snapshot().capture.delivered, report.snapshot().capture.waiting], [0, 251, 0]);
  assert.equal(report.snapshot().provider.ok, true);
  assert.equal(await post.idle(0), true);
});

test("what is said while a delivery is under way follows it", async (t) => {
  const home = folderFor(t);
  const kept = store();
  const server = await serve(home, async ({ body }) => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    return kept.take(body);
  });
  t.after(() => server.close());
  const { post, send } = made(t, { home });
  for (const id of range(60)) {
    send(message("s", id));
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  assert.equal(await post.idle(5_000), true);
  assert.deepEqual(ids(kept.messages), range(60));
  assert.ok(server.seen.length < 60);
});

test("while nobody answers everything waits; then it arrives in order", async (t) => {
  const { home, outbox, post, report, send } = made(t);
  send(...range(30).map((id) => message("s", id)));
  assert.equal(await post.idle(3_000), false);
  assert.equal(outbox.length, 30);
  assert.match(report.snapshot().provider.error, /start it with `offbook serve/);
  assert.equal(report.snapshot().problems.length, 1);
  const kept = store();
  const server = await serve(home, ({ body }) => kept.take(body));
  t.after(() => server.close());
  send(message("s", "30"));
  await until(() => outbox.length === 0);
  assert.deepEqual(ids(kept.messages), range(31));
});

test("a provider that is down is asked at growing pauses, however often we are woken", async (t) => {
  const home = folderFor(t);
  let asked = 0;
  const memory = {
    endpoint: "unix:/x",
    call: async () => {
      asked += 1;
      throw new ProviderError({ kind: "unreachable", retryable: true, detail: "no", next: "" });
    },
  };
  const { post, send } = made(t, { home, memory });
  send(message("s", "0"));
  const began = performance.now();
  const busy = process.cpuUsage();
  while (performance.now() - began < 1_900) {
    post.wake();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.ok(asked >= 3 && asked <= 4, `${asked} times: at 0, 250, 750 and 1,750 ms`);
  assert.ok(process.cpuUsage(busy).user / 1_000 < 900, "it is no busy loop");
});

test("who waits for an empty outbox is told at once that it will not be, but there is a try for them", async (t) => {
  const home = folderFor(t);
  let isUp = false;
  let asked = 0;
  const memory = {
    endpoint: "unix:/x",
    call: async () => {
      asked += 1;
      if (!isUp) throw new ProviderError({ kind: "unreachable", retryable: true, detail: "no", next: "" });
      return {};
    },
  };
  const { post, send } = made(t, { home, memory });
  send(message("s", "0"));
  await until(() => asked === 4); // the next one is two seconds away
  const began = performance.now();
  assert.equal(await post.idle(5_000), false);
  assert.ok(performance.now() - began < 200);
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  isUp = true;
  assert.equal(await post.idle(200), true, "there is a try out of turn");
});

test("an answer that came too late for us is no second copy", async (t) => {
  const home = folderFor(t);
  const kept = store();
  let count = 0;
  const server = await serve(home, async ({ body }) => {
    count += 1;
    const answer = kept.take(body);
    if (count % 2 === 1) await new Promise((resolve) => setTimeout(resolve, 400)); // stored, and we have given up
    return answer;
  });
  t.after(() => server.close());
  const real = provider(settingsIn(home));
  const memory = { endpoint: real.endpoint, call: (verb, body) => real.call(verb, body, 150) };
  const { outbox, send } = made(t, { home, memory });
  send(...range(10).map((id) => message("s", id)));
  await until(() => outbox.length === 0, 10_000);
  assert.deepEqual(ids(kept.messages), range(10));
  assert.ok(count > 1);
});

test("a batch that is too slow is made smaller", async (t) => {
  const home = folderFor(t);
  const kept = store();
  const sizes = [];
  const memory = {
    endpoint: "unix:/x",
    call: async (_, body) => {
      sizes.push(body.messages.length);
      if (body.messages.length > 30) throw new ProviderError({ kind: "late", retryable: true, detail: "late", next: "" });
      return kept.take(body).body;
    },
  };
  const { outbox, send } = made(t, { home, memory });
  send(...range(100).map((id) => message("s", id)));
  await until(() => outbox.length === 0, 10_000);
  assert.deepEqual(ids(kept.messages), range(100));
  assert.deepEqual(sizes.slice(0, 3), [100, 50, 25]);
});

test("a message that is never taken is set aside, the others arrive in order", async (t) => {
  const home = folderFor(t);
  const kept = store();
  const server = await serve(home, ({ body }) =>
    body.messages.some(({ content }) => content === "poison") ? problem(422, "`content` is bad", false) : kept.take(body));
  t.after(() => server.close());
  const { outbox, post, report, send } = made(t, { home });
  send(...range(150).map((id) => message("s", id, id === "3" || id === "120" ? "poison" : id)));
  assert.equal(await post.idle(10_000), true);
  assert.deepEqual(ids(kept.messages), range(150).filter((id) => id !== "3" && id !== "120"));
  const lines = readFileSync(join(home, "outbox", "refused.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines.map(({ reason, body }) => [reason, body.message.id]), [["`content` is bad", "3"], ["`content` is bad", "120"]]);
  assert.deepEqual([outbox.length, report.snapshot().capture.refused, report.snapshot().capture.delivered], [0, 2, 148]);
  assert.match(report.snapshot().problems[0].detail, /refused\.jsonl/);
});

test("a wrong token sets nothing aside", async (t) => {
  const home = folderFor(t);
  const server = await serve(home, () => problem(401, "this token is not known", false));
  t.after(() => server.close());
  const { outbox, post, send } = made(t, { home });
  send(message("s", "0"), message("s", "1"));
  assert.equal(await post.idle(2_000), false);
  assert.equal(outbox.length, 2);
});

test("a large item on which the provider only hangs up does not hold up the others for ever", async (t) => {
  const home = folderFor(t);
  const kept = store();
  let losses = 0;
  const memory = {
    endpoint: "unix:/x",
    call: async (verb, body) => {
      if (verb === "ping") return {};
      if (body.messages[0].content.length < 1_000_000) return kept.take(body).body;
      losses += 1;
      throw new ProviderError({ kind: "unreachable", retryable: true, detail: "EPIPE", next: "" });
    },
  };
  const { outbox, report, send } = made(t, { home, memory });
  send(message("s", "large", "x".repeat(2_000_000)), message("s", "small"));
  await until(() => outbox.length === 0, 12_000);
  assert.equal(losses, 5);
  assert.deepEqual(ids(kept.messages), ["small"]);
  assert.equal(report.snapshot().capture.refused, 1);
});

test("stopped in the middle of a delivery, it delivers again later; nothing is doubled", async (t) => {
  const home = folderFor(t);
  const kept = store();
  let isSlow = true;
  const server = await serve(home, async ({ body }) => {
    const answer = kept.take(body);
    if (isSlow) await new Promise((resolve) => setTimeout(resolve, 10_000));
    return answer;
  });
  t.after(() => server.close());
  const first = made(t, { home });
  first.send(...range(5).map((id) => message("s", id)));
  await until(() => kept.messages.length === 5);
  const began = performance.now();
  await first.post.stop();
  assert.ok(performance.now() - began < 3_000);
  assert.equal(first.outbox.length, 5);
  first.outbox.close();
  isSlow = false;
  const second = made(t, { home });
  second.post.wake();
  assert.equal(await second.post.idle(5_000), true);
  assert.deepEqual(ids(kept.messages), range(5));
});

test("through drops, refusals and restarts each message arrives once, in order", async (t) => {
  const home = folderFor(t);
  const kept = store();
  let calls = 0;
  const whims = async ({ body, request }) => {
    calls += 1;
    if (calls % 9 === 7) return problem(503, "the store is busy: try again", true);
    const answer = calls % 9 === 1 ? undefined : kept.take(body);
    if (calls % 9 !== 1 && calls % 9 !== 4) return answer;
    request.socket.destroy(); // before it was stored, or after
    return undefined;
  };
  let server = await serve(home, whims);
  t.after(() => server.close());
  const { outbox, send } = made(t, { home });
  for (let round = 0; round < 3; round += 1) {
    send(...range(120, round * 120).map((id) => message(`s${Math.floor(Number(id) / 12) % 2}`, id)));
    await until(() => outbox.length < 80, 15_000);
    await server.close();
    rmSync(join(home, "offbook.sock"), { force: true });
    server = await serve(home, whims);
  }
  await until(() => outbox.length === 0, 15_000);
  assert.deepEqual(ids(kept.messages), range(360));
  assert.ok(calls > 36, `${calls} calls for 30 batches`);
});
