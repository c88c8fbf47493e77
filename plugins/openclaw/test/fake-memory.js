/** A provider as far as tools and commands see it. The shapes are those of a real one's answers. */

export function statusOf(agentId, changes = {}) {
  return {
    agentId,
    version: "0.1.0",
    store: "sqlite",
    startedAt: "2026-11-15T19:43:24.171299Z",
    counts: {
      messages: 0,
      chars: 0,
      sessions: 0,
      noise: 0,
      duplicates: 0,
      conflicts: 0,
      redactions: 0,
      blobs: 0,
      auditEvents: 0,
    },
    tiers: { hot: 0, warm: 0, cold: 0 },
    pinned: 0,
    retrievals: 0,
    index: { entries: 0, embedded: 0, waiting: 0, model: "Xenova/all-MiniLM-L6-v2" },
    summaries: { counts: {}, waiting: 0, summarizers: ["extractive"] },
    backlog: 0,
    costs: { tokens: 0, dollars: 0 },
    capture: { sent: 0, received: 0, missing: 0, waiting: 0, clients: [] },
    sessions: [],
    agents: [agentId],
    hotHours: { base: 6, bump: 2, most: 48 },
    ...changes,
  };
}

export function entryOf(changes = {}) {
  return {
    id: "m100000005",
    agentId: "main",
    sessionId: "agent:main:main",
    text: "Correction: the gateway port is 18790 now.",
    ts: "2026-11-12T10:00:00Z",
    score: 0.374551,
    foundBy: ["text", "meaning"],
    span: { firstSeq: 5, lastSeq: 5 },
    tier: "hot",
    pinned: false,
    origin: "user",
    ...changes,
  };
}

export function away() {
  return Object.assign(new Error("nobody answers"), {
    kind: "unreachable",
    retryable: true,
    detail: "nobody answers at unix:/nowhere/offbook.sock",
    next: "start it with `offbook serve`",
  });
}

export function refused(detail) {
  return Object.assign(new Error(detail), { kind: "refused", status: 404, retryable: false, detail, next: "" });
}

/** `answers`: verb → a value, or a function of the body. An error is thrown. `calls` has what was asked. */
export function fakeMemory(answers = {}) {
  const calls = [];
  return {
    calls,
    endpoint: "unix:/somewhere/offbook.sock",
    async call(verb, body) {
      calls.push([verb, body]);
      const answer = answers[verb];
      const value = typeof answer === "function" ? answer(body) : answer;
      if (value === undefined) throw refused(`there is no answer to ${verb} in this test`);
      if (value instanceof Error) throw value;
      return structuredClone(value);
    },
  };
}

/** A host that only keeps what is registered. */
export function fakeHost() {
  const host = { tools: {}, commands: {}, methods: {}, clis: [] };
  host.api = {
    registerTool: (factory, options) => void (host.tools[options.name] = factory),
    registerCommand: (command) => void (host.commands[command.name] = command),
    registerGatewayMethod: (name, handler, options) => void (host.methods[name] = { handler, options }),
    registerCli: (registrar, options) => void host.clis.push({ registrar, options }),
  };
  return host;
}
