import { detached } from "./detached.js";
import { until, written } from "./host-model.js";
/** A host that has not asked for a minute is taken to be away: all agents are asked for within this. */
const ROUND_MS = 45_000;
const SHORTEST_WAIT_MS = 3_000;
const CALL_DEADLINE_MS = 5_000;
/** Of a job's lease: what is posted later may have been given to somebody else. */
const SHARE_OF_LEASE = 0.9;
/** Of a job's lease: how long it may wait for the turns to end. */
const SHARE_TO_WAIT = 0.4;
const LOOK_AGAIN_MS = 250;
const FIRST_PAUSE_MS = 2_000;
const LONGEST_PAUSE_MS = 300_000;
/** Between looks whether Offbook has been told to ask the host. */
const UNWANTED_PAUSE_MS = 600_000;
const LAST_WORD_MS = 500;
const MOST_REASON_CHARS = 500;
const SWITCH_ON = "the host's model writes no summaries yet: Offbook does not ask it. Run `offbook openclaw setup "
    + "--level … --writer host`, which sets both sides, and start Offbook again";
/** What is waited for, of the process: a claim cannot be taken back, so whoever runs after a stop takes it over. */
const NAME = Symbol.for("offbook.openclaw.claims");
const shared = globalThis;
const claims = (shared[NAME] ??= new Map());
export function hostModelJobs(memory, complete, agents, report, log, options = {}) {
    const stopping = new AbortController();
    const refused = new Set();
    const said = new Set();
    let isWanted = false;
    let isAnnounced = false;
    let pauseMs = 0;
    let wakeUp = () => undefined;
    const once = (text) => !said.has(text) && said.add(text).has(text);
    const firstPauseMs = options.firstPauseMs ?? FIRST_PAUSE_MS;
    const longer = () => (pauseMs = Math.min(2 * pauseMs || firstPauseMs, LONGEST_PAUSE_MS));
    const rest = (ms) => new Promise((resolve) => {
        const timer = setTimeout(() => resolve(), ms);
        timer.unref(); // a process that has nothing else to do may end
        wakeUp = () => {
            clearTimeout(timer);
            resolve();
        };
    });
    /** Offbook names those who write in its status. */
    async function look(agentId) {
        const { summaries } = await memory.call("status", { agentId }, CALL_DEADLINE_MS);
        isWanted = summaries.summarizers.includes("host");
        isAnnounced = false;
        if (!isWanted && once(SWITCH_ON))
            log.info(`offbook: ${SWITCH_ON}`);
    }
    async function write(job, isOnlyAgent) {
        const leaseMs = job.leaseSeconds * 1_000;
        const began = Date.now();
        while (options.isBusy?.() && Date.now() - began < leaseMs * SHARE_TO_WAIT && !stopping.signal.aborted) {
            await until(new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS)), stopping.signal);
        }
        const withinMs = leaseMs * SHARE_OF_LEASE - (Date.now() - began);
        const outcome = await written(complete, job, isOnlyAgent, withinMs, stopping.signal);
        const { id: jobId, agentId } = job;
        if ("text" in outcome) {
            await memory.call("jobs/complete", { jobId, agentId, ...outcome }, CALL_DEADLINE_MS);
            return true;
        }
        const isStopping = stopping.signal.aborted;
        if (outcome.isForGood)
            refused.add(agentId);
        if (!isStopping && once(outcome.reason)) {
            report.problem("the host's model", outcome.reason);
            log.warn(`offbook: ${outcome.reason}`);
        }
        const reason = outcome.reason.slice(0, MOST_REASON_CHARS);
        await memory.call("jobs/fail", { jobId, agentId, reason }, isStopping ? LAST_WORD_MS : CALL_DEADLINE_MS);
        return false;
    }
    /** Each agent in turn, until it has no more work. How long to rest then. */
    async function round() {
        const began = Date.now();
        const all = agents();
        const asked = all.filter((agentId) => !refused.has(agentId));
        if (!isWanted && asked[0])
            await look(asked[0]);
        if (!isWanted || !asked[0])
            return UNWANTED_PAUSE_MS;
        // Offbook gives no work for an agent that nobody has asked for: the first time nobody waits behind another.
        const waitMs = isAnnounced ? Math.max(SHORTEST_WAIT_MS, Math.floor(ROUND_MS / asked.length)) : 0;
        for (const agentId of asked) {
            for (;;) {
                const job = await claimed(memory, agentId, waitMs, stopping.signal);
                if (!job)
                    break;
                if (!(await write(job, all.length === 1)))
                    return longer();
            }
            if (stopping.signal.aborted)
                return 0;
        }
        pauseMs = 0;
        const leastMs = isAnnounced ? SHORTEST_WAIT_MS : 0; // an Offbook that does not wait is not asked without end
        isAnnounced = true;
        return Math.max(0, leastMs - (Date.now() - began));
    }
    async function run() {
        while (!stopping.signal.aborted) {
            let restMs;
            try {
                restMs = await round();
            }
            catch {
                isWanted = false; // Offbook is away, and may come back configured anew; whoever delivers messages reports it
                restMs = longer();
            }
            if (!stopping.signal.aborted)
                await rest(restMs);
        }
    }
    const running = detached(run);
    return {
        wake: () => wakeUp(),
        async stop() {
            stopping.abort();
            wakeUp();
            await running;
        },
    };
}
/** The agent's next job, if there is one before the wait or the time to stop has come. */
async function claimed(memory, agentId, waitMs, stop) {
    const key = `${memory.endpoint} ${agentId}`;
    let claim = claims.get(key);
    if (!claim || Date.now() - claim.at > ROUND_MS) {
        claim = { at: Date.now(), answer: memory.call("jobs/claim", { agentId, waitMs }, waitMs + CALL_DEADLINE_MS) };
        claim.answer.catch(() => undefined); // after a stop perhaps nobody asks
        claims.set(key, claim);
    }
    try {
        const answer = await until(claim.answer, stop);
        if (answer)
            claims.delete(key);
        return answer?.job ?? null;
    }
    catch (error) {
        claims.delete(key);
        throw error;
    }
}
