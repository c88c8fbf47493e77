/** The host's own transcript of a session, through the host's own reader. */
import type { Place, TranscriptEntry } from "./capture.js";
import { detached } from "./detached.js";
import type { HostMessage } from "./host.js";

const EVENTS_PER_PAGE = 500;
const LARGEST_PAGE_BYTES = 64 * 1024 * 1024;

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

interface TranscriptReader {
  readSessionTranscriptRawDelta(request: object): Promise<RawPage>;
}

/** Resolved by the host for its plugins; there is no such package beside us. */
const READER = "openclaw/plugin-sdk/session-transcript-runtime";

export async function* transcriptPages(place: Place): AsyncGenerator<TranscriptEntry[]> {
  const reader = (await import(READER)) as TranscriptReader;
  let cursor: string | undefined;
  let maxBytes: number | undefined;
  for (;;) {
    const request = {
      ...place,
      maxEvents: EVENTS_PER_PAGE,
      ...(cursor === undefined ? {} : { cursor }),
      ...(maxBytes === undefined ? {} : { maxBytes }),
    };
    const page = await detached(() => reader.readSessionTranscriptRawDelta(request));
    if (page.kind !== "page") return;
    const events = page.events ?? [];
    if (events.length === 0 && page.requiredBytes !== undefined && maxBytes === undefined) {
      if (page.requiredBytes > LARGEST_PAGE_BYTES) throw new Error(`an entry of ${page.requiredBytes} bytes`);
      maxBytes = LARGEST_PAGE_BYTES;
      continue;
    }
    maxBytes = undefined;
    yield events
      .map((row) => row.event ?? row)
      .filter((event): event is TranscriptEntry & RawEvent => event.type === "message" && !!event.id && !!event.message);
    if (!page.hasMore || page.cursor === undefined) return;
    cursor = page.cursor;
  }
}
