import { detached } from "./detached.js";
const EVENTS_PER_PAGE = 500;
const LARGEST_PAGE_BYTES = 64 * 1024 * 1024;
/** Resolved by the host for its plugins; there is no such package beside us. */
const READER = "openclaw/plugin-sdk/session-transcript-runtime";
export async function* transcriptPages(place) {
    const reader = (await import(READER));
    let cursor;
    let maxBytes;
    for (;;) {
        const request = {
            ...place,
            maxEvents: EVENTS_PER_PAGE,
            ...(cursor === undefined ? {} : { cursor }),
            ...(maxBytes === undefined ? {} : { maxBytes }),
        };
        const page = await detached(() => reader.readSessionTranscriptRawDelta(request));
        if (page.kind !== "page")
            return;
        const events = page.events ?? [];
        if (events.length === 0 && page.requiredBytes !== undefined && maxBytes === undefined) {
            if (page.requiredBytes > LARGEST_PAGE_BYTES)
                throw new Error(`an entry of ${page.requiredBytes} bytes`);
            maxBytes = LARGEST_PAGE_BYTES;
            continue;
        }
        maxBytes = undefined;
        yield events
            .map((row) => row.event ?? row)
            .filter((event) => event.type === "message" && !!event.id && !!event.message);
        if (!page.hasMore || page.cursor === undefined)
            return;
        cursor = page.cursor;
    }
}
