import assert from "node:assert/strict";
import { test } from "node:test";
import { fitted, withPoint } from "../dist/calibration.js";

/** What `turns` turns of `tokens` estimated tokens report, where `ratio` of them are counted beside `overhead`. */
function points(turns, tokens, ratio, overhead, aside = () => 0) {
  let kept = [];
  for (let turn = 1; turn <= turns; turn += 1) {
    kept = withPoint(kept, { estimate: turn * tokens, reported: overhead + ratio * turn * tokens + aside(turn) });
  }
  return kept;
}

test("a language that is estimated too low is within a tenth after three turns", () => {
  for (const ratio of [1 / 0.83, 1 / 0.76, 1 / 0.73, 1 / 0.62]) {
    for (const tokens of [700, 1_500, 4_000]) {
      const fit = fitted(points(3, tokens, ratio, 10_000));
      const estimate = tokens * 4;
      const [predicted, real] = [fit.overhead + fit.ratio * estimate, 10_000 + ratio * estimate];
      assert.ok(Math.abs(predicted / real - 1) < 0.1, `${ratio} ${tokens}: ${predicted} for ${real}`);
      assert.ok(Math.abs(fit.ratio / ratio - 1) < 0.1, `${ratio} ${tokens}: ${fit.ratio}`);
    }
  }
});

test("the overhead is known before anything was reported, and after one turn that is heavy with tools", () => {
  assert.deepEqual(fitted([], 9_500), { overhead: 9_500, ratio: 1 });
  assert.deepEqual(fitted([]), { overhead: 0, ratio: 1 });
  assert.deepEqual(fitted([{ estimate: 500, reported: 9_500 }]), { overhead: 9_000, ratio: 1 });
  const calls = [300, 4_000, 9_000].map((estimate) => ({ estimate, reported: 10_000 + 1.3 * estimate }));
  const heavy = fitted(calls);
  assert.ok(Math.abs(heavy.overhead / 10_000 - 1) < 0.1, `${heavy.overhead}`);
});

test("what a turn adds beside its messages does not upset it, and no count is believed beyond bounds", () => {
  const noisy = fitted(points(40, 600, 1.2, 10_000, (turn) => (turn % 3) * 300));
  assert.ok(Math.abs(noisy.ratio / 1.2 - 1) < 0.1, `${noisy.ratio}`);
  assert.ok(Math.abs(noisy.overhead / 10_300 - 1) < 0.1, `${noisy.overhead}`);
  assert.equal(fitted(points(8, 5_000, 9, 0)).ratio, 2);
  const cached = fitted(points(8, 5_000, 0.01, 0));
  assert.deepEqual(cached, { overhead: 0, ratio: 0.6 });
});

test("the points that are kept lie far apart", () => {
  const kept = points(200, 500, 1, 10_000);
  assert.equal(kept.length, 8);
  assert.equal(kept.at(-1).estimate, 100_000);
  assert.ok(kept[0].estimate < 30_000, `${kept[0].estimate}`);
});
