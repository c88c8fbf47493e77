import { wireMessage } from "./messages.js";
const INCOGNITO = /^agent:[^:]+:(?:dashboard|subagent|internal-session-effects):incognito-[^:]+$/u;
const SESSIONS_KEPT = 1_000;
const IDS_ASKED = 1_000;
/** The host keeps these in memory only: so do we, by not recording them. */
export function isPrivate(sessionKey) {
    return INCOGNITO.test(sessionKey.trim().toLowerCase());
}
export function capture(outbox, wake, provider, readTranscript, report) {
    const sessions = new Map();
    function following(place) {
        const known = sessions.get(place.sessionKey);
        const state = known?.place.sessionId === place.sessionId ? known : { place, told: [] };
        sessions.delete(place.sessionKey);
        sessions.set(place.sessionKey, state); // the one told of last is the last to go
        for (const [key, oldest] of sessions) {
            if (sessions.size <= SESSIONS_KEPT)
                break;
            if (!oldest.reading)
                sessions.delete(key);
        }
        return state;
    }
    function take(update) {
        const place = placeOf(update);
        if (!place || isPrivate(place.sessionKey))
            return;
        following(place).told.push(update);
        void read(place);
    }
    async function read(place) {
        const state = following(place);
        state.reading ??= readOn(state).finally(() => delete state.reading);
        await state.reading;
    }
    async function readOn(state) {
        do {
            const told = state.told.splice(0);
            try {
                await readBehind(state);
            }
            catch (error) {
                // Better what was told than nothing: it has the ids of the transcript.
                for (const { message, messageId } of told)
                    if (message && messageId)
                        send(state.place, { id: messageId, message });
                delete state.cursor; // the next look compares from the beginning
                report.problem("a transcript could not be read", `${state.place.sessionKey}: ${String(error)}`);
            }
        } while (state.told.length > 0);
    }
    async function readBehind(state) {
        let isFirstLook = state.cursor === undefined;
        for await (const page of readTranscript(state.place, state.cursor)) {
            isFirstLook ||= page.isFromTheBeginning;
            const lacking = isFirstLook ? await lackingOf(state.place, page.entries) : page.entries;
            if (!lacking.every((entry) => send(state.place, entry)))
                return; // the outbox is full: read again from here
            state.cursor = page.cursor;
        }
    }
    /** False where there is no room. */
    function send(place, { id, message }) {
        const wire = wireMessage(id, message, place.sessionId);
        const isIn = outbox.add({ verb: "onMessage", body: { sessionId: place.sessionKey, agentId: place.agentId, message: wire } });
        if (isIn)
            report.captured(place.sessionKey, id);
        else
            report.problem("the outbox is full", `messages of ${place.sessionKey} stay in the host's transcript until there is room`);
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
    async function settled(sessionKey, deadlineMs) {
        const reading = sessions.get(sessionKey)?.reading;
        if (!reading)
            return true;
        let timer;
        const late = new Promise((resolve) => (timer = setTimeout(() => resolve(false), deadlineMs)));
        return Promise.race([reading.then(() => true), late]).finally(() => clearTimeout(timer));
    }
    return { take, read, settled };
}
function placeOf(update) {
    const agentId = update.target?.agentId ?? update.agentId;
    const sessionKey = update.target?.sessionKey ?? update.sessionKey;
    const sessionId = update.target?.sessionId ?? update.sessionId;
    return agentId && sessionKey && sessionId ? { agentId, sessionKey, sessionId } : undefined;
}
