import assert from "node:assert/strict";
import { test } from "node:test";
import { wireMessage } from "../dist/messages.js";
import { assembled, BOUNDARY, estimatedTokens, FORGOTTEN, GOES_ON, hostMessage, print, reportedUsage, windowOf } from "../dist/window.js";

/** A small generator with a seed, so that what fails can be made to fail again. */
function random(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state % below;
  };
}

function conversation(turns, pick = random(1)) {
  const messages = [];
  let time = 1_700_000_000_000;
  for (let turn = 0; turn < turns; turn += 1) {
    messages.push({ role: "user", content: `question ${turn}`, timestamp: (time += 1 + pick(500)) });
    if (pick(3) === 0) {
      const call = `call_${turn}`;
      const content = [{ type: "toolCall", id: call, name: "look", arguments: { turn } }];
      messages.push({ role: "assistant", content, timestamp: (time += 1 + pick(50)) });
      messages.push({ role: "toolResult", toolCallId: call, toolName: "look", content: [{ type: "text", text: "seen" }], timestamp: (time += 1) });
    }
    messages.push({ role: "assistant", content: [{ type: "text", text: `answer ${turn}` }], timestamp: (time += 1 + pick(500)) });
  }
  return messages;
}

/** What a provider answers: memory for everything before `from`, the rest word for word. */
function swap(messages, from, generation = 1) {
  const tail = messages.slice(from).map((message, at) => wireMessage(`id-${from + at}`, message, "host"));
  return { generation, messages: [...(from > 0 ? [{ role: "assistant", content: `memory of ${from} messages` }] : []), ...tail] };
}

test("without a swap and without memory the messages are the host's own", () => {
  const messages = conversation(5);
  assert.deepEqual(assembled(messages, undefined, ""), messages);
});

test("where nothing was said yet, the memory bears the time of its making, and keeps it", () => {
  const once = assembled([], undefined, "stable", 1_700_000_000_000);
  assert.deepEqual(once.map((message) => message.timestamp), [1_700_000_000_000, 1_700_000_000_000]);
  assert.deepEqual(assembled(once, undefined, "stable", 1_800_000_000_000), once);
});

test("every message is shown once: in memory before the cut, as the host has it from there on", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const pick = random(seed);
    const messages = conversation(1 + pick(30), pick);
    const users = messages.flatMap((message, at) => (message.role === "user" ? [at] : []));
    const from = users[pick(users.length)];
    const window = windowOf(swap(messages, from), messages, 0);
    const grown = [...messages, ...conversation(pick(4), random(seed + 1)).map((message) => ({ ...message, timestamp: message.timestamp + 1e9 }))];
    const shown = assembled(grown, window, "stable");
    const lead = shown.findIndex((message) => message === grown[from]);
    assert.deepEqual(shown.slice(lead), grown.slice(from), `seed ${seed}`);
    assert.equal(lead, 2, `seed ${seed}`);
    assert.equal(shown[1].content[0].text.includes("stable"), true);
    assert.equal(shown[1].content[0].text.includes(`memory of ${from} messages`), from > 0);
  }
});

test("assembling what was assembled changes nothing", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const pick = random(seed);
    const messages = conversation(1 + pick(20), pick);
    const from = pick(messages.length);
    const windows = [undefined, windowOf(swap(messages, from), messages, 0), windowOf(swap(messages, from), [], 0)];
    for (const window of windows) {
      for (const memory of ["", "stable"]) {
        const host = window?.cut === "" ? [] : messages;
        const once = assembled(host, window, memory);
        assert.deepEqual(assembled(once, window, memory), once, `seed ${seed}`);
      }
    }
  }
});

test("the user speaks between memory and an answer that comes first", () => {
  const messages = conversation(6, random(3));
  const from = messages.findIndex((message, at) => at > 3 && message.role === "assistant");
  const shown = assembled(messages, windowOf(swap(messages, from), messages, 0), "");
  assert.deepEqual(shown.slice(0, 3).map((message) => message.role), ["user", "assistant", "user"]);
  assert.equal(shown[0].content, BOUNDARY);
  assert.equal(shown[2].content, GOES_ON);
});

test("a large message that the swap shortened stays short", () => {
  const messages = conversation(3);
  messages[0] = { ...messages[0], content: "x".repeat(50_000) };
  const answer = swap(messages, 0);
  answer.messages[0] = { ...answer.messages[0], content: "x … x" };
  const shown = assembled(messages, windowOf(answer, messages, 0), "");
  assert.equal(shown[0].content, "x … x");
  assert.equal(shown.length, messages.length);
});

test("what the host no longer has is put back word for word", () => {
  const messages = conversation(4);
  const window = windowOf(swap(messages, 2), [], 0);
  const shown = assembled([], window, "");
  assert.deepEqual(shown.slice(-messages.slice(2).length).map(print), messages.slice(2).map(print));
  const next = { role: "user", content: "and now?", timestamp: 1_800_000_000_000 };
  assert.equal(assembled([next], window, "").at(-1), next);
});

test("a window of another transcript hides nothing", () => {
  const window = windowOf(swap(conversation(9), 4), conversation(9), 0);
  const other = conversation(3).map((message) => ({ ...message, timestamp: message.timestamp + 5 }));
  assert.deepEqual(assembled(other, window, ""), other);
});

test("messages come back from the log as the host writes them", () => {
  const tool = { role: "toolResult", toolCallId: "c", toolName: "look", content: [{ type: "text", text: "no" }], isError: true, timestamp: 5 };
  assert.deepEqual(hostMessage(wireMessage("i", tool, "host")), tool);
  assert.equal(print(hostMessage(wireMessage("i", tool, "host"))), print(tool));
});

test("usage from before a swap does not count for the context after it", () => {
  const answer = { role: "assistant", content: "", timestamp: 100, usage: { input: 10, output: 2, cacheRead: 30 } };
  assert.deepEqual(reportedUsage([answer], 0), [{ message: answer, tokens: 42 }]);
  assert.deepEqual(reportedUsage([answer], 100), []);
});

test("images and calls count", () => {
  const call = { role: "assistant", content: [{ type: "toolCall", id: "c", name: "n", arguments: { text: "yes ".repeat(100) } }] };
  assert.ok(estimatedTokens([call]) > 100);
  assert.ok(estimatedTokens([{ role: "user", content: [{ type: "image", data: "zz" }] }]) > 1_000);
});

test("messages of the turn that runs are left to the host, and the memory stands for all before it", () => {
  const messages = conversation(3);
  const running = conversation(1).map((message) => ({ ...message, timestamp: message.timestamp + 1e9 }));
  const window = windowOf(swap([...messages, ...running], messages.length), messages, 0);
  assert.deepEqual(window.restored, []);
  const shown = assembled(messages, window, "");
  assert.deepEqual(shown.map((message) => message.role), ["user", "assistant"]);
  assert.deepEqual(assembled(shown, window, ""), shown);
  assert.deepEqual(assembled([...messages, ...running], window, "").slice(2), running);
});

test("a long result is shortened, a call never: both are there, in their places", () => {
  const call = { role: "assistant", content: [{ type: "toolCall", id: "c", name: "write", arguments: { text: "z".repeat(9_000) } }], timestamp: 20 };
  const result = { role: "toolResult", toolCallId: "c", toolName: "write", content: [{ type: "text", text: "y".repeat(9_000) }], timestamp: 30 };
  const messages = [{ role: "user", content: "go", timestamp: 10 }, call, result, { role: "assistant", content: [{ type: "text", text: "done" }], timestamp: 40 }];
  const wire = messages.map((message, at) => wireMessage(`id-${at}`, message, "host"));
  // As the provider shortens them: the call as words, the result as a note of the user's.
  wire[1] = { id: "id-1", role: "assistant", content: "[call write …]", ts: wire[1].ts };
  wire[2] = { id: "id-2", role: "user", content: "result of write: y … y", ts: wire[2].ts };
  const window = windowOf({ generation: 1, messages: [{ role: "assistant", content: "memory" }, ...wire] }, messages, 0);
  const shown = assembled(messages, window, "").slice(2);
  assert.deepEqual(shown[1], call);
  assert.equal(shown[2].role, "toolResult");
  assert.equal(shown[2].toolCallId, "c");
  assert.equal(shown[2].content[0].text, "result of write: y … y");
});

test("where nothing is kept word for word, the memory stands for everything, and what comes later follows it", () => {
  const messages = conversation(3);
  const window = windowOf({ generation: 1, messages: [{ role: "assistant", content: "memory of all" }] }, messages, 0);
  assert.deepEqual(assembled(messages, window, "").map((message) => message.role), ["user", "assistant"]);
  const next = { role: "user", content: "next", timestamp: messages.at(-1).timestamp + 10 };
  assert.deepEqual(assembled([...messages, next], window, "").slice(2), [next]);
});

test("a result whose call is not shown is told with the memory", () => {
  const result = { role: "toolResult", toolCallId: "c", toolName: "ls", content: [{ type: "text", text: "seen there" }], timestamp: 30 };
  const wire = wireMessage("id-2", result, "host");
  const window = windowOf({ generation: 1, messages: [{ role: "assistant", content: "memory" }, wire] }, [result], 0);
  assert.equal(window.memory, "memory\n\nseen there");
  assert.deepEqual(assembled([result], window, "").map((message) => message.role), ["user", "assistant"]);
});

test("a cut never falls between a call and its result", () => {
  const result = { role: "toolResult", toolCallId: "c", toolName: "ls", content: [{ type: "text", text: "x" }], timestamp: 30 };
  const next = { role: "user", content: "next", timestamp: 50 };
  const wire = [wireMessage("id-2", result, "host"), wireMessage("id-3", next, "host")];
  const window = windowOf({ generation: 1, messages: wire }, [result, next], 0);
  assert.equal(window.cut, print(next));
});

test("what was forgotten is not shown, though the host has it; a call keeps its result", () => {
  const messages = [
    { role: "user", content: "hello", timestamp: 1_000 },
    { role: "user", content: "the blue heron", timestamp: 2_000 },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "a blue heron" },
        { type: "text", text: "I look for the blue heron" },
        { type: "toolCall", id: "call_1", name: "look", arguments: { for: "the blue heron" } },
      ],
      timestamp: 3_000,
    },
    { role: "toolResult", toolCallId: "call_1", toolName: "look", content: [{ type: "text", text: "a blue heron" }], timestamp: 4_000 },
    { role: "assistant", content: [{ type: "text", text: "done" }], timestamp: 5_000 },
  ];
  const isForgotten = (message) => JSON.stringify(message).includes("heron");
  const kept = messages.map((message, at) => {
    const wire = wireMessage(`id-${at}`, message, "host");
    return isForgotten(message) ? { id: wire.id, role: wire.role, ts: wire.ts, content: FORGOTTEN } : wire;
  });
  const window = windowOf({ generation: 2, messages: [{ role: "assistant", content: "I recall." }, ...kept] }, messages, 9);
  const shown = assembled(messages, window, "").slice(2);
  assert.doesNotMatch(JSON.stringify([window, shown]), /heron/);
  assert.deepEqual([shown[0], shown[4]], [messages[0], messages[4]]);
  assert.equal(shown[1].content, FORGOTTEN);
  const call = { type: "toolCall", id: "call_1", name: "look", arguments: {} };
  assert.deepEqual(shown[2].content, [{ type: "text", text: FORGOTTEN }, call]);
  assert.deepEqual([shown[3].toolCallId, shown[3].content], ["call_1", [{ type: "text", text: FORGOTTEN }]]);
  assert.deepEqual(assembled(assembled(messages, window, ""), window, ""), assembled(messages, window, ""));
});
