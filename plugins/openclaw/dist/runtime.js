/** The parts that run in the gateway: made when its service starts, gone when it stops.
 *
 * The host registers a plugin several times in a process, and may load its modules again; what runs is therefore found under
 * a name of the process, never in a module.
 */
import { join } from "node:path";
import { capture } from "./capture.js";
import { provider } from "./client.js";
import { courier } from "./courier.js";
import { startDaemon } from "./daemon.js";
import { hostModelJobs } from "./jobs.js";
import { openOutbox } from "./outbox.js";
import { openReport } from "./report.js";
import { openSessions } from "./sessions.js";
import { transcriptPages } from "./transcript.js";
const NAME = Symbol.for("offbook.openclaw.running");
const CHECK_EVERY_MS = 30_000;
const LAST_DELIVERY_MS = 3_000;
const shared = globalThis;
export function running() {
    return shared[NAME];
}
export function registerRuntime(api, settings, agents) {
    let stop;
    api.registerService({
        id: "offbook",
        start(context) {
            try {
                stop = start(api, settings, agents, context);
            }
            catch (error) {
                // The host goes on without us, and says so.
                (context.logger ?? api.logger).error(`offbook records nothing: ${error instanceof Error ? error.message : String(error)}`);
            }
        },
        async stop() {
            await stop?.();
            stop = undefined;
        },
    });
}
function start(api, settings, agents, context) {
    const log = context.logger ?? api.logger;
    const folder = join(context.stateDir, "offbook");
    const report = openReport(folder, { level: settings.level, hostVersion: api.runtime.version ?? null, agents: agents() });
    const memory = provider(settings);
    const outbox = openOutbox(join(folder, "outbox"), settings.outboxBytes, (text) => log.warn(`offbook: ${text}`));
    const post = courier(outbox, memory, report);
    const taken = capture(outbox, () => post.wake(), memory, transcriptPages, report);
    const sessions = openSessions(join(folder, "sessions"), (text) => log.warn(`offbook: ${text}`));
    report.conversationAllowed(api.config.plugins?.entries?.[api.id]?.hooks?.allowConversationAccess === true);
    const runs = new Set();
    const jobs = modelJobs(api, settings, memory, agents, report, log, () => runs.size > 0);
    const unsubscribe = api.runtime.events.onSessionTranscriptUpdate((update) => {
        try {
            taken.take(update);
        }
        catch (error) {
            report.problem("a message could not be taken", String(error));
        }
    });
    const check = async () => {
        try {
            await memory.call("ping", {}, settings.callDeadlineMs);
            report.answered(memory.endpoint, null);
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
    shared[NAME] = { settings, provider: memory, outbox, courier: post, capture: taken, sessions, report, log, runs };
    post.wake();
    return async () => {
        delete shared[NAME];
        clearInterval(timer);
        unsubscribe();
        await jobs?.stop();
        await post.idle(LAST_DELIVERY_MS);
        await post.stop();
        outbox.close();
        report.close();
    };
}
/** C9: the host's own model writes the summaries, where the user wants that. */
function modelJobs(api, settings, memory, agents, report, log, isBusy) {
    const { llm } = api.runtime;
    if (!settings.hostModel || !llm)
        return undefined;
    return hostModelJobs(memory, (request) => llm.complete(request), agents, report, log, { isBusy });
}
