import assert from "node:assert/strict";
import { test } from "node:test";
import { dueAt, isDue, isWorthwhile, talkWindow, targetTokens } from "../dist/sizes.js";

/** A talk of which the host reckons a quarter more than the provider counts, as of everything. */
function load(window, overhead, talk, more = {}) {
  const given = { window, overhead, talk, pending: 0, answerRoom: 0, ...more };
  return { hostOverhead: overhead * 1.25, hostTalk: talk * 1.25, hostPending: given.pending * 1.25, ...given };
}

const WINDOWS = [16_000, 24_000, 32_000, 64_000, 128_000, 200_000, 1_000_000];
const OVERHEADS = [0, 2_000, 6_000, 10_000];

test("a swap is due before the host would compact by itself, and while there is room for the answer by the host's count", () => {
  for (const window of WINDOWS) {
    for (const overhead of OVERHEADS) {
      const limit = dueAt(load(window, overhead, 1_000));
      const reserve = Math.min(window / 4, 20_000);
      assert.ok(overhead + limit <= Math.max(overhead, (window - reserve) * 0.97), `${window} ${overhead}`);
      const room = Math.min(4_096, window * 0.15);
      assert.ok(limit === 0 || (overhead + limit) * 1.25 <= window - room, `${window} ${overhead}`);
    }
  }
  const unhurried = load(200_000, 0, 1_000, { hostTalk: 1_000 });
  assert.equal(dueAt(unhurried), 170_000);
  assert.equal(dueAt({ ...unhurried, answerRoom: 64_000 }), 133_000);
});

test("a swap goes to 40 % of the window, or leaves the talk a fifth of it, and the next comes 45 % later where that can be", () => {
  assert.equal(targetTokens(load(200_000, 0, 170_000, { hostTalk: 170_000 })), 80_000);
  for (const window of WINDOWS) {
    for (const overhead of OVERHEADS) {
      const full = load(window, overhead, 1_000);
      const [limit, target] = [dueAt(full), targetTokens(full)];
      if (limit === 0) continue;
      assert.ok(overhead + target <= Math.max(window * 0.5, overhead + window * 0.25), `${window} ${overhead}: ${target}`);
      const grown = Math.min(window * 0.45, limit / 2, limit - window * 0.2);
      assert.ok(limit - target >= grown - 1, `${window} ${overhead}: from ${limit} to ${target}`);
    }
  }
});

test("where instructions leave too little, a swap that frees half of the talk has to do", () => {
  const roomy = load(200_000, 10_000, 140_000, { hostOverhead: 12_500 });
  assert.equal(isWorthwhile({ ...roomy, talk: dueAt(roomy) }), true);
  assert.ok(dueAt(roomy) - targetTokens(roomy) >= talkWindow(roomy) / 4);
  const tight = load(16_000, 10_000, 3_000);
  assert.equal(isWorthwhile({ ...tight, talk: dueAt(tight) }), false);
  assert.ok(targetTokens(tight) <= Math.max(800, dueAt(tight) / 2));
});

test("what the running turn adds is room that the conversation does not have", () => {
  const [plain, recalling] = [load(24_000, 8_000, 5_000), load(24_000, 8_000, 5_000, { pending: 2_000 })];
  assert.ok(Math.abs(dueAt(plain) - dueAt(recalling) - 2_000) <= 1);
  assert.ok(targetTokens(recalling) <= dueAt(recalling) / 2);
  const flooded = load(24_000, 8_000, 5_000, { pending: 14_000 });
  assert.equal(dueAt(flooded), 0);
  assert.equal(targetTokens(flooded), 1_200);
});

test("a swap that left little room is not followed by another at once", () => {
  const limit = dueAt(load(24_000, 8_000, 1_000));
  assert.equal(isDue(load(24_000, 8_000, limit - 1), 0), false);
  assert.equal(isDue(load(24_000, 8_000, limit + 1), 0), true);
  assert.equal(isDue(load(24_000, 8_000, limit + 1), limit), false);
  assert.equal(isDue(load(24_000, 8_000, limit * 1.3), limit), true);
});
