/** What the user set in `plugins.entries.offbook.config`, with our defaults. */
import { homedir } from "node:os";
import { join } from "node:path";
import { textOf } from "./text.js";
export const LEVELS = ["off", "capture", "recall", "hot-swap"];
export function settingsOf(config, environment = process.env) {
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
function levelOf(given) {
    if (given.enabled === false)
        return "off";
    if (given.storeOnly === true)
        return "capture";
    return LEVELS.find((level) => level === given.level) ?? "off";
}
function number(value) {
    return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : undefined;
}
function expanded(path) {
    return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
}
