/** `openclaw offbook status|inspect`: how memory stands, in the host's own command line. */
import { ASK_DEADLINE_MS, everyStatus, minute, placeOf, quoted, trouble } from "./answers.js";
import { dashboard, grouped, statusLines } from "./dashboard.js";
const DESCRIPTION = "Offbook, the agents' memory: status, inspect";
const MOST_SUMMARIES = 100;
export function registerHostCli(api, memory, agents) {
    const registrar = ({ program }) => {
        const root = program.command("offbook").description(DESCRIPTION);
        helped(root.command("status").description("How memory stands: of one agent in numbers, of all as bars")
            .option("--agent <name>", "only this agent")
            .option("--json", "print JSON and nothing else")
            .action((options) => ran(options, () => status(memory(), agents(), options))), ["openclaw offbook status", "openclaw offbook status --agent main", "openclaw offbook status --json"]);
        helped(root.command("inspect").description("The summaries of an agent, the newest first")
            .option("--level <level>", "only those of this level: L1, L2, …")
            .option("--limit <count>", "most summaries shown", "10")
            .option("--agent <name>", "whose; default: the first agent of the host")
            .option("--json", "print JSON and nothing else")
            .action((options) => ran(options, () => inspect(memory(), agents(), options))), ["openclaw offbook inspect --level L1 --limit 10", "openclaw offbook inspect --agent research --json"]);
        helped(root, ["openclaw offbook status", "openclaw offbook inspect --level L1 --limit 10"]);
    };
    const descriptor = {
        name: "offbook",
        description: DESCRIPTION,
        hasSubcommands: true,
        // Else the host may write lines of its own to where JSON is read from.
        machineOutput: ({ argv }) => argv.includes("--json"),
    };
    api.registerCli(registrar, { commands: ["offbook"], descriptors: [descriptor] });
}
function helped(command, examples) {
    command.addHelpText?.("after", `\nExamples:\n${examples.map((one) => `  ${one}`).join("\n")}\n`);
}
/** One line on stderr and exit status 1 where it could not be done. */
async function ran(options, run) {
    try {
        process.stdout.write(`${await run()}\n`);
    }
    catch (error) {
        const text = trouble(error).replace(/\s*\n\s*/g, " ");
        if (options.json)
            process.stdout.write(`${JSON.stringify({ error: text })}\n`);
        process.stderr.write(`${text}\n`);
        process.exitCode = 1;
    }
}
async function status(memory, agents, { agent, json }) {
    if (agent) {
        const found = await memory.call("status", { agentId: agent }, ASK_DEADLINE_MS);
        return json ? JSON.stringify([found], null, 2) : statusLines(found, new Date());
    }
    const { statuses, notes } = await everyStatus(memory, agents);
    if (json)
        return JSON.stringify(statuses, null, 2);
    return [dashboard(statuses, new Date()), "", `Asked at ${memory.endpoint}`, ...notes].join("\n");
}
async function inspect(memory, agents, options) {
    const level = levelOf(options.level);
    const limit = Number(options.limit ?? 10);
    if (!Number.isInteger(limit) || limit < 1 || limit > MOST_SUMMARIES) {
        throw misused(`--limit is a whole number from 1 to ${MOST_SUMMARIES}`);
    }
    const agentId = options.agent ?? agents[0] ?? "main";
    const body = { agentId, limit, ...(level ? { level } : {}) };
    const page = await memory.call("summaries", body, ASK_DEADLINE_MS);
    if (options.json)
        return JSON.stringify(page, null, 2);
    if (page.summaries.length === 0) {
        const which = level ? ` of level L${level}` : "";
        return `Agent ${agentId} has no summaries${which} yet: they are made as conversations grow.`;
    }
    const more = page.next ? ["", `There are more: --limit shows up to ${MOST_SUMMARIES}.`] : [];
    return [...page.summaries.map(summaryLines), ...more].join("\n");
}
function misused(detail) {
    return Object.assign(new Error(detail), { next: "`openclaw offbook inspect --help` shows how" });
}
function levelOf(given) {
    if (!given)
        return undefined;
    const level = /^L?([1-9])$/i.exec(given.trim())?.[1];
    if (!level)
        throw misused(`--level is L1 to L9, and not ${quoted(given, 40)}`);
    return Number(level);
}
function summaryLines(summary) {
    const { id, sourceMessages, sourceTokens, tokens, summarizer, usage, lost, firstAt, lastAt, spans } = summary;
    const size = `${grouped(sourceMessages)} messages, ${grouped(sourceTokens)} tokens in ${grouped(tokens)}`;
    const cost = usage.dollars ? `, $${usage.dollars.toFixed(4)}` : "";
    const losses = lost ? `, ${grouped(lost)} particulars left out` : "";
    const places = spans.slice(0, 3).map((span) => placeOf(span.sessionId, span.firstSeq, span.lastSeq)).join(", ");
    return [
        `${id}  ${minute(firstAt)} to ${minute(lastAt)}  ${size}, by ${summarizer}${cost}${losses}`,
        `  ${places}${spans.length > 3 ? ` and ${spans.length - 3} more` : ""}`,
        `  ${quoted(summary.text, 300)}`,
    ].join("\n");
}
