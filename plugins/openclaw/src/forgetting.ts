/** Whether something of an agent's was forgotten for good. The provider counts how often; the last count seen is kept on
 * disk. With another one, all that is kept here of the agent goes, for it may hold the words: it is made anew. */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Provider } from "./client.js";
import type { Sessions } from "./sessions.js";

export interface Forgetting {
  /** True where the count is another than before: what was kept of the agent is gone, and what came with the count may
   * have been made before it. A provider that does not count, or not yet, says nothing. */
  told(agentId: string, forgets: number | null | undefined): boolean;
  /** Ask for the agents of whom words are kept: one that is silent has no turn that tells. False where nobody answered. */
  ask(provider: Provider): Promise<boolean>;
}

export function openForgetting(path: string, sessions: Sessions, warn: (text: string) => void): Forgetting {
  const counts = read(path);

  function told(agentId: string, forgets: number | null | undefined): boolean {
    if (typeof forgets !== "number" || counts.get(agentId) === forgets) return false;
    // An agent is counted from its first time on: a first count above none is news, too.
    const isNews = forgets !== (counts.get(agentId) ?? 0);
    const isGone = !isNews || sessions.forgotten(agentId);
    counts.set(agentId, forgets);
    if (isGone) save(); // where something could not be removed, the next process tries again
    return isNews;
  }

  function save(): void {
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      writeFileSync(`${path}.new`, JSON.stringify(Object.fromEntries(counts)), { mode: 0o600 });
      renameSync(`${path}.new`, path);
    } catch (error) {
      warn(`${path} could not be written (${String(error)}); every window is made anew once more after a restart`);
    }
  }

  async function ask(provider: Provider): Promise<boolean> {
    try {
      for (const agentId of sessions.agents()) {
        const { forgets } = await provider.call("status", { agentId });
        if (forgets) told(agentId, forgets); // 0 may be of one that was just started, and has not counted yet
      }
      return true;
    } catch {
      return false;
    }
  }

  return { told, ask };
}

/** A file that is not there, or torn, is as good as none: windows are made anew once. */
function read(path: string): Map<string, number> {
  try {
    const found = Object.entries(JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>);
    return new Map(found.filter((entry): entry is [string, number] => Number.isSafeInteger(entry[1])));
  } catch {
    return new Map();
  }
}
