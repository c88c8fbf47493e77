/** The parts that run in the gateway: made when its service starts, gone when it stops.
 *
 * The host registers a plugin several times in a process, and may load its modules again; what runs is therefore found under
 * a name of the process, never in a module.
 */
import { join } from "node:path";
import { capture } from "./capture.js";
import { provider } from "./client.js";
import { courier } from "./courier.js";
import { openCursors } from "./cursors.js";
import { startDaemon } from "./daemon.js";
import { openForgetting } from "./forgetting.js";
import { hostModelJobs } from "./jobs.js";
import { openOutbox } from "./outbox.js";
import { openReport } from "./report.js";
import { isRunning } from "./runs.js";
import { openSessions } from "./sessions.js";
import { transcriptPages } from "./transcript.js";
import { within } from "./within.js";
const NAME = Symbol.for("offbook.openclaw.running");
const CHECK_EVERY_MS = 10_000;
/** An agent that speaks tells by itself what was forgotten; each question of ours is an event in its audit. */
const ASK_FORGOTTEN_EVERY_MS = 3_600_000;
/** The host gives a service 5 s to make room for the next one. */
const STOP_MS = 3_000;
const LAST_DELIVERY_MS = 1_500;
const LAST_READS_MS = 500;
/** So long the one before us may take to give up its folder. */
const TAKE_OVER_MS = 10_000;
const TRY_AGAIN_MS = 200;
const shared = globalThis;
export function running() {
    return shared[NAME];
}
export function registerRuntime(api, settings, agents) {
    let stop;
    api.registerService({
        id: "offbook",
        start(context) {
            stop = startWithin(TAKE_OVER_MS, api, settings, agents, context);
        },
        async stop() {
            const ending = stop;
            stop = undefined;
            await ending?.();
        },
    });
}
/** At once where that is possible; otherwise in the background: one that is being replaced has the folder until it is done. */
function startWithin(longestMs, api, settings, agents, context) {
    const log = context.logger ?? api.logger;
    const folder = join(context.stateDir, "offbook");
    const ends = performance.now() + longestMs;
    let stop;
    let timer;
    // The host goes on without us, and says so.
    const fail = (error) => log.error(`offbook records nothing: ${error instanceof Error ? error.message : String(error)}`);
    function attempt() {
        let outbox;
        try {
            outbox = openOutbox(join(folder, "outbox"), settings.outboxBytes, (text) => log.warn(`offbook: ${text}`));
        }
        catch (error) {
            if (performance.now() >= ends)
                return fail(error);
            timer = setTimeout(attempt, TRY_AGAIN_MS);
            timer.unref();
            return;
        }
        try {
            stop = start(api, settings, agents, folder, outbox, log);
        }
        catch (error) {
            outbox.close();
            fail(error);
        }
    }
    attempt();
    return async () => {
        clearTimeout(timer);
        await stop?.();
    };
}
function start(api, settings, agents, folder, outbox, log) {
    const warn = (text) => log.warn(`offbook: ${text}`);
    const report = openReport(folder, { level: settings.level, hostVersion: api.runtime.version ?? null, agents: agents() });
    const memory = provider(settings);
    const post = courier(outbox, memory, report);
    const cursors = openCursors(join(folder, "cursors.json"), memory.endpoint, () => outbox.flush(), warn);
    const taken = capture(outbox, () => post.wake(), memory, transcriptPages, cursors, report);
    const sessions = openSessions(join(folder, "sessions"), warn);
    const forgetting = openForgetting(join(folder, "forgets.json"), sessions, warn);
    let forgottenAskedAt = -Infinity;
    report.conversationAllowed(api.config.plugins?.entries?.[api.id]?.hooks?.allowConversationAccess === true);
    const runs = new Map();
    const jobs = modelJobs(api, settings, memory, agents, report, log, () => isRunning(runs, Date.now()));
    const unsubscribe = api.runtime.events.onSessionTranscriptUpdate((update) => {
        try {
            taken.take(update);
        }
        catch (error) {
            report.problem("a message could not be taken", String(error));
        }
    });
    const check = async () => {
        void taken.readUnfinished();
        try {
            await memory.call("ping", {}, settings.callDeadlineMs);
            report.answered(memory.endpoint, null);
            if (performance.now() - forgottenAskedAt < ASK_FORGOTTEN_EVERY_MS)
                return;
            if (await forgetting.ask(memory))
                forgottenAskedAt = performance.now();
        }
        catch (error) {
            report.answered(memory.endpoint, error instanceof Error ? error.message : String(error));
            if (settings.startDaemon && (await startDaemon(settings, (text) => log.info(`offbook: ${text}`))))
                void post.idle(0);
        }
    };
    void check();
    const timer = setInterval(() => void check(), CHECK_EVERY_MS);
    timer.unref();
    const mine = { settings, provider: memory, outbox, courier: post, capture: taken, sessions, forgetting, report, log, runs };
    shared[NAME] = mine;
    post.wake();
    void taken.catchUp();
    return async () => {
        clearInterval(timer);
        const ends = performance.now() + STOP_MS;
        const delivered = post.idle(LAST_DELIVERY_MS).then(() => post.stop());
        await within(Promise.allSettled([jobs?.stop(), delivered, taken.stop()]), STOP_MS - LAST_READS_MS);
        unsubscribe(); // until here what is said was taken, so that little falls between this and the next one
        const last = async () => {
            const unfinished = await taken.stop();
            await new Promise(setImmediate); // what waited to be told behind a read is told
            await cursors.close(unfinished);
        };
        await within(last(), Math.max(LAST_READS_MS, ends - performance.now()));
        outbox.close();
        report.close();
        if (shared[NAME] === mine)
            delete shared[NAME];
    };
}
/** C9: the host's own model writes the summaries, where the user wants that. */
function modelJobs(api, settings, memory, agents, report, log, isBusy) {
    const { llm } = api.runtime;
    if (!settings.hostModel || !llm)
        return undefined;
    return hostModelJobs(memory, (request) => llm.complete(request), agents, report, log, { isBusy });
}
