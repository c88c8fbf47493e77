/** The runs that are going on: work of our own waits for them. */

/** A run that began earlier is one whose end nobody told. */
const LONGEST_RUN_MS = 10 * 60 * 1_000;

/** Whether a run is going on; those that are too old to be are forgotten. */
export function isRunning(runs: Map<string, number>, now: number): boolean {
  for (const [runId, startedAt] of runs) if (now - startedAt > LONGEST_RUN_MS) runs.delete(runId);
  return runs.size > 0;
}

export function begin(runs: Map<string, number>, runId: string, now: number): void {
  isRunning(runs, now);
  runs.set(runId, runs.get(runId) ?? now); // a run builds more than one prompt
}
