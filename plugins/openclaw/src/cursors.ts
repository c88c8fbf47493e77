/** How far each session's transcript was read, kept on disk: a new process reads on from there, and knows where to look.
 *
 * A cursor is written only once everything read before it is on the disk too. One that is lost or behind costs a comparison;
 * one that is ahead would cost messages.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Place } from "./host.js";

const SESSIONS_KEPT = 1_000;
const SAVE_EVERY_MS = 2_000;

interface Kept {
  agentId: string;
  sessionId: string;
  /** Missing where a session was told of and not yet read. */
  cursor?: string;
  /** When it was last spoken in, in milliseconds. */
  at: number;
  /** Whom it was read for: another one may know nothing of it. */
  endpoint: string;
  /** It was read to its end by one that was stopped. What was said since was said with nobody there to record it. */
  isClosed?: true;
}

export interface Cursors {
  /** Where the transcript of this very session was read to. */
  of(place: Place): string | undefined;
  /** The transcript that was read last under this key. */
  placeOf(sessionKey: string): Place | undefined;
  /** It was spoken in just now. */
  spoken(place: Place): void;
  readTo(place: Place, cursor: string | undefined): void;
  /** There is no such transcript any more. */
  forget(place: Place): void;
  /** The places spoken in since then that nobody has closed, the latest first. */
  openSince(at: number): Place[];
  /** All that is known now is on disk when this resolves; it never rejects. */
  save(): Promise<void>;
  /** Saves for the last time. All were read to their end but those under these keys. */
  close(unfinished: readonly string[]): Promise<void>;
}

/** `flush` brings to the disk what was read. */
export function openCursors(
  path: string,
  endpoint: string,
  flush: () => Promise<void>,
  warn: (text: string) => void,
): Cursors {
  const sessions = new Map<string, Kept>(Object.entries(read(path)));
  let timer: NodeJS.Timeout | undefined;
  let saving: Promise<void> = Promise.resolve();
  let savedAt = 0;
  let isChanged = false;
  let isClosed = false;
  let isFailing = false;

  const of = ({ sessionKey, sessionId }: Place): string | undefined => {
    const kept = sessions.get(sessionKey);
    return kept?.sessionId === sessionId && kept.endpoint === endpoint ? kept.cursor : undefined;
  };

  function placeOf(sessionKey: string): Place | undefined {
    const kept = sessions.get(sessionKey);
    return kept && { agentId: kept.agentId, sessionKey, sessionId: kept.sessionId };
  }

  function spoken(place: Place): void {
    keep(place, of(place), Date.now());
  }

  function readTo(place: Place, cursor: string | undefined): void {
    if (placeOf(place.sessionKey)?.sessionId !== place.sessionId) return; // the last look at one that was left
    if (of(place) !== cursor) keep(place, cursor, sessions.get(place.sessionKey)?.at ?? Date.now());
  }

  function keep({ agentId, sessionKey, sessionId }: Place, cursor: string | undefined, at: number): void {
    sessions.set(sessionKey, { agentId, sessionId, ...(cursor === undefined ? {} : { cursor }), at, endpoint });
    changed();
  }

  function forget({ sessionKey, sessionId }: Place): void {
    if (sessions.get(sessionKey)?.sessionId !== sessionId) return;
    sessions.delete(sessionKey);
    changed();
  }

  function openSince(at: number): Place[] {
    return newest(sessions)
      .filter(([, kept]) => kept.at >= at && !kept.isClosed)
      .map(([sessionKey, { agentId, sessionId }]) => ({ agentId, sessionKey, sessionId }));
  }

  function changed(): void {
    isChanged = true;
    if (timer || isClosed) return;
    timer = setTimeout(() => void save(), Math.max(0, savedAt + SAVE_EVERY_MS - Date.now()));
    timer.unref();
  }

  function save(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    savedAt = Date.now();
    saving = saving.then(write);
    return saving;
  }

  async function write(): Promise<void> {
    if (!isChanged) return;
    isChanged = false;
    if (sessions.size > SESSIONS_KEPT) for (const [key] of newest(sessions).slice(SESSIONS_KEPT)) sessions.delete(key);
    const text = JSON.stringify(Object.fromEntries(sessions)); // as it is before the flush: nothing in it is ahead
    try {
      await flush();
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(`${path}.new`, text, { mode: 0o600 });
      renameSync(`${path}.new`, path);
      isFailing = false;
    } catch (error) {
      isChanged = true;
      if (!isFailing) warn(`how far transcripts were read could not be kept in ${path} (${String(error)}); they are compared again`);
      isFailing = true;
    }
  }

  async function close(unfinished: readonly string[]): Promise<void> {
    isClosed = true;
    isChanged = true;
    for (const [key, kept] of sessions) if (kept.cursor !== undefined && !unfinished.includes(key)) kept.isClosed = true;
    await save();
  }

  return { of, placeOf, spoken, readTo, forget, openSince, save, close };
}

function newest(sessions: Map<string, Kept>): [string, Kept][] {
  return [...sessions].sort(([, one], [, other]) => other.at - one.at);
}

/** A file that is not there, or not ours to understand, is as good as none: sessions are compared from their beginning. */
function read(path: string): Record<string, Kept> {
  try {
    const found = JSON.parse(readFileSync(path, "utf8")) as Record<string, Partial<Kept> | null>;
    return Object.fromEntries(Object.entries(found).filter((entry): entry is [string, Kept] => isKept(entry[1])));
  } catch {
    return {};
  }
}

function isKept(kept: Partial<Kept> | null): kept is Kept {
  return (
    typeof kept?.agentId === "string" &&
    typeof kept.sessionId === "string" &&
    typeof kept.at === "number" &&
    typeof kept.endpoint === "string" &&
    (kept.cursor === undefined || typeof kept.cursor === "string")
  );
}
