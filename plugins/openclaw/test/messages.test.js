/** The plugin and `offbook import openclaw` store the same message: both are held to the same cases. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { wireMessage } from "../dist/messages.js";

const file = new URL("../../../tests/data/openclaw_messages.json", import.meta.url);
const cases = JSON.parse(readFileSync(file, "utf8"));

test("there are cases", () => assert.ok(cases.length >= 15));

for (const { what, entryId, hostSessionId, message, wire } of cases) {
  test(`mapping: ${what}`, () => {
    const before = structuredClone(message);
    // Through JSON, as it is sent: a field that holds undefined is no field.
    assert.deepEqual(JSON.parse(JSON.stringify(wireMessage(entryId, message, hostSessionId ?? undefined))), wire);
    assert.deepEqual(message, before, "the host's own message is not touched");
  });
}
