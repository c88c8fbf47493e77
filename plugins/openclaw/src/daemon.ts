/** Starts `offbook serve` where the user asked for it and nobody answers. It lives on when the gateway ends. */
import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { provider } from "./client.js";
import { placeOf } from "./endpoint.js";
import type { Settings } from "./settings.js";

const READY_WITHIN_MS = 15_000;
const ASK_EVERY_MS = 200;
const PING_MS = 1_000;
const TRIED_AGAIN_AFTER_MS = 60_000;
const LOG_BYTES = 8 * 1024 * 1024;
const ATTEMPTS = Symbol.for("offbook.openclaw.daemon-attempts");

interface Attempt {
  readonly outcome: Promise<boolean>;
  /** Until then who asks is given the outcome of this one. */
  until: number;
}

/** Whether a provider answers in the end. One that was started and has died since is started again at once, after a failure
 * at most one attempt a minute is made; who asks meanwhile gets the outcome of the last. A second provider on the same folder ends by itself: its lock is taken. */
export function startDaemon(settings: Settings, log: (text: string) => void): Promise<boolean> {
  const shared = globalThis as { [ATTEMPTS]?: Map<string, Attempt> };
  const attempts = (shared[ATTEMPTS] ??= new Map());
  const last = attempts.get(settings.home);
  if (last && performance.now() < last.until) return last.outcome;
  const outcome = started(settings, log).catch((error: unknown) => {
    log(`\`${settings.command} serve\` could not be started (${String(error)})`);
    return false;
  });
  const attempt: Attempt = { outcome, until: Infinity };
  attempts.set(settings.home, attempt);
  void outcome.then((answers) => {
    attempt.until = performance.now() + (answers ? 0 : TRIED_AGAIN_AFTER_MS);
  });
  return outcome;
}

async function started(settings: Settings, log: (text: string) => void): Promise<boolean> {
  const asked = provider(settings);
  const answers = (): Promise<boolean> => asked.call("ping", {}, PING_MS).then(() => true, () => false);
  if (await answers()) return true;
  const place = placeOf(settings.endpoint);
  if (!place || (!place.options.socketPath && !place.takesOwnToken)) {
    log(`${asked.endpoint} is on another machine: start the provider there, with \`offbook serve\``);
    return false;
  }
  const file = logFile(settings.home);
  const failure = run(settings, file.descriptor);
  closeSync(file.descriptor);
  const ends = performance.now() + READY_WITHIN_MS;
  while (performance.now() < ends) {
    const ended = await Promise.race([failure, sleep(ASK_EVERY_MS)]);
    if (await answers()) {
      log(`started \`${settings.command} serve\`; its log is ${file.path}`);
      return true;
    }
    if (ended !== undefined) {
      log(`\`${settings.command} serve\` ${ended}; its log is ${file.path}`);
      return false;
    }
  }
  log(`\`${settings.command} serve\` does not answer in ${READY_WITHIN_MS / 1000} s; its log is ${file.path}`);
  return false;
}

/** Resolves with what went wrong, if the process ends; a provider that is well never does. */
function run(settings: Settings, log: number): Promise<string> {
  return new Promise((resolve) => {
    const child = spawn(settings.command, ["serve"], {
      detached: true,
      stdio: ["ignore", log, log],
      env: { ...process.env, OFFBOOK_HOME: settings.home },
    });
    child.on("error", (error: NodeJS.ErrnoException) => {
      const isMissing = error.code === "ENOENT";
      resolve(isMissing ? "was not found: set `command` in the plugin's config to where it is" : error.message);
    });
    child.on("exit", (code, signal) => resolve(`ended with ${signal ?? `status ${code}`}`));
    child.unref();
  });
}

function logFile(home: string): { path: string; descriptor: number } {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const path = join(home, "serve.log");
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES) renameSync(path, `${path}.old`);
  return { path, descriptor: openSync(path, "a", 0o600) };
}
