/** What happened lately, in report.json: for `offbook openclaw doctor`, and for people. Nothing here throws. */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** As in package.json. */
export const VERSION = "0.1.0";
const SAVE_EVERY_MS = 1_000;
const PROBLEMS_KEPT = 20;
const LONGEST_DETAIL = 1_000;

export interface Problem {
  at: string;
  what: string;
  detail: string;
  /** How often in a row. */
  times: number;
}

export interface TurnNote {
  sessionKey: string;
  runId?: string | null;
  recallChars: number;
  memoryChars: number;
  tookMs: number;
  /** Why nothing came to mind; begins with `late` where there was no time. */
  error: string | null;
}

export interface AssembledNote {
  sessionKey: string;
  messagesIn: number;
  messagesOut: number;
  generation: number;
}

export interface ReportData {
  version: 1;
  plugin: string;
  pid: number;
  startedAt: string;
  savedAt: string | null;
  level: string;
  host: { version: string | null };
  provider: { endpoint: string; ok: boolean | null; checkedAt: string | null; error: string | null };
  capture: {
    messages: number;
    delivered: number;
    waiting: number;
    waitingBytes: number;
    turnedAway: number;
    refused: number;
    lastAt: string | null;
    lastEntryId: string | null;
    lastSessionKey: string | null;
    lastDeliveredAt: string | null;
  };
  turns: {
    prepared: number;
    injected: number;
    late: number;
    failed: number;
    last: (TurnNote & { at: string }) | null;
  };
  engine: {
    assembled: number;
    committed: number;
    swaps: number;
    fallbacks: number;
    /** `reason` is that of the newest swap. */
    last: (AssembledNote & { at: string; reason: string | null }) | null;
  };
  permissions: { conversation: boolean | null };
  agents: string[];
  problems: Problem[];
}

export interface Report {
  /** A message went to the outbox. */
  captured(sessionKey: string, entryId: string): void;
  delivered(messages: number): void;
  refused(): void;
  /** How the outbox is. */
  outbox(state: { readonly length: number; readonly bytes: number; readonly turnedAway: number }): void;
  /** The provider answered, or why not. */
  answered(endpoint: string, error: string | null): void;
  /** A turn was made ready, or why not. */
  turn(note: TurnNote): void;
  assembled(note: AssembledNote): void;
  committed(sessionKey: string): void;
  swapped(sessionKey: string, generation: number, reason: string): void;
  /** The host's own way was taken in the place of ours. */
  fellBack(sessionKey: string): void;
  conversationAllowed(allowed: boolean | null): void;
  problem(what: string, detail: string): void;
  /** Soon, at most once a second. Every change asks for it by itself. */
  save(): void;
  snapshot(): ReportData;
  /** Saves what is not saved yet. */
  close(): void;
}

export interface About {
  level: string;
  hostVersion: string | null;
  agents: string[];
}

export function openReport(folder: string, about: About, now: () => Date = () => new Date()): Report {
  const data: ReportData = {
    version: 1,
    plugin: VERSION,
    pid: process.pid,
    startedAt: now().toISOString(),
    savedAt: null,
    level: about.level,
    host: { version: about.hostVersion },
    provider: { endpoint: "", ok: null, checkedAt: null, error: null },
    capture: {
      messages: 0,
      delivered: 0,
      waiting: 0,
      waitingBytes: 0,
      turnedAway: 0,
      refused: 0,
      lastAt: null,
      lastEntryId: null,
      lastSessionKey: null,
      lastDeliveredAt: null,
    },
    turns: { prepared: 0, injected: 0, late: 0, failed: 0, last: null },
    engine: { assembled: 0, committed: 0, swaps: 0, fallbacks: 0, last: null },
    permissions: { conversation: null },
    agents: [...about.agents],
    problems: [],
  };
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const at = (): string => now().toISOString();

  function write(): void {
    clearTimeout(timer);
    timer = undefined;
    data.savedAt = at();
    const path = join(folder, "report.json");
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      writeFileSync(`${path}.new`, `${JSON.stringify(data, undefined, 1)}\n`, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    } catch {
      // A report that cannot be written stops nothing; the next change tries again.
    }
  }

  function save(): void {
    if (timer || isClosed) return;
    timer = setTimeout(write, SAVE_EVERY_MS);
    timer.unref();
  }

  /** Every note is a change of the data and a wish to save it. */
  function noted<Given extends unknown[]>(change: (...given: Given) => void): (...given: Given) => void {
    return (...given) => {
      change(...given);
      save();
    };
  }

  function problem(what: string, detail: string): void {
    const short = detail.slice(0, LONGEST_DETAIL);
    const newest = data.problems[0];
    if (newest?.what === what && newest.detail === short) {
      newest.at = at();
      newest.times += 1;
    } else {
      data.problems = [{ at: at(), what, detail: short, times: 1 }, ...data.problems].slice(0, PROBLEMS_KEPT);
    }
  }

  return {
    captured: noted((sessionKey: string, entryId: string) => {
      data.capture.messages += 1;
      Object.assign(data.capture, { lastAt: at(), lastEntryId: entryId, lastSessionKey: sessionKey });
    }),
    delivered: noted((messages: number) => {
      data.capture.delivered += messages;
      data.capture.lastDeliveredAt = at();
    }),
    refused: noted(() => {
      data.capture.refused += 1;
    }),
    outbox: noted(({ length, bytes, turnedAway }) => {
      Object.assign(data.capture, { waiting: length, waitingBytes: bytes, turnedAway });
    }),
    answered: noted((endpoint: string, error: string | null) => {
      data.provider = { endpoint, ok: error === null, checkedAt: at(), error };
    }),
    turn: noted((note: TurnNote) => {
      const outcome = note.error === null ? "prepared" : note.error.startsWith("late") ? "late" : "failed";
      data.turns[outcome] += 1;
      if (note.recallChars + note.memoryChars > 0) data.turns.injected += 1;
      data.turns.last = { at: at(), ...note };
    }),
    assembled: noted((note: AssembledNote) => {
      data.engine.assembled += 1;
      const reason = data.engine.last?.sessionKey === note.sessionKey ? data.engine.last.reason : null;
      data.engine.last = { at: at(), ...note, reason };
    }),
    committed: noted(() => {
      data.engine.committed += 1;
    }),
    swapped: noted((sessionKey: string, generation: number, reason: string) => {
      data.engine.swaps += 1;
      const last = data.engine.last?.sessionKey === sessionKey ? data.engine.last : { messagesIn: 0, messagesOut: 0 };
      data.engine.last = { ...last, at: at(), sessionKey, generation, reason };
    }),
    fellBack: noted((sessionKey: string) => {
      data.engine.fallbacks += 1;
      problem("the host's own compaction was used", sessionKey);
    }),
    conversationAllowed: noted((allowed: boolean | null) => {
      data.permissions.conversation = allowed;
    }),
    problem: noted(problem),
    save,
    snapshot: () => structuredClone(data),
    close: () => {
      if (isClosed) return;
      isClosed = true;
      write();
    },
  };
}
