import { wireMessage } from "./messages.js";
import { within } from "./within.js";
/** Thrown by a reader: there is no such transcript. */
export const GONE = "TranscriptGone";
const INCOGNITO = /^agent:[^:]+:(?:dashboard|subagent|internal-session-effects):incognito-[^:]+$/u;
const SESSIONS_KEPT = 1_000;
const IDS_ASKED = 1_000;
const CAUGHT_UP_MS = 30 * 24 * 60 * 60 * 1_000;
/** The host keeps these in memory only: so do we, by not recording them. */
export function isPrivate(sessionKey) {
    return INCOGNITO.test(sessionKey.trim().toLowerCase());
}
export function capture(outbox, wake, provider, readTranscript, cursors, report) {
    const sessions = new Map();
    const unfinished = new Set();
    const reads = new Set();
    /** How much was in the outbox when it was full: before it is less, nothing more will fit. */
    let fullBytes = Infinity;
    let isStopping = false;
    function following(place) {
        const known = sessions.get(place.sessionKey);
        const state = known?.place.sessionId === place.sessionId ? known : begun(place, known);
        sessions.delete(place.sessionKey);
        sessions.set(place.sessionKey, state); // the one told of last is the last to go
        for (const [key, oldest] of sessions) {
            if (sessions.size <= SESSIONS_KEPT)
                break;
            if (!oldest.reading && !unfinished.has(oldest))
                sessions.delete(key);
        }
        return state;
    }
    function begun(place, known) {
        const kept = cursors.placeOf(place.sessionKey);
        const left = known ?? (kept && kept.sessionId !== place.sessionId ? unread(kept) : undefined);
        const state = { ...unread(place), ...(left ? { before: left } : {}) };
        if (kept?.sessionId !== place.sessionId)
            cursors.spoken(place);
        return state;
    }
    function unread(place) {
        const cursor = cursors.of(place);
        return { place, ahead: new Set(), told: [], isAsked: false, hasFailed: false, ...(cursor === undefined ? {} : { cursor }) };
    }
    function take(update) {
        const place = placeOf(update);
        if (!place || isPrivate(place.sessionKey))
            return;
        const state = following(place);
        state.told.push(update);
        cursors.spoken(place);
        void look(state);
    }
    async function read(place) {
        if (!isPrivate(place.sessionKey))
            await look(following(place));
    }
    /** Never rejects. A look that is going on may have passed the end already: it looks again before it is done. */
    function look(state) {
        state.isAsked = true;
        if (!state.reading) {
            const reading = readOn(state)
                .catch((error) => report.problem("a transcript could not be taken", `${state.place.sessionKey}: ${String(error)}`))
                .finally(() => reads.delete(reading));
            state.reading = reading;
            reads.add(reading);
        }
        return state.reading;
    }
    async function readOn(state) {
        try {
            if (state.before)
                await look(state.before);
            delete state.before;
            while (state.isAsked) {
                state.isAsked = false;
                await readOnce(state);
            }
        }
        finally {
            delete state.reading; // at once: who asks from now on begins another look
        }
    }
    async function readOnce(state) {
        const told = state.told.splice(0);
        try {
            if (await readBehind(state))
                unfinished.delete(state);
            else
                unfinished.add(state);
            state.hasFailed = false;
        }
        catch (error) {
            if (isGone(error) && told.length === 0)
                return leave(state); // deleted, or moved away by the host
            // Better what was told than nothing: it has the ids of the transcript.
            for (const { message, messageId } of told)
                if (message && messageId)
                    send(state, { id: messageId, message });
            if (state.hasFailed)
                forgetCursor(state); // perhaps it is the cursor: the next look compares from the beginning
            state.hasFailed = true;
            unfinished.add(state);
            report.problem("a transcript could not be read", `${state.place.sessionKey}: ${String(error)}`);
        }
    }
    function forgetCursor(state) {
        delete state.cursor;
        cursors.readTo(state.place, undefined);
    }
    function leave(state) {
        unfinished.delete(state);
        cursors.forget(state.place);
        if (sessions.get(state.place.sessionKey) === state)
            sessions.delete(state.place.sessionKey);
    }
    /** False where the outbox is full: to be read again from there. */
    async function readBehind(state) {
        let isFirstLook = state.cursor === undefined;
        for await (const page of readTranscript(state.place, state.cursor)) {
            isFirstLook ||= page.isFromTheBeginning;
            const fresh = page.entries.filter((entry) => !state.ahead.has(entry.id));
            const lacking = isFirstLook ? await lackingOf(state.place, fresh) : fresh;
            if (!lacking.every((entry) => send(state, entry)))
                return false;
            for (const entry of page.entries)
                state.ahead.delete(entry.id);
            state.cursor = page.cursor;
            cursors.readTo(state.place, page.cursor);
        }
        return true;
    }
    /** False where there is no room. */
    function send({ place, ahead }, { id, message }) {
        const wire = wireMessage(id, message, place.sessionId);
        const isIn = outbox.add({ verb: "onMessage", body: { sessionId: place.sessionKey, agentId: place.agentId, message: wire } });
        if (isIn) {
            ahead.add(id);
            report.captured(place.sessionKey, id);
            report.outbox(outbox);
        }
        else {
            fullBytes = outbox.bytes;
            report.problem("the outbox is full", `messages of ${place.sessionKey} stay in the host's transcript until there is room`);
        }
        wake();
        return isIn;
    }
    /** Where nobody answers, all of them: what is known already is not stored twice. */
    async function lackingOf(place, entries) {
        const missing = new Set();
        for (let at = 0; at < entries.length; at += IDS_ASKED) {
            const ids = entries.slice(at, at + IDS_ASKED).map((entry) => entry.id);
            try {
                const answer = await provider.call("missing", { sessionId: place.sessionKey, agentId: place.agentId, ids });
                for (const id of answer.missing)
                    missing.add(id);
            }
            catch {
                for (const id of ids)
                    missing.add(id);
            }
        }
        return entries.filter((entry) => missing.has(entry.id));
    }
    async function readAgain(sessionKey) {
        const place = sessions.get(sessionKey)?.place ?? cursors.placeOf(sessionKey);
        if (place)
            await read(place);
    }
    async function catchUp() {
        for (const { sessionKey } of cursors.openSince(Date.now() - CAUGHT_UP_MS)) {
            if (isStopping)
                return;
            // One that was told of meanwhile is being read, what was before it included.
            if (!sessions.has(sessionKey))
                await readAgain(sessionKey);
        }
    }
    async function readUnfinished() {
        if (outbox.bytes > 0 && outbox.bytes >= fullBytes)
            return;
        fullBytes = Infinity;
        for (const state of [...unfinished])
            if (!isStopping)
                await look(state);
    }
    async function stop() {
        isStopping = true;
        while (reads.size > 0)
            await Promise.allSettled(reads);
        return [...unfinished].map((state) => state.place.sessionKey);
    }
    async function settled(sessionKey, deadlineMs) {
        const reading = sessions.get(sessionKey)?.reading;
        return !reading || ((await within(reading.then(() => true), deadlineMs)) ?? false);
    }
    return { take, read, readAgain, catchUp, readUnfinished, settled, stop };
}
function isGone(error) {
    return error instanceof Error && error.name === GONE;
}
function placeOf(update) {
    const agentId = update.target?.agentId ?? update.agentId;
    const sessionKey = update.target?.sessionKey ?? update.sessionKey;
    const sessionId = update.target?.sessionId ?? update.sessionId;
    return agentId && sessionKey && sessionId ? { agentId, sessionKey, sessionId } : undefined;
}
