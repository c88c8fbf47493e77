/** What is known of each session of the host's beside its messages, kept on disk: the window a swap left, the memory section
 * that stays the same between swaps, the last turns that were committed. Made anew by a swap where a file is lost. */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
const SESSIONS_KEPT = 256;
const TURNS_KEPT = 16;
const DAYS_KEPT = 60;
export function openSessions(folder, warn) {
    const kept = new Map();
    let timesForgotten = 0;
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
        try {
            write(state);
        }
        catch (error) {
            const what = `what a swap left of ${state.sessionKey}`;
            warn(`${what} could not be kept on disk (${String(error)}); it is made again after a restart`);
        }
    }
    function write(state) {
        const { isWindowTold: _told, looks: _looks, used: _used, isColdStartDone: _cold, restUntil: _rest, hasAsked: _asked, ...others } = state;
        const { pending: _pending, isContinued: _continued, prompt: _prompt, nextSwap: _next, ...body } = others;
        state.committed = body.committed = state.committed.slice(-TURNS_KEPT);
        const file = path(state.sessionKey);
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        writeFileSync(`${file}.new`, JSON.stringify(body), { mode: 0o600 });
        renameSync(`${file}.new`, file);
    }
    function ended(sessionKey) {
        const state = of(sessionKey);
        forget(state);
        state.begunAnew = true;
        save(state);
    }
    function forgotten(agentId) {
        timesForgotten += 1;
        for (const state of kept.values())
            if (isOf(state, agentId))
                letGo(state);
        let isGone = true;
        for (const name of namesIn(folder)) {
            const file = join(folder, name);
            const found = parsed(file); // none of half a file, left by one that was killed: it goes
            if (found && (!isOf(found, agentId) || !hasWords(found)))
                continue;
            const isMade = found && rewritten(kept.get(found.sessionKey) ?? { ...fresh(found.sessionKey), ...found });
            const isReplaced = isMade && file === path(found.sessionKey); // another name than ours would stay beside it
            if (!isReplaced && !removed(file))
                isGone = false;
        }
        return isGone;
    }
    function rewritten(state) {
        letGo(state);
        try {
            write(state);
            return true;
        }
        catch {
            return false; // no room on the disk: a file that is gone is made anew by a swap
        }
    }
    function removed(file) {
        try {
            rmSync(file, { force: true });
            return true;
        }
        catch (error) {
            warn(`${file} holds what was forgotten, and could not be removed (${String(error)}); remove it by hand`);
            return false;
        }
    }
    function agents() {
        const states = [...kept.values(), ...namesIn(folder).map((name) => parsed(join(folder, name)))];
        const named = states.map((state) => (state && hasWords(state) ? agentOf(state.sessionKey) : undefined));
        return [...new Set(named.filter((agentId) => agentId !== undefined))];
    }
    return {
        of,
        save,
        ended,
        forgotten,
        get timesForgotten() {
            return timesForgotten;
        },
        agents,
    };
}
/** As the host's keys have it; undefined where a key names none. */
function agentOf(sessionKey) {
    return /^agent:([^:]+):/.exec(sessionKey)?.[1];
}
/** Whose session it may be: a key that names no agent may be anybody's. */
function isOf({ sessionKey }, agentId) {
    return (agentOf(sessionKey) ?? agentId).toLowerCase() === agentId.toLowerCase();
}
function hasWords({ window, handed, memory }) {
    return window !== undefined || handed !== undefined || Boolean(memory);
}
/** The host still has the conversation, which may be longer than the model's window: so another one is owed. */
function letGo(state) {
    const isSwapOwed = state.isSwapOwed || state.window !== undefined || state.handed !== undefined;
    forget(state);
    state.isSwapOwed = isSwapOwed;
    state.restUntil = 0;
}
function namesIn(folder) {
    try {
        return readdirSync(folder);
    }
    catch {
        return []; // no folder yet
    }
}
/** Each subagent and each timer has a key of its own: what nobody came back to for long is let go. */
function removeOld(folder) {
    for (const name of namesIn(folder)) {
        const file = join(folder, name);
        try {
            if (Date.now() - statSync(file).mtimeMs > DAYS_KEPT * 86_400_000)
                unlinkSync(file);
        }
        catch {
            // gone already, or not ours to remove
        }
    }
}
/** What was shown of a conversation that is no longer this one. */
function forget(state) {
    delete state.window;
    delete state.handed;
    state.memory = "";
    state.talkAfterSwap = 0;
    state.isSwapOwed = false;
    [state.used, state.pending, state.isContinued, state.prompt] = [0, 0, false, ""];
    delete state.nextSwap;
}
function fresh(sessionKey) {
    return {
        sessionKey,
        hostSessionId: "",
        memory: "",
        committed: [],
        begunAnew: false,
        contextWindow: 0,
        isWindowTold: false,
        looks: 0,
        used: 0,
        pending: 0,
        isContinued: false,
        prompt: "",
        talkAfterSwap: 0,
        points: [],
        pointAt: 0,
        instructions: 0,
        recalled: 0,
        recalledThen: 0,
        hasAsked: false,
        isSwapOwed: false,
        isColdStartDone: false,
        restUntil: 0,
    };
}
function read(file, sessionKey) {
    const found = parsed(file);
    if (found?.sessionKey !== sessionKey)
        return fresh(sessionKey);
    return { ...fresh(sessionKey), ...found, isWindowTold: found.contextWindow > 0 };
}
/** Undefined where there is none yet, or one that was torn: a swap makes it anew. */
function parsed(file) {
    try {
        const found = JSON.parse(readFileSync(file, "utf8"));
        return typeof found?.sessionKey === "string" ? found : undefined;
    }
    catch {
        return undefined;
    }
}
