/** Whether something of an agent's was forgotten for good. The provider counts how often; the last count seen is kept on
 * disk. With another one, all that is kept here of the agent goes, for it may hold the words: it is made anew. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
export function openForgetting(path, sessions, warn) {
    const counts = read(path);
    function told(agentId, forgets) {
        if (typeof forgets !== "number" || counts.get(agentId) === forgets)
            return false;
        // An agent is counted from its first time on: a first count above none is news, too.
        const isNews = forgets !== (counts.get(agentId) ?? 0);
        const isGone = !isNews || sessions.forgotten(agentId);
        counts.set(agentId, forgets);
        if (isGone)
            save(); // where something could not be removed, the next process tries again
        return isNews;
    }
    function save() {
        try {
            mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
            writeFileSync(`${path}.new`, JSON.stringify(Object.fromEntries(counts)), { mode: 0o600 });
            renameSync(`${path}.new`, path);
        }
        catch (error) {
            warn(`${path} could not be written (${String(error)}); every window is made anew once more after a restart`);
        }
    }
    async function ask(provider) {
        try {
            for (const agentId of sessions.agents()) {
                const { forgets } = await provider.call("status", { agentId });
                if (forgets)
                    told(agentId, forgets); // 0 may be of one that was just started, and has not counted yet
            }
            return true;
        }
        catch {
            return false;
        }
    }
    return { told, ask };
}
/** A file that is not there, or torn, is as good as none: windows are made anew once. */
function read(path) {
    try {
        const found = Object.entries(JSON.parse(readFileSync(path, "utf8")));
        return new Map(found.filter((entry) => Number.isSafeInteger(entry[1])));
    }
    catch {
        return new Map();
    }
}
