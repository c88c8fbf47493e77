/** The parts that run in the gateway: made when its service starts, gone when it stops.
 *
 * The host registers a plugin several times in a process, and may load its modules again; what runs is therefore found under
 * a name of the process, never in a module.
 */
import { join } from "node:path";
import { capture, type Capture } from "./capture.js";
import { provider, type Provider } from "./client.js";
import { courier, type Courier } from "./courier.js";
import { startDaemon } from "./daemon.js";
import type { HostApi, Logger, ServiceContext } from "./host.js";
import { hostModelJobs, type HostModelJobs } from "./jobs.js";
import { openOutbox, type Outbox } from "./outbox.js";
import { openReport, type Report } from "./report.js";
import { openSessions, type Sessions } from "./sessions.js";
import type { Settings } from "./settings.js";
import { transcriptPages } from "./transcript.js";

export interface Running {
  readonly settings: Settings;
  readonly provider: Provider;
  readonly outbox: Outbox;
  readonly courier: Courier;
  readonly capture: Capture;
  readonly sessions: Sessions;
  readonly report: Report;
  readonly log: Logger;
  /** The runs that are going on: work of our own waits for them. */
  readonly runs: Set<string>;
}

const NAME = Symbol.for("offbook.openclaw.running");
const CHECK_EVERY_MS = 30_000;
const LAST_DELIVERY_MS = 3_000;
const shared = globalThis as { [NAME]?: Running };

export function running(): Running | undefined {
  return shared[NAME];
}

export function registerRuntime(api: HostApi, settings: Settings, agents: () => string[]): void {
  let stop: (() => Promise<void>) | undefined;
  api.registerService({
    id: "offbook",
    start(context: ServiceContext): void {
      try {
        stop = start(api, settings, agents, context);
      } catch (error) {
        // The host goes on without us, and says so.
        (context.logger ?? api.logger).error(`offbook records nothing: ${error instanceof Error ? error.message : String(error)}`);
      }
    },
    async stop(): Promise<void> {
      await stop?.();
      stop = undefined;
    },
  });
}

function start(api: HostApi, settings: Settings, agents: () => string[], context: ServiceContext): () => Promise<void> {
  const log = context.logger ?? api.logger;
  const folder = join(context.stateDir, "offbook");
  const report = openReport(folder, { level: settings.level, hostVersion: api.runtime.version ?? null, agents: agents() });
  const memory = provider(settings);
  const outbox = openOutbox(join(folder, "outbox"), settings.outboxBytes, (text) => log.warn(`offbook: ${text}`));
  const post = courier(outbox, memory, report);
  const taken = capture(outbox, () => post.wake(), memory, transcriptPages, report);
  const sessions = openSessions(join(folder, "sessions"), (text) => log.warn(`offbook: ${text}`));
  report.conversationAllowed(api.config.plugins?.entries?.[api.id]?.hooks?.allowConversationAccess === true);
  const runs = new Set<string>();
  const jobs = modelJobs(api, settings, memory, agents, report, log, () => runs.size > 0);
  const unsubscribe = api.runtime.events.onSessionTranscriptUpdate((update) => {
    try {
      taken.take(update);
    } catch (error) {
      report.problem("a message could not be taken", String(error));
    }
  });
  const check = async (): Promise<void> => {
    try {
      await memory.call("ping", {}, settings.callDeadlineMs);
      report.answered(memory.endpoint, null);
    } catch (error) {
      report.answered(memory.endpoint, error instanceof Error ? error.message : String(error));
      if (settings.startDaemon && (await startDaemon(settings, (text) => log.info(`offbook: ${text}`)))) void post.idle(0);
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
function modelJobs(
  api: HostApi,
  settings: Settings,
  memory: Provider,
  agents: () => string[],
  report: Report,
  log: Logger,
  isBusy: () => boolean,
): HostModelJobs | undefined {
  const { llm } = api.runtime;
  if (!settings.hostModel || !llm) return undefined;
  return hostModelJobs(memory, (request) => llm.complete(request), agents, report, log, { isBusy });
}
