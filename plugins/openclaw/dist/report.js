/** What happened lately, in report.json: for `offbook openclaw doctor`, and for people. Nothing here throws. */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
/** As in package.json. */
export const VERSION = "0.1.0";
const SAVE_EVERY_MS = 1_000;
const PROBLEMS_KEPT = 20;
const LONGEST_DETAIL = 1_000;
export function openReport(folder, about, now = () => new Date()) {
    const data = {
        version: 1,
        plugin: VERSION,
        pid: process.pid,
        startedAt: now().toISOString(),
        savedAt: null,
        level: about.level,
        host: { version: about.hostVersion },
        provider: { endpoint: "", ok: null, checkedAt: null, error: null },
        capture: {
            messages: 0,
            delivered: 0,
            waiting: 0,
            waitingBytes: 0,
            turnedAway: 0,
            refused: 0,
            lastAt: null,
            lastEntryId: null,
            lastSessionKey: null,
            lastDeliveredAt: null,
        },
        turns: { prepared: 0, injected: 0, late: 0, failed: 0, last: null },
        engine: { assembled: 0, committed: 0, swaps: 0, fallbacks: 0, last: null },
        permissions: { conversation: null },
        agents: [...about.agents],
        problems: [],
    };
    let timer;
    let isClosed = false;
    const at = () => now().toISOString();
    function write() {
        clearTimeout(timer);
        timer = undefined;
        data.savedAt = at();
        const path = join(folder, "report.json");
        try {
            mkdirSync(folder, { recursive: true, mode: 0o700 });
            writeFileSync(`${path}.new`, `${JSON.stringify(data, undefined, 1)}\n`, { mode: 0o600 });
            renameSync(`${path}.new`, path);
        }
        catch {
            // A report that cannot be written stops nothing; the next change tries again.
        }
    }
    function save() {
        if (timer || isClosed)
            return;
        timer = setTimeout(write, SAVE_EVERY_MS);
        timer.unref();
    }
    /** Every note is a change of the data and a wish to save it. */
    function noted(change) {
        return (...given) => {
            change(...given);
            save();
        };
    }
    function problem(what, detail) {
        const short = detail.slice(0, LONGEST_DETAIL);
        const newest = data.problems[0];
        if (newest?.what === what && newest.detail === short) {
            newest.at = at();
            newest.times += 1;
        }
        else {
            data.problems = [{ at: at(), what, detail: short, times: 1 }, ...data.problems].slice(0, PROBLEMS_KEPT);
        }
    }
    return {
        captured: noted((sessionKey, entryId) => {
            data.capture.messages += 1;
            Object.assign(data.capture, { lastAt: at(), lastEntryId: entryId, lastSessionKey: sessionKey });
        }),
        delivered: noted((messages) => {
            data.capture.delivered += messages;
            data.capture.lastDeliveredAt = at();
        }),
        refused: noted(() => {
            data.capture.refused += 1;
        }),
        outbox: noted(({ length, bytes, turnedAway }) => {
            Object.assign(data.capture, { waiting: length, waitingBytes: bytes, turnedAway });
        }),
        answered: noted((endpoint, error) => {
            data.provider = { endpoint, ok: error === null, checkedAt: at(), error };
        }),
        turn: noted((note) => {
            const outcome = note.error === null ? "prepared" : note.error.startsWith("late") ? "late" : "failed";
            data.turns[outcome] += 1;
            if (note.recallChars + note.memoryChars > 0)
                data.turns.injected += 1;
            data.turns.last = { at: at(), ...note };
        }),
        assembled: noted((note) => {
            data.engine.assembled += 1;
            const reason = data.engine.last?.sessionKey === note.sessionKey ? data.engine.last.reason : null;
            data.engine.last = { at: at(), ...note, reason };
        }),
        committed: noted(() => {
            data.engine.committed += 1;
        }),
        swapped: noted((sessionKey, generation, reason) => {
            data.engine.swaps += 1;
            const last = data.engine.last?.sessionKey === sessionKey ? data.engine.last : { messagesIn: 0, messagesOut: 0 };
            data.engine.last = { ...last, at: at(), sessionKey, generation, reason };
        }),
        fellBack: noted((sessionKey) => {
            data.engine.fallbacks += 1;
            problem("the host's own compaction was used", sessionKey);
        }),
        conversationAllowed: noted((allowed) => {
            data.permissions.conversation = allowed;
        }),
        problem: noted(problem),
        save,
        snapshot: () => structuredClone(data),
        close: () => {
            if (isClosed)
                return;
            isClosed = true;
            write();
        },
    };
}
