/** Every message that the host writes to a transcript goes to the outbox, once, in the order it was written.
 *
 * The host tells when a transcript has grown, but not of every message (results of tools come without a word). So its word is
 * only taken for a sign: the transcript is read on from where it was read last. What this process reads of a session for the
 * first time may be stored already; there Offbook is asked what it lacks. Identity is the entry's id in the transcript.
 */
import type { Provider } from "./client.js";
import type { HostMessage, TranscriptUpdate } from "./host.js";
import { wireMessage } from "./messages.js";
import type { Outbox } from "./outbox.js";
import type { Report } from "./report.js";

export interface TranscriptEntry {
  id: string;
  message: HostMessage;
}

export interface TranscriptPage {
  entries: TranscriptEntry[];
  /** Where to read on. */
  cursor: string;
  /** The cursor given no longer holds: these are from the beginning. */
  isFromTheBeginning: boolean;
}

/** Reads a session's transcript page by page, behind the cursor or from its beginning. */
export type ReadTranscript = (session: Place, cursor: string | undefined) => AsyncIterable<TranscriptPage>;

export interface Place {
  agentId: string;
  sessionKey: string;
  sessionId: string;
}

export interface Capture {
  take(update: TranscriptUpdate): void;
  /** Read on now: all that the transcript has is in the outbox afterwards. */
  read(place: Place): Promise<void>;
  /** Wait until all that was told of a session is in the outbox; false where that takes longer. */
  settled(sessionKey: string, deadlineMs: number): Promise<boolean>;
}

const INCOGNITO = /^agent:[^:]+:(?:dashboard|subagent|internal-session-effects):incognito-[^:]+$/u;
const SESSIONS_KEPT = 1_000;
const IDS_ASKED = 1_000;

interface Following {
  readonly place: Place;
  cursor?: string;
  /** Told of since the last look. */
  told: TranscriptUpdate[];
  reading?: Promise<void>;
}

/** The host keeps these in memory only: so do we, by not recording them. */
export function isPrivate(sessionKey: string): boolean {
  return INCOGNITO.test(sessionKey.trim().toLowerCase());
}

export function capture(
  outbox: Outbox,
  wake: () => void,
  provider: Provider,
  readTranscript: ReadTranscript,
  report: Report,
): Capture {
  const sessions = new Map<string, Following>();

  function following(place: Place): Following {
    const known = sessions.get(place.sessionKey);
    const state = known?.place.sessionId === place.sessionId ? known : { place, told: [] };
    sessions.delete(place.sessionKey);
    sessions.set(place.sessionKey, state); // the one told of last is the last to go
    for (const [key, oldest] of sessions) {
      if (sessions.size <= SESSIONS_KEPT) break;
      if (!oldest.reading) sessions.delete(key);
    }
    return state;
  }

  function take(update: TranscriptUpdate): void {
    const place = placeOf(update);
    if (!place || isPrivate(place.sessionKey)) return;
    following(place).told.push(update);
    void read(place);
  }

  async function read(place: Place): Promise<void> {
    const state = following(place);
    state.reading ??= readOn(state).finally(() => delete state.reading);
    await state.reading;
  }

  async function readOn(state: Following): Promise<void> {
    do {
      const told = state.told.splice(0);
      try {
        await readBehind(state);
      } catch (error) {
        // Better what was told than nothing: it has the ids of the transcript.
        for (const { message, messageId } of told) if (message && messageId) send(state.place, { id: messageId, message });
        delete state.cursor; // the next look compares from the beginning
        report.problem("a transcript could not be read", `${state.place.sessionKey}: ${String(error)}`);
      }
    } while (state.told.length > 0);
  }

  async function readBehind(state: Following): Promise<void> {
    let isFirstLook = state.cursor === undefined;
    for await (const page of readTranscript(state.place, state.cursor)) {
      isFirstLook ||= page.isFromTheBeginning;
      const lacking = isFirstLook ? await lackingOf(state.place, page.entries) : page.entries;
      if (!lacking.every((entry) => send(state.place, entry))) return; // the outbox is full: read again from here
      state.cursor = page.cursor;
    }
  }

  /** False where there is no room. */
  function send(place: Place, { id, message }: TranscriptEntry): boolean {
    const wire = wireMessage(id, message, place.sessionId);
    const isIn = outbox.add({ verb: "onMessage", body: { sessionId: place.sessionKey, agentId: place.agentId, message: wire } });
    if (isIn) report.captured(place.sessionKey, id);
    else report.problem("the outbox is full", `messages of ${place.sessionKey} stay in the host's transcript until there is room`);
    wake();
    return isIn;
  }

  /** Where nobody answers, all of them: what is known already is not stored twice. */
  async function lackingOf(place: Place, entries: TranscriptEntry[]): Promise<TranscriptEntry[]> {
    const missing = new Set<string>();
    for (let at = 0; at < entries.length; at += IDS_ASKED) {
      const ids = entries.slice(at, at + IDS_ASKED).map((entry) => entry.id);
      try {
        const answer = await provider.call("missing", { sessionId: place.sessionKey, agentId: place.agentId, ids });
        for (const id of answer.missing) missing.add(id);
      } catch {
        for (const id of ids) missing.add(id);
      }
    }
    return entries.filter((entry) => missing.has(entry.id));
  }

  async function settled(sessionKey: string, deadlineMs: number): Promise<boolean> {
    const reading = sessions.get(sessionKey)?.reading;
    if (!reading) return true;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), deadlineMs)));
    return Promise.race([reading.then(() => true as const), late]).finally(() => clearTimeout(timer));
  }

  return { take, read, settled };
}

function placeOf(update: TranscriptUpdate): Place | undefined {
  const agentId = update.target?.agentId ?? update.agentId;
  const sessionKey = update.target?.sessionKey ?? update.sessionKey;
  const sessionId = update.target?.sessionId ?? update.sessionId;
  return agentId && sessionKey && sessionId ? { agentId, sessionKey, sessionId } : undefined;
}
