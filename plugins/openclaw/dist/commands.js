/** Slash commands: the same as the tools, for the person in the chat, and `/offbook` with the rest. */
import { ASK_DEADLINE_MS, bounded, callerOf, minute, numbered, quoted, topicLines, trouble, } from "./answers.js";
import { statusLines } from "./dashboard.js";
import { cross, dashboardText, promote, recall } from "./tools.js";
/** The host keeps what a command answers in the transcript. By this line Offbook knows it for its own words, which are not to be
 * remembered (`noise.py` has the same). */
const SIGNATURE = "— Offbook";
const MOST_TOLD = 12;
const TOLD_CHARS = 240;
const HELP = `Offbook, the agent's memory:
/offbook status           what is stored, found, summarised, pinned
/offbook doctor           is everything in order, and what to do if not
/offbook recall <words>   what was said about it
/offbook topics           what this agent's conversations are about
/offbook state            goals, open matters and what stays in mind, here
/offbook dashboard        a picture of every agent's memory
/offbook pin <keyword|session:KEY>     keep it from ageing; /offbook unpin <…> takes it back
/offbook cross on|off     search across agents
/offbook level            off, capture, recall or hot-swap, and how to change it
The same by other names: /swap-status  /swap-dashboard  /swap-promote  /swap-cross`;
const SAY_WHAT_TO_PIN = "Say what to pin or unpin: /offbook pin <keyword>, or /offbook pin session:KEY.";
const LEVELS_TOLD = `off: nothing is recorded
capture: every message is recorded
recall: and comes to mind before each turn
hot-swap: and the context is swapped, not compacted (needs plugins.slots.contextEngine = "offbook")
Change it with: openclaw config set plugins.entries.offbook.config.level recall`;
export function registerCommands(api, memory, agents, report) {
    const register = (name, description, acceptsArgs, answer) => api.registerCommand({
        name,
        description,
        acceptsArgs,
        requireAuth: true,
        handler: async (context) => {
            const text = await answer((context.args ?? "").trim(), callerOf(context, agents())).catch(trouble);
            return { text: `${bounded(text)}\n${SIGNATURE}` };
        },
    });
    const status = async (_words, caller) => {
        const found = await memory().call("status", { agentId: caller.agentId }, ASK_DEADLINE_MS);
        return fenced(statusLines(found, new Date()));
    };
    register("swap-status", "How this agent's memory stands", false, status);
    const dashboard = () => dashboardText(memory(), agents());
    const pin = async (words, caller) => (words ? promote(memory(), caller, pinned(words)) : SAY_WHAT_TO_PIN);
    const crossing = (words, caller) => cross(memory(), caller, words.toLowerCase() || "status");
    register("swap-dashboard", "A picture of every agent's memory", false, dashboard);
    register("swap-promote", "Pin: /swap-promote <keyword|session:KEY>; undo: unpin <…>", true, pin);
    register("swap-cross", "Search across agents: /swap-cross on|off", true, crossing);
    const shared = {
        "": status,
        status,
        dashboard,
        pin,
        unpin: (words, caller) => pin(words && `unpin ${words}`, caller),
        cross: crossing,
    };
    register("offbook", "Memory: status, doctor, recall, topics, state, dashboard, pin, cross, level, help", true, (words, caller) => offbook(words, caller, memory(), shared, report()));
}
async function offbook(words, caller, memory, shared, told) {
    const [said = "", rest = ""] = words.split(/\s+(.*)/s);
    const verb = said.toLowerCase();
    const { agentId } = caller;
    const answer = Object.hasOwn(shared, verb) ? await shared[verb](rest, caller) : undefined;
    switch (verb) {
        case "":
        case "status":
            return `${answer}\nLevel: ${told.level ?? "unknown"}. /offbook help lists what else there is.`;
        case "doctor":
            return doctor(told, await memory.call("ping", {}, ASK_DEADLINE_MS).then(() => null, trouble), memory.endpoint);
        case "recall":
            if (!rest)
                return "Say what to look for: /offbook recall <words>.";
            return recall(memory, caller, { query: rest, limit: 8 }, "person");
        case "topics":
            return topicLines((await memory.call("topics", { agentId }, ASK_DEADLINE_MS)).topics, new Date());
        case "state":
            return stateLines(await memory.call("state", { agentId, sessionId: caller.sessionKey }, ASK_DEADLINE_MS));
        case "level":
            return `Level: ${told.level ?? "unknown"}.\n${LEVELS_TOLD}`;
        case "help":
            return HELP;
        default:
            return answer ?? `There is no /offbook ${quoted(said, 40)}.\n${HELP}`;
    }
}
/** `session:KEY`, else a keyword; `unpin …` before either takes it back. */
function pinned(words) {
    const unpin = /^unpin\s+/i.test(words);
    const what = words.replace(/^unpin\s+/i, "");
    return what.startsWith("session:") ? { sessionKey: what.slice(8).trim(), unpin } : { keyword: what, unpin };
}
const NOT_RUNNING = "✗ service: does not run in this gateway, so nothing is recorded; restart it (openclaw gateway restart), and see its log";
function doctor(told, failure, endpoint) {
    const { capture = {}, turns = {}, engine = {}, permissions = {}, problems = [] } = told;
    const lost = (capture.turnedAway ?? 0) + (capture.refused ?? 0);
    const delivered = `${capture.delivered ?? 0} of ${capture.messages ?? 0} delivered`;
    const prepared = `${turns.prepared ?? 0} prepared, ${turns.injected ?? 0} with memory`;
    const lines = [
        failure ? `✗ provider: ${failure}` : `✓ provider: answers at ${endpoint}`,
        told.level === "off"
            ? "· level: off, so nothing is recorded; /offbook level says how to change it"
            : `✓ level: ${told.level ?? "unknown"}`,
        ...(told.level !== "off" && told.startedAt === undefined ? [NOT_RUNNING] : []),
        permissionLine(permissions.conversation),
        `${lost ? "✗" : "✓"} capture: ${delivered}, ${capture.waiting ?? 0} waiting, ${lost} not taken`,
        `${turns.failed ? "!" : "✓"} turns: ${prepared}, ${turns.late ?? 0} late, ${turns.failed ?? 0} failed`,
        `${engine.fallbacks ? "!" : "✓"} context: ${engine.swaps ?? 0} swaps, ${engine.fallbacks ?? 0} left to the host`,
        ...problems.slice(0, 5).map((one) => `! ${minute(one.at ?? "")} ${one.what ?? "problem"}: ${one.detail ?? ""}`),
    ];
    return `${lines.join("\n")}\nMore: \`offbook openclaw doctor\` on the host's machine.`;
}
function permissionLine(isGiven) {
    if (isGiven)
        return "✓ permission: conversation access";
    if (isGiven !== false)
        return "· permission: conversation access not seen yet";
    const line = "openclaw config set plugins.entries.offbook.hooks.allowConversationAccess true";
    return `✗ permission: nothing comes to mind before a turn; give it with: ${line}`;
}
function stateLines(state) {
    const records = state.working.flatMap((one) => one.records).slice(0, MOST_TOLD);
    const working = records.map((one) => `- ${one.kind}: ${quoted(one.text, TOLD_CHARS)}`);
    const anchors = state.anchors
        .slice(0, MOST_TOLD)
        .map((one) => `- ${one.kind} (${minute(one.at)}): ${quoted(one.text, TOLD_CHARS)}`);
    const session = state.session
        ? [`This session: ${numbered(state.session.exchanges, "exchange")}, since ${minute(state.session.startedAt)}.`]
        : [];
    const lines = [
        ...session,
        ...(working.length ? ["What is being done:", ...working] : []),
        ...(anchors.length ? ["What stays in mind:", ...anchors] : []),
        ...(state.topics.length ? ["Topics:", topicLines(state.topics, new Date())] : []),
    ];
    return (lines.length > session.length ? lines : [...session, "Nothing is noted of this session yet."]).join("\n");
}
function fenced(text) {
    return `\`\`\`\n${text}\n\`\`\``;
}
