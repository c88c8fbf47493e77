/** A provider made of bare sockets and whims, for the tests. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function folderFor(test) {
  const folder = mkdtempSync(join(tmpdir(), "offbook-"));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function settingsIn(home, more = {}) {
  return {
    level: "capture",
    home,
    endpoint: `unix://${join(home, "offbook.sock")}`,
    tokenFile: join(home, "token"),
    startDaemon: false,
    command: "offbook",
    turnDeadlineMs: 600,
    callDeadlineMs: 1500,
    outboxBytes: 64 * 1024 * 1024,
    hostModel: false,
    ...more,
  };
}

/** Listens on the socket of a home. `answer(request)` gets {verb, body, headers, connection, response} and gives
 * `{status, body}`, or undefined where it does as it likes. */
export async function serve(home, answer) {
  const seen = [];
  const sockets = new Set();
  let connections = 0;
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("error", () => {});
    request.on("end", async () => {
      const text = Buffer.concat(parts).toString();
      const asked = { verb: request.url.replace("/v1/", ""), text, headers: request.headers, request, response };
      asked.body = text ? JSON.parse(text) : undefined;
      seen.push(asked);
      const given = await answer(asked);
      if (given === undefined || response.destroyed) return;
      response.writeHead(given.status ?? 200, { "content-type": "application/json" });
      response.end(typeof given.body === "string" ? given.body : JSON.stringify(given.body ?? { ok: true }));
    });
  });
  server.on("connection", (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  await new Promise((resolve) => server.listen(home.startsWith("/") ? join(home, "offbook.sock") : 0, "127.0.0.1", resolve));
  return {
    seen,
    get connections() {
      return connections;
    },
    get port() {
      return server.address().port;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

export function problem(status, detail, retryable) {
  return { status, body: { type: "about:blank", title: "No", status, detail, retryable } };
}

/** A store that knows messages by their ids, as a provider does. */
export function store() {
  const messages = [];
  const ids = new Set();
  return {
    messages,
    take(body) {
      const given = body.messages ?? [body.message];
      const fresh = given.filter((message) => !ids.has(message.id));
      for (const message of fresh) {
        ids.add(message.id);
        messages.push({ sessionId: body.sessionId, ...message });
      }
      return { body: { accepted: fresh.length, duplicates: given.length - fresh.length, firstSeq: 1, lastSeq: messages.length } };
    },
  };
}

export function message(sessionId, id, content = `text ${id}`) {
  return { verb: "onMessage", body: { sessionId, agentId: "main", message: { id, role: "user", content } } };
}

export async function until(holds, withinMs = 15_000) {
  const ends = performance.now() + withinMs;
  while (!holds()) {
    if (performance.now() > ends) throw new Error(`not within ${withinMs} ms: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
