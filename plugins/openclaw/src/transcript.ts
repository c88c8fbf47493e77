/** The host's own transcript of a session, through the host's own reader. */
import { GONE, type TranscriptEntry, type TranscriptPage } from "./capture.js";
import { detached } from "./detached.js";
import type { HostMessage, Place } from "./host.js";

const EVENTS_PER_PAGE = 500;
const LARGEST_PAGE_BYTES = 64 * 1024 * 1024;
/** A transcript that is replaced while it is read is read again, but not for ever. */
const MOST_RESETS = 3;

interface RawEvent {
  type?: string;
  id?: string;
  message?: HostMessage;
}

interface RawPage {
  kind: "page" | "reset" | "missing";
  cursor?: string;
  events?: (RawEvent & { event?: RawEvent })[];
  hasMore?: boolean;
  requiredBytes?: number;
}

export interface TranscriptReader {
  readSessionTranscriptRawDelta(request: object): Promise<RawPage>;
}

/** Resolved by the host for its plugins; there is no such package beside us. */
const READER = "openclaw/plugin-sdk/session-transcript-runtime";

/** Throws where the transcript is not there, or not read to its end: what was told of it is not lost by that. */
export async function* transcriptPages(
  place: Place,
  cursor: string | undefined,
  hostReader?: TranscriptReader,
): AsyncGenerator<TranscriptPage> {
  const reader = hostReader ?? ((await import(READER)) as TranscriptReader);
  let at = cursor;
  let maxBytes: number | undefined;
  let resets = 0;
  for (;;) {
    const request = {
      ...place,
      maxEvents: EVENTS_PER_PAGE,
      ...(at === undefined ? {} : { cursor: at }),
      ...(maxBytes === undefined ? {} : { maxBytes }),
    };
    // Outside the turn that told of it: within one, the host shows only what was there before the turn.
    const page = await detached(() => reader.readSessionTranscriptRawDelta(request));
    if (page.kind === "reset" && page.cursor !== undefined && resets < MOST_RESETS) {
      resets += 1;
      at = page.cursor;
      continue;
    }
    if (page.kind === "missing") throw gone(place);
    if (page.kind === "reset") throw new Error(`it was replaced ${resets + 1} times while it was read`);
    if (page.cursor === undefined) throw new Error("the host's reader gave no cursor");
    const events = page.events ?? [];
    if (events.length === 0 && page.requiredBytes !== undefined && maxBytes === undefined) {
      if (page.requiredBytes > LARGEST_PAGE_BYTES) throw new Error(`an entry of ${page.requiredBytes} bytes`);
      maxBytes = LARGEST_PAGE_BYTES;
      continue;
    }
    maxBytes = undefined;
    at = page.cursor;
    yield { entries: events.map((row) => row.event ?? row).filter(isEntry), cursor: at, isFromTheBeginning: resets > 0 };
    if (!page.hasMore) return;
  }
}

function gone({ sessionId }: Place): Error {
  const error = new Error(`the host has no transcript of ${sessionId}`);
  error.name = GONE;
  return error;
}

function isEntry(event: RawEvent): event is TranscriptEntry & RawEvent {
  return event.type === "message" && !!event.id && !!event.message;
}
