/** One process owns a folder. The lock names it, so that what a killed one left does not shut out the next. */
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
/** Between the making of the file and its content; one that is empty for longer was left by a full disk or a crash. */
const EMPTY_FOR_MS = 5_000;
/** Of this process, whichever copy of this module asks: the host loads a plugin anew when its config changes. */
const OWNED = Symbol.for("offbook.openclaw.owned-folders");
/** Returns what gives it up. Throws where another process, or another part of this one, has it. */
export function lockFolder(folder) {
    const path = join(folder, "lock");
    const owned = ownedFolders();
    if (owned.has(folder))
        throw new Error(`${folder} is in use by this process already`);
    const mine = JSON.stringify({ pid: process.pid, started: startOf(process.pid) });
    if (!made(path, mine)) {
        const found = contentOf(path);
        if (isHeld(path, found))
            throw busy(folder, found);
        takeAway(folder, path, found);
        if (!made(path, mine))
            throw busy(folder, contentOf(path));
    }
    owned.add(folder);
    return () => {
        if (!owned.delete(folder))
            return;
        if (contentOf(path) === mine)
            rmSync(path, { force: true });
    };
}
function ownedFolders() {
    const shared = globalThis;
    return (shared[OWNED] ??= new Set());
}
function made(path, content) {
    try {
        writeFileSync(path, content, { flag: "wx", mode: 0o600 });
        return true;
    }
    catch (error) {
        if (error.code === "EEXIST")
            return false;
        throw error;
    }
}
function isHeld(path, content) {
    if (content === undefined)
        return false;
    const owner = ownerIn(content);
    if (!owner)
        return Date.now() - modifiedAt(path) < EMPTY_FOR_MS;
    // In a container every start may have the same id, so ours alone proves nothing; nor does one that was given again.
    if (owner.pid === process.pid || !isAlive(owner.pid))
        return false;
    return owner.started === undefined || owner.started === startOf(owner.pid);
}
/** Two may find the same stale lock: who moved away a fresh one puts it back. */
function takeAway(folder, path, stale) {
    if (stale === undefined)
        return;
    const aside = `${path}.${process.pid}`;
    try {
        renameSync(path, aside);
    }
    catch {
        return; // another was quicker
    }
    const moved = contentOf(aside);
    if (moved !== stale && moved !== undefined) {
        made(path, moved);
        rmSync(aside, { force: true });
        throw busy(folder, moved);
    }
    rmSync(aside, { force: true });
}
function busy(folder, content) {
    const pid = ownerIn(content ?? "")?.pid;
    return new Error(`${folder} is in use by ${pid ? `process ${pid}` : "another process"}: only one gateway may use it`);
}
function ownerIn(content) {
    try {
        const owner = JSON.parse(content);
        return typeof owner.pid === "number" && owner.pid > 0 ? { pid: owner.pid, started: owner.started } : undefined;
    }
    catch {
        return undefined;
    }
}
function isAlive(pid) {
    try {
        process.kill(pid, 0);
        return true;
    }
    catch (error) {
        return error.code === "EPERM";
    }
}
/** When a process began, in ticks since the machine did; unknown where there is no /proc. */
function startOf(pid) {
    const stat = contentOf(`/proc/${pid}/stat`);
    // The second field is the command's name, in brackets, and may hold anything.
    return stat?.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}
function contentOf(path) {
    try {
        return readFileSync(path, "utf8");
    }
    catch {
        return undefined;
    }
}
function modifiedAt(path) {
    try {
        return statSync(path).mtimeMs;
    }
    catch {
        return 0;
    }
}
