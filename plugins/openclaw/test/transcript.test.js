import assert from "node:assert/strict";
import { test } from "node:test";
import { GONE } from "../dist/capture.js";
import { transcriptPages } from "../dist/transcript.js";

const PLACE = { agentId: "main", sessionKey: "agent:main:chat", sessionId: "one" };
const entry = (id) => ({ type: "message", id, message: { role: "user", content: id } });

/** A host that answers one page after the other. */
function host(...pages) {
  const asked = [];
  const readSessionTranscriptRawDelta = async (request) => {
    asked.push(request);
    return pages[asked.length - 1];
  };
  return { asked, readSessionTranscriptRawDelta };
}

async function all(reader, cursor) {
  const pages = [];
  for await (const page of transcriptPages(PLACE, cursor, reader)) pages.push(page);
  return pages;
}

test("page by page, messages only, behind the cursor", async () => {
  const reader = host(
    { kind: "page", cursor: "c2", events: [entry("a"), { type: "reset", id: "r" }], hasMore: true },
    { kind: "page", cursor: "c3", events: [{ event: entry("b") }], hasMore: false },
  );
  const pages = await all(reader, "c1");
  assert.deepEqual(pages.map((page) => [page.cursor, page.entries.map(({ id }) => id), page.isFromTheBeginning]), [
    ["c2", ["a"], false],
    ["c3", ["b"], false],
  ]);
  assert.deepEqual(reader.asked.map(({ cursor }) => cursor), ["c1", "c2"]);
});

test("one that was replaced is read from its beginning, and says so", async () => {
  const pages = await all(host({ kind: "reset", cursor: "c0" }, { kind: "page", cursor: "c1", events: [entry("a")] }), "old");
  assert.equal(pages[0].isFromTheBeginning, true);
});

test("one that is not there is no empty one", async () => {
  await assert.rejects(all(host({ kind: "missing" })), { name: GONE });
});

test("one that is replaced for ever, or has no cursor, is not read to its end", async () => {
  const reset = { kind: "reset", cursor: "c0" };
  await assert.rejects(all(host(reset, reset, reset, reset)), /replaced 4 times/);
  await assert.rejects(all(host({ kind: "reset" })), /replaced/);
  await assert.rejects(all(host({ kind: "page", events: [] })), /no cursor/);
});
