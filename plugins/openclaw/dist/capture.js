import { wireMessage } from "./messages.js";
const INCOGNITO = /^agent:[^:]+:(?:dashboard|subagent|internal-session-effects):incognito-[^:]+$/u;
const SESSIONS_KEPT = 1_000;
const IDS_KEPT = 200;
const IDS_ASKED = 1_000;
/** The host keeps these in memory only: so do we, by not recording them. */
export function isPrivate(sessionKey) {
    return INCOGNITO.test(sessionKey.trim().toLowerCase());
}
export function capture(outbox, wake, provider, readTranscript, report) {
    const sessions = new Map();
    function seen(place) {
        const known = sessions.get(place.sessionKey);
        const state = known?.hostSessionId === place.sessionId ? known : fresh(place.sessionId);
        sessions.delete(place.sessionKey);
        sessions.set(place.sessionKey, state);
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
        const state = seen(place);
        if (state.reading) {
            state.held.push(update);
            return;
        }
        const { message, messageId, messageSeq } = update;
        const follows = messageSeq === undefined || messageSeq <= state.lastNumber + 1;
        if (!message || !messageId || !follows) {
            state.held.push(update);
            void reconcile(place);
            return;
        }
        if (messageSeq !== undefined)
            state.lastNumber = Math.max(state.lastNumber, messageSeq);
        send(place, state, messageId, message);
    }
    function send(place, state, entryId, message) {
        if (state.ids.includes(entryId))
            return; // written again by the host, with the same id
        if (state.ids.length >= IDS_KEPT)
            state.ids.shift();
        state.ids.push(entryId);
        const body = {
            sessionId: place.sessionKey,
            agentId: place.agentId,
            message: wireMessage(entryId, message, place.sessionId),
        };
        if (outbox.add({ verb: "onMessage", body }))
            report.captured(place.sessionKey, entryId);
        else {
            // The host has it: what was turned away is found and sent once there is room again.
            state.lastNumber = 0;
            state.ids.pop();
            report.problem("the outbox is full", `a message of ${place.sessionKey} is left to the next comparison with the transcript`);
        }
        wake();
    }
    async function reconcile(place) {
        const state = seen(place);
        state.reading ??= compared(place, state).finally(() => {
            delete state.reading;
            const held = state.held.splice(0);
            state.lastNumber = Math.max(state.lastNumber, ...held.map((update) => update.messageSeq ?? 0));
            for (const { message, messageId } of held)
                if (message && messageId)
                    send(place, state, messageId, message);
        });
        await state.reading;
    }
    /** What the transcript has and Offbook lacks, sent in the order of the transcript. */
    async function compared(place, state) {
        try {
            for await (const page of readTranscript(place)) {
                for (let at = 0; at < page.length; at += IDS_ASKED) {
                    const entries = page.slice(at, at + IDS_ASKED);
                    const missing = await lacking(place, entries);
                    for (const { id, message } of entries)
                        if (missing.has(id))
                            send(place, state, id, message);
                }
                state.lastNumber += page.length;
            }
        }
        catch (error) {
            report.problem("a transcript could not be read", `${place.sessionKey}: ${String(error)}; \`offbook import openclaw\` takes what is missing`);
        }
    }
    /** Where nobody answers, all of them: what is known already is not stored twice. */
    async function lacking(place, entries) {
        const ids = entries.map((entry) => entry.id);
        try {
            const answer = await provider.call("missing", { sessionId: place.sessionKey, agentId: place.agentId, ids });
            return new Set(answer.missing);
        }
        catch {
            return new Set(ids);
        }
    }
    async function settled(sessionKey, deadlineMs) {
        const reading = sessions.get(sessionKey)?.reading;
        if (!reading)
            return true;
        let timer;
        const late = new Promise((resolve) => (timer = setTimeout(() => resolve(false), deadlineMs)));
        return Promise.race([reading.then(() => true), late]).finally(() => clearTimeout(timer));
    }
    return { take, settled, reconcile, has: (key, entryId) => sessions.get(key)?.ids.includes(entryId) ?? false };
}
function fresh(hostSessionId) {
    return { lastNumber: 0, hostSessionId, ids: [], held: [] };
}
function placeOf(update) {
    const agentId = update.target?.agentId ?? update.agentId;
    const sessionKey = update.target?.sessionKey ?? update.sessionKey;
    const sessionId = update.target?.sessionId ?? update.sessionId;
    return agentId && sessionKey && sessionId ? { agentId, sessionKey, sessionId } : undefined;
}
