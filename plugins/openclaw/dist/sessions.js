/** What is known of each session of the host's beside its messages, kept on disk: the window a swap left, the memory section
 * that stays the same between swaps, the last turns that were committed. Made anew by a swap where a file is lost. */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
const SESSIONS_KEPT = 256;
const TURNS_KEPT = 16;
const DAYS_KEPT = 60;
export function openSessions(folder, warn) {
    const kept = new Map();
    removeOld(folder);
    const path = (sessionKey) => join(folder, `${createHash("sha256").update(sessionKey).digest("hex").slice(0, 32)}.json`);
    function of(sessionKey, hostSessionId) {
        const state = kept.get(sessionKey) ?? read(path(sessionKey), sessionKey);
        kept.delete(sessionKey);
        kept.set(sessionKey, state); // the one used last is the last to go
        for (const oldest of kept.keys()) {
            if (kept.size <= SESSIONS_KEPT)
                break;
            kept.delete(oldest);
        }
        if (hostSessionId && state.hostSessionId !== hostSessionId) {
            // A key that had another transcript was given a new one on purpose; one that had none may have lost it.
            state.isColdStartDone = state.hostSessionId !== "";
            if (state.hostSessionId)
                forget(state);
            state.hostSessionId = hostSessionId;
        }
        return state;
    }
    function save(state) {
        const { sessionKey, hostSessionId, handed, window, memory, begunAnew, contextWindow, leftAfterSwap, model } = state;
        const committed = (state.committed = state.committed.slice(-TURNS_KEPT));
        const file = path(sessionKey);
        try {
            mkdirSync(folder, { recursive: true, mode: 0o700 });
            const body = {
                sessionKey,
                hostSessionId,
                handed,
                window,
                memory,
                committed,
                begunAnew,
                contextWindow,
                leftAfterSwap,
                model,
            };
            writeFileSync(`${file}.new`, JSON.stringify(body), { mode: 0o600 });
            renameSync(`${file}.new`, file);
        }
        catch (error) {
            warn(`what a swap left of ${sessionKey} could not be kept on disk (${String(error)}); it is made again after a restart`);
        }
    }
    function ended(sessionKey) {
        const state = of(sessionKey);
        forget(state);
        state.begunAnew = true;
        save(state);
    }
    return { of, save, ended };
}
/** Each subagent and each timer has a key of its own: what nobody came back to for long is let go. */
function removeOld(folder) {
    try {
        for (const name of readdirSync(folder)) {
            const file = join(folder, name);
            if (Date.now() - statSync(file).mtimeMs > DAYS_KEPT * 86_400_000)
                unlinkSync(file);
        }
    }
    catch {
        // no folder yet
    }
}
/** What was shown of a conversation that is no longer this one. */
function forget(state) {
    delete state.window;
    delete state.handed;
    state.memory = "";
    state.leftAfterSwap = 0;
    state.used = 0;
}
function read(file, sessionKey) {
    const fresh = {
        sessionKey,
        hostSessionId: "",
        memory: "",
        committed: [],
        begunAnew: false,
        contextWindow: 0,
        isWindowTold: false,
        looks: 0,
        overhead: 0,
        used: 0,
        leftAfterSwap: 0,
        isColdStartDone: false,
        restUntil: 0,
    };
    try {
        const found = JSON.parse(readFileSync(file, "utf8"));
        return found.sessionKey === sessionKey ? { ...fresh, ...found, isWindowTold: found.contextWindow > 0 } : fresh;
    }
    catch {
        return fresh; // none yet, or one that was torn: a swap makes it anew
    }
}
