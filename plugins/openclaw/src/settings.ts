/** What the user set in `plugins.entries.offbook.config`, with our defaults. */
import { homedir } from "node:os";
import { join } from "node:path";
import { textOf } from "./text.js";

export const LEVELS = ["off", "capture", "recall", "hot-swap"] as const;
export type Level = (typeof LEVELS)[number];

export interface Settings {
  readonly level: Level;
  /** Offbook's data folder. */
  readonly home: string;
  /** `unix:///path` or `http(s)://host:port`. */
  readonly endpoint: string;
  readonly tokenFile: string;
  readonly startDaemon: boolean;
  readonly command: string;
  /** How long a turn may wait for what comes to mind. */
  readonly turnDeadlineMs: number;
  /** How long any other call may take. */
  readonly callDeadlineMs: number;
  /** Tokens that are left for the answer; 0: 4,096, or 15 % of a small window. */
  readonly answerTokens: number;
  readonly outboxBytes: number;
  readonly hostModel: boolean;
}

export function settingsOf(config: Record<string, unknown> | undefined, environment = process.env): Settings {
  const given = config ?? {};
  const home = expanded(textOf(given.home) ?? environment.OFFBOOK_HOME ?? join(homedir(), ".offbook"));
  return {
    level: levelOf(given),
    home,
    endpoint: textOf(given.endpoint) ?? environment.OFFBOOK_URL ?? `unix://${join(home, "offbook.sock")}`,
    tokenFile: expanded(textOf(given.tokenFile) ?? join(home, "token")),
    startDaemon: given.startDaemon === true,
    command: textOf(given.command) ?? "offbook",
    turnDeadlineMs: number(given.turnDeadlineMs) ?? 600,
    callDeadlineMs: number(given.callDeadlineMs) ?? 1500,
    answerTokens: number(given.answerTokens) ?? 0,
    outboxBytes: (number(given.outboxMegabytes) ?? 64) * 1024 * 1024,
    hostModel: given.hostModel === true,
  };
}

/** `storeOnly` and `enabled` are the names that users of the older plugin know. */
function levelOf(given: Record<string, unknown>): Level {
  if (given.enabled === false) return "off";
  if (given.storeOnly === true) return "capture";
  return LEVELS.find((level) => level === given.level) ?? "off";
}

function number(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : undefined;
}

function expanded(path: string): string {
  return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
}
