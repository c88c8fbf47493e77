import assert from "node:assert/strict";
import { test } from "node:test";
import { columns, dashboard, fitted, short, statusLines, tierBar, WIDTH } from "../dist/dashboard.js";
import { statusOf } from "./fake-memory.js";

const AT = new Date("2026-11-15T20:43:24Z");

function agent(name, messages, changes = {}) {
  const tiers = { hot: messages, warm: 0, cold: 0 };
  return statusOf(name, { counts: { ...statusOf(name).counts, messages }, tiers, ...changes });
}

function assertFits(text) {
  for (const line of text.split("\n")) {
    assert.ok(columns(line) <= WIDTH, `${columns(line)} columns: ${line}`);
    assert.doesNotMatch(line, /[\x00-\x1f\x7f]/, "no colours, no control characters");
  }
}

test("an agent without anything is shown as empty", () => {
  const text = dashboard([statusOf("main")], AT);
  assertFits(text);
  assert.match(text, /^1 agent · 0 messages · models \$0\.00$/m);
  assert.match(text, /^main {2,}0 messages$/m);
  assert.match(text, /tiers .* empty$/m);
  assert.match(text, /summaries none yet/);
  assert.match(text, /up 59 min/);
});

test("without agents it says so", () => {
  assert.match(dashboard([], AT), /no agents yet/);
});

test("millions fit, and everything that should be seen is there", () => {
  const text = dashboard(
    [
      agent("main", 12_345_678, {
        tiers: { hot: 1_000, warm: 2_345_678, cold: 9_999_000 },
        index: { entries: 12_345_678, embedded: 12_345_677, waiting: 1 },
        pinned: 1_234_567,
        summaries: {
          counts: { L1: 123_456, L2: 20_576, L3: 3_429 },
          waiting: 12,
          summarizers: ["x"],
          troubles: { model: "no key" },
        },
        costs: { tokens: 9e9, dollars: 1234.5 },
        capture: { sent: 10, received: 7, missing: 3, waiting: 0, clients: [] },
      }),
    ],
    AT,
  );
  assertFits(text);
  assert.match(text, /12\.3M messages$/m);
  assert.match(text, /1,000 \/ 2\.3M \/ 10\.0M$/m);
  assert.match(text, /99 %$/m, "not all embedded is never 100 %");
  assert.match(text, /L1 123\.5k, L2 20\.6k, L3 3,429/);
  assert.match(text, /12 to summarise, 1 to index · \$1234\.50/);
  assert.match(text, /! 3 messages sent, never received: offbook doctor/);
  assert.match(text, /! model: no key/);
});

test("the bar shows what there is, however little, and is always as wide", () => {
  assert.equal(tierBar([1, 0, 0]), "█".repeat(24));
  assert.equal(tierBar([1, 1_000_000, 1]), `█${"▒".repeat(22)}░`);
  assert.equal(tierBar([1, 1, 1]), `${"█".repeat(8)}${"▒".repeat(8)}${"░".repeat(8)}`);
  for (const counts of [
    [0, 0, 0],
    [1, 2, 4],
    [5, 5, 1],
    [7, 0, 3],
    [999_999, 1, 1],
  ]) {
    assert.equal(tierBar(counts).length, 24, String(counts));
  }
});

test("names of wide letters keep the columns", () => {
  const text = dashboard([agent("研究助手", 7), agent("main", 5), agent("한국어-비서", 3), agent("🦞 claw", 2)], AT);
  assertFits(text);
  const headings = text.split("\n").filter((line) => /\d messages$/.test(line) && !line.includes("·"));
  assert.equal(headings.length, 4);
  for (const line of headings) assert.equal(columns(line), WIDTH, line);
  assert.equal(columns("研究"), 4);
  assert.equal(columns("e\u0301"), 1);
  assert.equal(columns("👩‍💻"), 2);
  assert.equal(fitted("研究助手", 6), "研究… ");
});

test("a name as long as a name may be is cut, and cannot break the picture", () => {
  const text = dashboard([agent("長".repeat(128), 7), agent("a\n```\u001b[31m\u202eb", 1)], AT);
  assertFits(text);
  assert.match(text, /長… {1,2}7 messages$/m);
  assert.doesNotMatch(text, /`|\u202e/);
});

test("of thirty agents the largest are shown and the others counted", () => {
  const many = Array.from({ length: 30 }, (_, number) => agent(`agent-${number}`, number));
  const text = dashboard(many, AT);
  assertFits(text);
  assert.match(text, /^agent-29 /m);
  assert.match(text, /^agent-22 /m);
  assert.doesNotMatch(text, /^agent-21 /m);
  assert.match(text, /^… and 22 more agents with 231 messages$/m);
  assert.doesNotMatch(dashboard(many.slice(0, 10), AT), /more agent/);
});

test("status has every count by its name", () => {
  const text = statusLines(
    agent("main", 1, {
      retrievals: 9,
      pinned: 2,
      counts: { messages: 1, sessions: 1, duplicates: 4 },
      tiers: { hot: 1, warm: 0, cold: 1_234 },
      summaries: { counts: { L1: 12, L2: 2 }, waiting: 0, summarizers: ["extractive"] },
      lessons: { learnt: 4, accepted: 2, edited: 1, rejected: 3 },
      forgets: 2,
    }),
    AT,
  );
  const names = text
    .split("\n")
    .slice(1)
    .map((line) => line.split(" ")[0]);
  assert.deepEqual(names, [
    "stores",
    "retrievals",
    "tiers",
    "prunes",
    "archives",
    "syntheses",
    "chunks",
    "pins",
    "backlog",
    "models",
    "capture",
  ]);
  assert.match(text, /^stores +1 message in 1 session; 4 came twice/m);
  assert.match(text, /^retrievals +9$/m);
  assert.match(text, /^archives +1,234 cold messages$/m);
  assert.match(text, /^syntheses +L1 12, L2 2; 7 lessons, 3 rejected$/m);
  assert.match(text, /^prunes +forgotten for good 2 times; /m);
  assert.match(text, /^pins +2$/m);
});

test("a provider that knows no lessons and has nothing cold", () => {
  const text = statusLines(agent("main", 1), AT);
  assert.match(text, /^archives +0 cold messages$/m);
  assert.match(text, /^syntheses +no summaries yet; 0 lessons$/m);
  assert.match(text, /^prunes +none: /m);
});

test("numbers are short where they are long", () => {
  assert.deepEqual([0, 9_999, 10_000, 999_949, 999_950, 1_234_567, 999_950_000].map(short), [
    "0",
    "9,999",
    "10.0k",
    "999.9k",
    "1.0M",
    "1.2M",
    "1.0G",
  ]);
});
