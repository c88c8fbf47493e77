/** How far each session's transcript was read, kept on disk: a new process reads on from there, and knows where to look.
 *
 * A cursor is written only once everything read before it is on the disk too. One that is lost or behind costs a comparison;
 * one that is ahead would cost messages.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
const SESSIONS_KEPT = 1_000;
const SAVE_EVERY_MS = 2_000;
/** `flush` brings to the disk what was read. */
export function openCursors(path, endpoint, flush, warn) {
    const sessions = new Map(Object.entries(read(path)));
    let timer;
    let saving = Promise.resolve();
    let savedAt = 0;
    let isChanged = false;
    let isClosed = false;
    let isFailing = false;
    const of = ({ sessionKey, sessionId }) => {
        const kept = sessions.get(sessionKey);
        return kept?.sessionId === sessionId && kept.endpoint === endpoint ? kept.cursor : undefined;
    };
    function placeOf(sessionKey) {
        const kept = sessions.get(sessionKey);
        return kept && { agentId: kept.agentId, sessionKey, sessionId: kept.sessionId };
    }
    function spoken(place) {
        keep(place, of(place), Date.now());
    }
    function readTo(place, cursor) {
        if (placeOf(place.sessionKey)?.sessionId !== place.sessionId)
            return; // the last look at one that was left
        if (of(place) !== cursor)
            keep(place, cursor, sessions.get(place.sessionKey)?.at ?? Date.now());
    }
    function keep({ agentId, sessionKey, sessionId }, cursor, at) {
        sessions.set(sessionKey, { agentId, sessionId, ...(cursor === undefined ? {} : { cursor }), at, endpoint });
        changed();
    }
    function forget({ sessionKey, sessionId }) {
        if (sessions.get(sessionKey)?.sessionId !== sessionId)
            return;
        sessions.delete(sessionKey);
        changed();
    }
    function openSince(at) {
        return newest(sessions)
            .filter(([, kept]) => kept.at >= at && !kept.isClosed)
            .map(([sessionKey, { agentId, sessionId }]) => ({ agentId, sessionKey, sessionId }));
    }
    function changed() {
        isChanged = true;
        if (timer || isClosed)
            return;
        timer = setTimeout(() => void save(), Math.max(0, savedAt + SAVE_EVERY_MS - Date.now()));
        timer.unref();
    }
    function save() {
        clearTimeout(timer);
        timer = undefined;
        savedAt = Date.now();
        saving = saving.then(write);
        return saving;
    }
    async function write() {
        if (!isChanged)
            return;
        isChanged = false;
        if (sessions.size > SESSIONS_KEPT)
            for (const [key] of newest(sessions).slice(SESSIONS_KEPT))
                sessions.delete(key);
        const text = JSON.stringify(Object.fromEntries(sessions)); // as it is before the flush: nothing in it is ahead
        try {
            await flush();
            mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
            writeFileSync(`${path}.new`, text, { mode: 0o600 });
            renameSync(`${path}.new`, path);
            isFailing = false;
        }
        catch (error) {
            isChanged = true;
            if (!isFailing)
                warn(`how far transcripts were read could not be kept in ${path} (${String(error)}); they are compared again`);
            isFailing = true;
        }
    }
    async function close(unfinished) {
        isClosed = true;
        isChanged = true;
        for (const [key, kept] of sessions)
            if (kept.cursor !== undefined && !unfinished.includes(key))
                kept.isClosed = true;
        await save();
    }
    return { of, placeOf, spoken, readTo, forget, openSince, save, close };
}
function newest(sessions) {
    return [...sessions].sort(([, one], [, other]) => other.at - one.at);
}
/** A file that is not there, or not ours to understand, is as good as none: sessions are compared from their beginning. */
function read(path) {
    try {
        const found = JSON.parse(readFileSync(path, "utf8"));
        return Object.fromEntries(Object.entries(found).filter((entry) => isKept(entry[1])));
    }
    catch {
        return {};
    }
}
function isKept(kept) {
    return (typeof kept?.agentId === "string" &&
        typeof kept.sessionId === "string" &&
        typeof kept.at === "number" &&
        typeof kept.endpoint === "string" &&
        (kept.cursor === undefined || typeof kept.cursor === "string"));
}
