import assert from "node:assert/strict";
import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { test } from "node:test";
import { usageOf, withoutLooseEnd, written } from "../dist/host-model.js";
import { hostModelJobs } from "../dist/jobs.js";

const JOB = {
  id: "j1",
  agentId: "main",
  messages: [
    { role: "user", content: "we moved the release" },
    { role: "assistant", content: "to 14 March" },
    { role: "user", content: [{ type: "text", text: "remember this" }] },
  ],
  stable: 1,
  maxOutputTokens: 321,
  leaseSeconds: 60,
};
/** As OpenClaw 2026.9.6 answered in a gateway. */
const ANSWER = {
  text: "I moved the release to 14 March.",
  provider: "fake",
  model: "fake-1",
  stopReason: "stop",
  agentId: "main",
  usage: { inputTokens: 21, outputTokens: 8, cacheReadTokens: 7, cacheWriteTokens: 0, totalTokens: 36, costUsd: 0.25 },
};
const REFUSED = Object.assign(new Error("cannot override the target agent"), { code: "LLM_COMPLETION_NOT_AUTHORIZED" });
const never = new AbortController().signal;

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function eventually(isSo, what) {
  for (const ends = Date.now() + 3_000; Date.now() < ends; await pause(5)) if (isSo()) return;
  assert.fail(`not seen in 3 seconds: ${what}`);
}

let worlds = 0;

/** An Offbook that has these jobs to give, and all that was done with it. */
function world({ jobs = [], order = ["host"], isAway = false, complete, agents = ["main"], endpoint, ...options }) {
  const calls = [];
  const requests = [];
  const problems = [];
  const lines = [];
  const waiting = [...jobs];
  const state = { order, isAway };
  const memory = {
    endpoint: endpoint ?? `unix:/nowhere/${(worlds += 1)}`,
    async call(verb, body, deadlineMs) {
      calls.push({ verb, body, deadlineMs });
      if (state.isAway) throw new Error("unreachable");
      if (verb === "status") return { summaries: { summarizers: state.order } };
      if (verb !== "jobs/claim") return { ok: true };
      const at = waiting.findIndex((job) => job.agentId === body.agentId);
      if (at >= 0) return { job: waiting.splice(at, 1)[0] };
      return { job: await new Promise((resolve) => {
        state.give = resolve;
        setTimeout(resolve, body.waitMs, null).unref();
      }) };
    },
  };
  const running = hostModelJobs(
    memory,
    (request) => {
      requests.push(request);
      return (complete ?? (async () => ANSWER))(request);
    },
    () => agents,
    { problem: (what, detail) => problems.push(`${what}: ${detail}`) },
    { info: (text) => lines.push(text), warn: (text) => lines.push(text) },
    { firstPauseMs: 20, ...options },
  );
  const of = (verb) => calls.filter((call) => call.verb === verb).map((call) => call.body);
  return { running, endpoint: memory.endpoint, of, requests, problems, lines, state, waiting };
}

test("a job goes to the host's model in its roles, and its answer and usage to Offbook", async () => {
  const { running, of, requests, problems } = world({ jobs: [JOB] });
  await eventually(() => of("jobs/complete").length === 1, "the answer");
  await running.stop();
  const { signal, ...request } = requests[0];
  assert.ok(signal instanceof AbortSignal);
  assert.deepEqual(request, {
    messages: [
      { role: "user", content: "we moved the release" },
      { role: "assistant", content: "to 14 March" },
      { role: "user", content: "remember this" },
    ],
    maxTokens: 321,
    purpose: "offbook.summary",
  });
  const usage = { inputTokens: 28, cachedTokens: 7, outputTokens: 8, dollars: 0.25 };
  assert.deepEqual(of("jobs/complete"), [{ jobId: "j1", agentId: "main", text: ANSWER.text, usage }]);
  assert.deepEqual(problems, []);
});

test("without host in the order nothing is claimed, and it is said once how to switch it on", async () => {
  const { running, of, lines, state } = world({ jobs: [JOB], order: ["extractive"] });
  await eventually(() => of("status").length === 1, "the look");
  await pause(30);
  running.wake();
  await eventually(() => of("status").length === 2, "the second look");
  assert.deepEqual(of("jobs/claim"), []);
  assert.equal(lines.length, 1);
  assert.match(lines[0], /--writer host/);
  await pause(30);
  state.order = ["host"];
  running.wake();
  await eventually(() => of("jobs/complete").length === 1, "the work, once it is switched on");
  await running.stop();
});

test("with several agents each job names its agent, one at a time, and both are asked within a minute", async () => {
  let atOnce = 0;
  let most = 0;
  const complete = async ({ agentId }) => {
    most = Math.max(most, (atOnce += 1));
    await pause(20);
    atOnce -= 1;
    return { ...ANSWER, agentId };
  };
  const jobs = [{ ...JOB, id: "j3", agentId: "work" }, JOB, { ...JOB, id: "j2" }];
  const { running, of, requests } = world({ jobs, agents: ["main", "work"], complete });
  await eventually(() => of("jobs/claim").some(({ waitMs }) => waitMs > 0), "the first claim that waits");
  const claims = of("jobs/claim");
  const announced = claims.filter(({ waitMs }) => waitMs === 0).map(({ agentId }) => agentId);
  assert.deepEqual(announced, ["main", "main", "main", "work", "work"], "nobody waits behind another at first");
  assert.ok(claims.every(({ waitMs }) => waitMs * 2 < 60_000));
  assert.deepEqual(requests.map(({ agentId }) => agentId), ["main", "main", "work"]);
  assert.equal(most, 1);
  await running.stop();
});

test("where the host does not allow it, the agent is left alone and the setting named once", async () => {
  const jobs = [JOB, { ...JOB, id: "j2" }];
  const { running, of, problems, waiting } = world({ jobs, agents: ["main"], complete: () => Promise.reject(REFUSED) });
  await eventually(() => of("jobs/fail").length === 1, "the failure");
  await pause(80);
  assert.equal(of("jobs/claim").length, 1);
  assert.equal(waiting.length, 1);
  assert.equal(problems.length, 1);
  await running.stop();
  const outcome = await written(() => Promise.reject(REFUSED), JOB, false, 1_000, never);
  assert.match(outcome.reason, /plugins\.entries\.offbook\.llm\.allowAgentIdOverride/);
  assert.equal(outcome.isForGood, true);
});

test("what the model's server says is not passed on, as it may quote the conversation", async () => {
  const failures = [
    () => Promise.reject(new Error("invalid prompt: we moved the release")),
    async () => ({ ...ANSWER, text: "", stopReason: "error" }),
    async () => ({ ...ANSWER, text: "  " }),
    async () => ({ ...ANSWER, agentId: "another" }),
  ];
  for (const complete of failures) {
    const outcome = await written(complete, JOB, true, 1_000, never);
    assert.ok(outcome.reason.length > 10);
    assert.doesNotMatch(outcome.reason, /moved the release/);
  }
});

test("a failing model is asked again later and later", async () => {
  const jobs = Array.from({ length: 20 }, (_, at) => ({ ...JOB, id: `j${at}` }));
  const { running, of } = world({ jobs, complete: async () => ({ ...ANSWER, stopReason: "error", text: "" }) });
  await pause(330); // pauses of 20, 40, 80, 160 ms
  const failed = of("jobs/fail").length;
  assert.ok(failed >= 2 && failed <= 5, `${failed} in 330 ms`);
  await running.stop();
});

test("an Offbook that is away is asked again, and what it wants then is looked at anew", async () => {
  const { running, of, state, waiting } = world({ isAway: true });
  await eventually(() => of("status").length >= 2, "tries");
  assert.deepEqual(of("jobs/claim"), []);
  waiting.push(JOB);
  state.isAway = false;
  await eventually(() => of("jobs/complete").length === 1, "the work");
  await running.stop();
});

test("a job has the time of its lease, and is given back after it", async () => {
  const hanging = ({ signal }) => new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve({ ...ANSWER, text: "", stopReason: "aborted" }));
  });
  const began = Date.now();
  const { running, of } = world({ jobs: [{ ...JOB, leaseSeconds: 0.2 }], complete: hanging });
  await eventually(() => of("jobs/fail").length === 1, "the failure");
  assert.ok(Date.now() - began < 1_000);
  assert.match(of("jobs/fail")[0].reason, /not done in/);
  await running.stop();
});

test("stopping breaks off what is written, says so, and does not wait for a claim", async () => {
  const deaf = () => new Promise(() => undefined);
  const { running, of, problems } = world({ jobs: [JOB], complete: deaf });
  await eventually(() => of("jobs/claim").length === 1, "the claim");
  await pause(20);
  const began = Date.now();
  await running.stop();
  assert.ok(Date.now() - began < 500);
  assert.deepEqual(of("jobs/fail"), [{ jobId: "j1", agentId: "main", reason: "the host is stopping" }]);
  assert.deepEqual(problems, []);
  const idle = world({ jobs: [] });
  await eventually(() => idle.of("jobs/claim").length === 2, "the claim that waits");
  const then = Date.now();
  await idle.running.stop();
  assert.ok(Date.now() - then < 500);
});

test("a job that comes between two runs is written by the second", async () => {
  const first = world({});
  await eventually(() => first.of("jobs/claim").length === 2, "the claim that waits");
  await first.running.stop();
  first.state.give(JOB);
  const second = world({ endpoint: first.endpoint });
  await eventually(() => second.of("jobs/complete").length === 1, "the answer");
  await second.running.stop();
  assert.deepEqual(first.requests, []);
});

test("no job is begun while a turn runs, unless it never ends", async () => {
  let isBusy = true;
  const { running, requests } = world({ jobs: [JOB], isBusy: () => isBusy });
  await pause(350);
  assert.equal(requests.length, 0);
  isBusy = false;
  await eventually(() => requests.length === 1, "the job");
  await running.stop();
  const endless = world({ jobs: [{ ...JOB, leaseSeconds: 1 }], isBusy: () => true });
  await eventually(() => endless.requests.length === 1, "the job within its lease");
  await endless.running.stop();
});

test("the work runs on the host's path that carries nothing, where it has one", async () => {
  const carried = new AsyncLocalStorage();
  const name = Symbol.for("openclaw.detachedAsyncContext");
  globalThis[name] = new AsyncResource("empty");
  const seen = [];
  const complete = async () => {
    seen.push(carried.getStore());
    return ANSWER;
  };
  const { running, of } = carried.run("what was there while loading", () => world({ jobs: [JOB], complete }));
  delete globalThis[name];
  await eventually(() => of("jobs/complete").length === 1, "the answer");
  await running.stop();
  assert.deepEqual(seen, [undefined]);
});

test("an answer cut at its longest loses the sentence without an end; usage that is not told is not made up", () => {
  assert.equal(withoutLooseEnd("I moved the release. I told Da"), "I moved the release.");
  assert.equal(withoutLooseEnd("I. and then a very long sentence"), "I. and then a very long sentence");
  assert.equal(usageOf(undefined), undefined);
  assert.equal(usageOf({ totalTokens: 9 }), undefined);
});
