/** The agent's own tools. Each is made for its caller, so that it reads and changes only that agent's memory. */
import {
  ASK_DEADLINE_MS, bounded, callerOf, crossing, everyStatus, expansion, PAGE_MESSAGES, pinning, quoted, recollection,
  trouble, type Caller, type Reader,
} from "./answers.js";
import type { Provider } from "./client.js";
import { dashboard, statusLines } from "./dashboard.js";
import type { HostApi, Tool, ToolContext } from "./host.js";
import { textOf } from "./text.js";
import type { ExpandedSpan, MemoryEntry } from "./wire.js";

/** Messages shown on each side of an entry. */
const BESIDE = 2;
const MOST_PLACES = 5_000;

type Given = Record<string, unknown>;
type Run = (given: Given, caller: Caller) => Promise<string>;

interface Definition {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly properties: Record<string, object>;
  readonly required?: readonly string[];
  readonly run: Run;
}

export function registerTools(api: HostApi, memory: () => Provider, agents: () => string[]): void {
  for (const definition of definitions(memory, agents)) {
    const factory = (context: ToolContext): Tool => made(definition, callerOf(context, agents()));
    api.registerTool(factory, { name: definition.name });
  }
}

function made(definition: Definition, caller: Caller): Tool {
  const { name, label, description, properties, required, run } = definition;
  return {
    name,
    label,
    description,
    parameters: { type: "object", properties, required: required ?? [], additionalProperties: false },
    catalogMode: "direct-only",
    async execute(_id, given) {
      const text = await run(given ?? {}, caller).catch(trouble);
      return { content: [{ type: "text", text: bounded(text) }], details: { agentId: caller.agentId } };
    },
  };
}

function definitions(memory: () => Provider, agents: () => string[]): Definition[] {
  const text = (description: string): object => ({ type: "string", minLength: 1, description });
  return [
    {
      name: "swap_status",
      label: "Memory status",
      description: "How your memory stands: what is stored, retrieved, summarised, pinned, and still to be done.",
      properties: {},
      run: async (_given, caller) =>
        statusLines(await memory().call("status", { agentId: caller.agentId }, ASK_DEADLINE_MS), new Date()),
    },
    {
      name: "swap_dashboard",
      label: "Memory dashboard",
      description: "A picture of every agent's memory, as bars in text. Show it as it is, in a code block.",
      properties: {},
      run: () => dashboardText(memory(), agents()),
    },
    {
      name: "swap_promote",
      label: "Pin in memory",
      description: "Pin what must stay in mind: every message that holds a keyword, or all of a session.",
      properties: {
        keyword: text("Messages that hold this word are meant."),
        sessionKey: text("All messages of this session are meant, as in agent:main:main."),
        unpin: { type: "boolean", description: "true: let them age again." },
      },
      run: (given, caller) => promote(memory(), caller, given),
    },
    {
      name: "swap_cross",
      label: "Cross-agent search",
      description: "Open your memory and that of other agents to each other (on), close it (off), or say how it is "
        + "(status). Only when your user asks for it.",
      properties: { state: { type: "string", enum: ["on", "off", "status"] } },
      required: ["state"],
      run: (given, caller) => cross(memory(), caller, given.state),
    },
    {
      name: "memory_recall",
      label: "Recall",
      description: "Search everything that was ever said with you, in all sessions, also what is no longer in this "
        + "context. Ask in plain words, with the names and things it was about.",
      properties: {
        query: text("What to remember."),
        limit: { type: "integer", minimum: 1, maximum: 20, description: "How many memories at the most; else 5." },
        at: text("As it was known at this time (ISO 8601): what was corrected later is as it was."),
        scope: {
          type: "string",
          enum: ["agent", "session"],
          description: "agent: your own memory. session: this session. Left out: also agents that share theirs.",
        },
      },
      required: ["query"],
      run: (given, caller) => recall(memory(), caller, given, "agent"),
    },
    {
      name: "memory_expand",
      label: "Look closer at a memory",
      description: "The messages behind a summary, or around something memory_recall has shown, word for word.",
      properties: {
        summaryId: text("Of a summary or a lesson, as in L1-0003 or lesson-0007."),
        entryId: text("An id in brackets of memory_recall, as in m100000005."),
        span: text("A place in brackets of memory_recall, as in agent:main:main#3-5."),
        after: text("Where the answer before said that there is more."),
      },
      run: (given, caller) => expand(memory(), caller, given),
    },
  ];
}

export async function dashboardText(memory: Provider, agents: string[]): Promise<string> {
  const { statuses, notes } = await everyStatus(memory, agents);
  return [`\`\`\`\n${dashboard(statuses, new Date())}\n\`\`\``, ...notes].join("\n");
}

export async function promote(memory: Provider, caller: Caller, given: Given): Promise<string> {
  const keyword = textOf(given.keyword);
  const sessionKey = textOf(given.sessionKey);
  if (Boolean(keyword) === Boolean(sessionKey)) return "Say what to pin: either a keyword or a sessionKey.";
  const isUnpin = given.unpin === true;
  const which = keyword ? `with ${quoted(keyword, 80)}` : `of session ${sessionKey}`;
  const body = keyword ? { agentId: caller.agentId, keyword } : { agentId: caller.agentId, sessionId: sessionKey! };
  return pinning(await memory.call(isUnpin ? "unpin" : "pin", body, ASK_DEADLINE_MS), which, isUnpin);
}

export async function cross(memory: Provider, caller: Caller, state: unknown): Promise<string> {
  if (state !== "on" && state !== "off" && state !== "status") return "Say on, off or status.";
  const enabled = state === "status" ? {} : { enabled: state === "on" };
  return crossing(await memory.call("cross", { agentId: caller.agentId, ...enabled }, ASK_DEADLINE_MS), caller.agentId);
}

export async function recall(memory: Provider, caller: Caller, given: Given, reader: Reader): Promise<string> {
  const query = textOf(given.query);
  if (!query) return "Say what to remember: query is empty.";
  const at = textOf(given.at);
  if (at && Number.isNaN(Date.parse(at))) return `“at” is no time: write it as in ${new Date().toISOString()}.`;
  const scope = given.scope === "agent" || given.scope === "session" ? given.scope : "all";
  const limit = typeof given.limit === "number" ? Math.min(20, Math.max(1, Math.round(given.limit))) : 5;
  const asOf = at ? { at: new Date(at).toISOString() } : {};
  const body = { sessionId: caller.sessionKey, agentId: caller.agentId, query, limit, scope, ...asOf } as const;
  const found = await memory.call("recall", body, ASK_DEADLINE_MS);
  found.entries.forEach(noted);
  return recollection(found, caller, new Date(), reader, at);
}

async function expand(memory: Provider, caller: Caller, given: Given): Promise<string> {
  const [summaryId, entryId, place] = [textOf(given.summaryId), textOf(given.entryId), textOf(given.span)];
  if ([summaryId, entryId, place].filter(Boolean).length !== 1) return "Give one of summaryId, entryId and span.";
  const after = textOf(given.after);
  const page = { agentId: caller.agentId, limit: PAGE_MESSAGES, ...(after ? { after } : {}) };
  if (summaryId) {
    return expansion(await memory.call("expand", { ...page, summaryId }, ASK_DEADLINE_MS), `behind ${summaryId}`);
  }
  const found = entryId ? placeOfEntry(caller.agentId, entryId) : spanOf(place!);
  if (typeof found === "string") return found;
  const asked = entryId ? `around ${entryId}` : `at ${place}`;
  return expansion(await memory.call("expand", { ...page, span: found }, ASK_DEADLINE_MS), asked);
}

function spanOf(place: string): ExpandedSpan | string {
  const parts = /^(.+)#(\d{1,15})(?:-(\d{1,15}))?$/s.exec(place);
  if (!parts) return `“${place.slice(0, 200)}” is no place: write it as memory_recall does, as in agent:main:main#3-5.`;
  const firstSeq = Math.max(1, Number(parts[2]));
  return { sessionId: parts[1]!, firstSeq, lastSeq: Math.max(firstSeq, Number(parts[3] ?? parts[2])) };
}

/** Where the entries stand that were shown lately: the provider goes by places, an agent by ids. Kept for the process,
 * since the host makes every tool anew for every run. */
const places = new Map<string, MemoryEntry>();

function noted(entry: MemoryEntry): void {
  places.delete(entry.id);
  places.set(entry.id, entry);
  if (places.size > MOST_PLACES) places.delete(places.keys().next().value!);
}

function placeOfEntry(agentId: string, entryId: string): ExpandedSpan | string {
  const entry = places.get(entryId);
  if (!entry) {
    return `Where ${entryId.slice(0, 80)} stands is not known: ask memory_recall again, or give its place as span.`;
  }
  // What another agent has opened is what recall shows of it, and not its whole conversation.
  if (entry.agentId !== agentId) return `That is agent ${entry.agentId}'s: memory_recall shows all that can be seen.`;
  const { firstSeq, lastSeq } = entry.span;
  return { sessionId: entry.sessionId, firstSeq: Math.max(1, firstSeq - BESIDE), lastSeq: lastSeq + BESIDE };
}
