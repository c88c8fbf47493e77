/** The parts that run in the gateway: made when its service starts, gone when it stops.
 *
 * The host registers a plugin several times in a process, and may load its modules again; what runs is therefore found under
 * a name of the process, never in a module.
 */
import { join } from "node:path";
import { capture, type Capture } from "./capture.js";
import { provider, type Provider } from "./client.js";
import { courier, type Courier } from "./courier.js";
import { openCursors } from "./cursors.js";
import { startDaemon } from "./daemon.js";
import { openForgetting, type Forgetting } from "./forgetting.js";
import type { HostApi, Logger, ServiceContext } from "./host.js";
import { hostModelJobs, type HostModelJobs } from "./jobs.js";
import { openOutbox, type Outbox } from "./outbox.js";
import { openReport, type Report } from "./report.js";
import { isRunning } from "./runs.js";
import { openSessions, type Sessions } from "./sessions.js";
import type { Settings } from "./settings.js";
import { transcriptPages } from "./transcript.js";
import { within } from "./within.js";

export interface Running {
  readonly settings: Settings;
  readonly provider: Provider;
  readonly outbox: Outbox;
  readonly courier: Courier;
  readonly capture: Capture;
  readonly sessions: Sessions;
  readonly forgetting: Forgetting;
  readonly report: Report;
  readonly log: Logger;
  /** The runs that are going on, and when they began: work of our own waits for them. */
  readonly runs: Map<string, number>;
}

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
const shared = globalThis as { [NAME]?: Running };

export function running(): Running | undefined {
  return shared[NAME];
}

export function registerRuntime(api: HostApi, settings: Settings, agents: () => string[]): void {
  let stop: (() => Promise<void>) | undefined;
  api.registerService({
    id: "offbook",
    start(context: ServiceContext): void {
      stop = startWithin(TAKE_OVER_MS, api, settings, agents, context);
    },
    async stop(): Promise<void> {
      const ending = stop;
      stop = undefined;
      await ending?.();
    },
  });
}

/** At once where that is possible; otherwise in the background: one that is being replaced has the folder until it is done. */
function startWithin(
  longestMs: number,
  api: HostApi,
  settings: Settings,
  agents: () => string[],
  context: ServiceContext,
): () => Promise<void> {
  const log = context.logger ?? api.logger;
  const folder = join(context.stateDir, "offbook");
  const ends = performance.now() + longestMs;
  let stop: (() => Promise<void>) | undefined;
  let timer: NodeJS.Timeout | undefined;
  // The host goes on without us, and says so.
  const fail = (error: unknown): void =>
    log.error(`offbook records nothing: ${error instanceof Error ? error.message : String(error)}`);

  function attempt(): void {
    let outbox: Outbox;
    try {
      outbox = openOutbox(join(folder, "outbox"), settings.outboxBytes, (text) => log.warn(`offbook: ${text}`));
    } catch (error) {
      if (performance.now() >= ends) return fail(error);
      timer = setTimeout(attempt, TRY_AGAIN_MS);
      timer.unref();
      return;
    }
    try {
      stop = start(api, settings, agents, folder, outbox, log);
    } catch (error) {
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

function start(
  api: HostApi,
  settings: Settings,
  agents: () => string[],
  folder: string,
  outbox: Outbox,
  log: Logger,
): () => Promise<void> {
  const warn = (text: string): void => log.warn(`offbook: ${text}`);
  const report = openReport(folder, { level: settings.level, hostVersion: api.runtime.version ?? null, agents: agents() });
  const memory = provider(settings);
  const post = courier(outbox, memory, report);
  const cursors = openCursors(join(folder, "cursors.json"), memory.endpoint, () => outbox.flush(), warn);
  const taken = capture(outbox, () => post.wake(), memory, transcriptPages, cursors, report);
  const sessions = openSessions(join(folder, "sessions"), warn);
  const forgetting = openForgetting(join(folder, "forgets.json"), sessions, warn);
  let forgottenAskedAt = -Infinity;
  report.conversationAllowed(api.config.plugins?.entries?.[api.id]?.hooks?.allowConversationAccess === true);
  const runs = new Map<string, number>();
  const jobs = modelJobs(api, settings, memory, agents, report, log, () => isRunning(runs, Date.now()));
  const unsubscribe = api.runtime.events.onSessionTranscriptUpdate((update) => {
    try {
      taken.take(update);
    } catch (error) {
      report.problem("a message could not be taken", String(error));
    }
  });
  const check = async (): Promise<void> => {
    void taken.readUnfinished();
    try {
      await memory.call("ping", {}, settings.callDeadlineMs);
      report.answered(memory.endpoint, null);
      if (performance.now() - forgottenAskedAt < ASK_FORGOTTEN_EVERY_MS) return;
      if (await forgetting.ask(memory)) forgottenAskedAt = performance.now();
    } catch (error) {
      report.answered(memory.endpoint, error instanceof Error ? error.message : String(error));
      if (settings.startDaemon && (await startDaemon(settings, (text) => log.info(`offbook: ${text}`)))) void post.idle(0);
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
    const last = async (): Promise<void> => {
      const unfinished = await taken.stop();
      await new Promise(setImmediate); // what waited to be told behind a read is told
      await cursors.close(unfinished);
    };
    await within(last(), Math.max(LAST_READS_MS, ends - performance.now()));
    outbox.close();
    report.close();
    if (shared[NAME] === mine) delete shared[NAME];
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
