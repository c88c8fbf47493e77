/** What the model is shown of a session: memory first, then the host's own messages from a cut on. Pure.
 *
 * The host hands over its whole transcript each turn, without entry ids, and hands our own answer back to us within the same
 * turn. So a cut is found by what a message carries itself (role, time, call), and building twice gives the same twice.
 */
import type { Block, HostMessage } from "./host.js";
import { plainText } from "./text.js";
import { estimateTokens, hostTokens } from "./tokens.js";
import type { Message } from "./wire.js";

/** What a swap left: memory for what is before the cut, and the cut. Kept on disk, for it outlives the process. */
export interface Window {
  readonly generation: number;
  /** Summaries, digest, pins, working state: the assistant's own words. */
  readonly memory: string;
  /** Messages that the log has word for word and the host no longer: between the memory and the cut. */
  readonly restored: readonly HostMessage[];
  /** The print of the first message shown as the host has it; "" where it has none of them. */
  readonly cut: string;
  /** The print of the last message that is not shown, where all of the host's were behind it: what comes later is. */
  readonly after?: string;
  /** By print: large messages that the swap shortened, and those that were forgotten. */
  readonly shortened: Readonly<Record<string, HostMessage["content"]>>;
  /** Usage that the model reported before this moment is that of the context before. */
  readonly swappedAt: number;
}

export const BOUNDARY = "(What came before this point is in your memory. You recall it:)";
export const GOES_ON = "(The conversation goes on from here.)";
/** What the log has in the place of what was forgotten for good. */
export const FORGOTTEN = "[forgotten]";
const SHORTENED_BELOW = 0.9;
const WORTH_SHORTENING_CHARS = 4_000;
/** What a provider counts for a message besides its text. */
const TOKENS_PER_MESSAGE = 4;
/** Of an image, as providers reckon a middling one. */
const TOKENS_PER_IMAGE = 1_200;
/** Of an image, as the host does. */
const HOST_TOKENS_PER_IMAGE = 2_500;

/** What tells a message apart where it comes without its id. */
export function print(message: HostMessage): string {
  return typeof message.timestamp === "number" ? `${message.role}|${message.timestamp}|${message.toolCallId ?? ""}` : "";
}

/** The messages to show: the section of memory that stays between swaps, what the last swap left, and the host's messages. Where
 * nothing was said yet, the memory is of this moment. */
export function assembled(
  messages: readonly HostMessage[], window: Window | undefined, memory: string, now = Date.now(),
): HostMessage[] {
  const theirs = withoutOurs(messages);
  const from = window === undefined ? -1 : firstShown(theirs, window);
  const isWindowed = window !== undefined && from >= 0;
  const shown = theirs.slice(Math.max(from, 0));
  const own = [memory, isWindowed ? window.memory : ""].filter((text) => text.trim() !== "").join("\n\n");
  const restored = isWindowed ? window.restored : [];
  const rest = [...restored, ...(isWindowed ? shown.map((message) => shortenedAs(message, window)) : shown)];
  if (own === "") return rest;
  const before = theirs === messages ? undefined : messages[0]?.timestamp;
  const at = rest[0]?.timestamp === undefined ? before ?? window?.swappedAt ?? now : rest[0].timestamp - 1;
  const leading = [said("user", BOUNDARY, at), said("assistant", own, at)];
  // Providers want the user to speak after the assistant.
  return rest.length > 0 && rest[0]?.role !== "user" ? [...leading, said("user", GOES_ON, at), ...rest] : [...leading, ...rest];
}

/** What a swap's answer means for the host's messages: where they go on, and what stands for those before. */
export function windowOf(
  swapped: { generation: number; messages: readonly Message[] },
  messages: readonly HostMessage[],
  now: number,
): Window {
  const known = new Map(messages.map((message) => [print(message), message]));
  const results = new Map(messages.filter(({ role }) => role === "toolResult").map((message) => [message.timestamp, message]));
  const verbatim = swapped.messages.filter((message) => message.id).map((wire) => {
    const host = hostMessage(wire);
    // A long result comes back shortened, as words about it: then only its time tells which it was.
    return { host, theirs: known.get(print(host)) ?? (print(host) === "" ? undefined : results.get(host.timestamp)) };
  });
  const first = verbatim.findIndex(({ theirs }) => theirs !== undefined && theirs.role !== "toolResult");
  const kept = first < 0 ? [] : verbatim.slice(first);
  const shortened: Record<string, HostMessage["content"]> = {};
  for (const { host, theirs } of kept) {
    const isShorter = chars(theirs) >= WORTH_SHORTENING_CHARS && chars(host) < chars(theirs) * SHORTENED_BELOW;
    // A call stays whole, or its result would stand there without it.
    if (theirs && isShorter && theirs.role !== "assistant") shortened[print(theirs)] = plainBlocks(theirs, host);
    if (theirs && plainText(host.content) === FORGOTTEN) shortened[print(theirs)] = blanked(theirs);
  }
  const before = first < 0 ? verbatim : verbatim.slice(0, first);
  const restored = before.filter(({ theirs }) => theirs === undefined).map(({ host }) => host);
  // A result whose call is not shown is told with the memory.
  const told = before.filter(({ theirs }) => theirs !== undefined).map(({ host }) => plainText(host.content));
  const memory = [...swapped.messages.filter((message) => !message.id).map((message) => plainText(message.content)), ...told].join("\n\n");
  const older = restored.filter(isBefore(messages[0]));
  const last = messages.at(-1);
  // Nothing of the host's is kept word for word: the memory stands for everything it has.
  const isAllHidden = first < 0 && older.length === 0 && memory !== "" && last !== undefined && print(last) !== "";
  return {
    generation: swapped.generation,
    memory,
    restored: older,
    cut: kept[0]?.theirs ? print(kept[0].theirs) : "",
    ...(isAllHidden ? { after: print(last) } : {}),
    shortened,
    swappedAt: now,
  };
}

/** About as many tokens as the messages take, by the provider's own estimate. */
export function estimatedTokens(messages: readonly HostMessage[]): number {
  const of = (message: HostMessage): number => measured(message, estimateTokens, TOKENS_PER_IMAGE) + TOKENS_PER_MESSAGE;
  return messages.reduce((sum, message) => sum + of(message), 0);
}

/** The same as the host reckons it where it decides how long an answer may be. */
export function hostEstimatedTokens(messages: readonly HostMessage[]): number {
  return messages.reduce((sum, message) => sum + measured(message, hostTokens, HOST_TOKENS_PER_IMAGE), 0);
}

/** What the model said it read and wrote, the newest first, where it read the context in use. */
export function reportedUsage(messages: readonly HostMessage[], since: number): { message: HostMessage; tokens: number }[] {
  return messages.toReversed().flatMap((message) => {
    if (message.role !== "assistant" || !message.usage || (message.timestamp ?? 0) <= since) return [];
    const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = message.usage;
    const tokens = input + output + cacheRead + cacheWrite;
    return tokens > 0 ? [{ message, tokens }] : [];
  });
}

/** A message of the log as the host knows them. */
export function hostMessage(wire: Message): HostMessage {
  const timestamp = wire.ts ? Date.parse(wire.ts) : undefined;
  const base = { content: wire.content as HostMessage["content"], ...(timestamp === undefined ? {} : { timestamp }) };
  if (wire.role === "tool") {
    const content = typeof wire.content === "string" ? [{ type: "text", text: wire.content }] : base.content;
    return {
      ...base,
      role: "toolResult",
      content,
      toolCallId: wire.toolCallId ?? "",
      toolName: wire.name ?? "",
      isError: wire.meta?.isError === true,
    };
  }
  if (wire.role === "assistant") {
    const content = typeof wire.content === "string" ? [{ type: "text", text: wire.content }] : base.content;
    return { ...base, role: "assistant", content, ...assistantParts(wire) };
  }
  return { ...base, role: "user" };
}

function assistantParts(wire: Message): Partial<HostMessage> {
  const { provider, api, stopReason } = wire.meta ?? {};
  return {
    ...(typeof provider === "string" ? { provider } : {}),
    ...(typeof api === "string" ? { api } : {}),
    ...(wire.model ? { model: wire.model } : {}),
    stopReason: typeof stopReason === "string" ? stopReason : "stop",
    usage: NO_USAGE,
  };
}

/** The host reads these of every answer, also of one that no model gave. */
const NO_USAGE = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

/** What is newer than the host's history is of the turn that runs: the host adds that by itself. */
function isBefore(first: HostMessage | undefined): (message: HostMessage) => boolean {
  const from = first?.timestamp;
  return (message) => from === undefined || (message.timestamp ?? 0) < from;
}

/** Words of ours. They bear the time of what they stand before: the same bytes whenever they are built. */
function said(role: "user" | "assistant", text: string, timestamp: number): HostMessage {
  if (role === "user") return { role, content: text, timestamp };
  return { role, content: [{ type: "text", text }], timestamp, stopReason: "stop", usage: NO_USAGE, api: "offbook", provider: "offbook", model: "offbook" };
}

/** Without what an earlier call of the same turn put before them. */
function withoutOurs(messages: readonly HostMessage[]): readonly HostMessage[] {
  if (!plainText(messages[0]?.content).endsWith(BOUNDARY)) return messages;
  return messages.slice(plainText(messages[2]?.content).endsWith(GOES_ON) ? 3 : 2);
}

/** From where on the host's messages are shown; -1 where the window is of other messages than these. */
function firstShown(messages: readonly HostMessage[], { cut, after, restored }: Window): number {
  if (cut !== "") return messages.findIndex((message) => print(message) === cut);
  if (after !== undefined) {
    // Within the turn our own answer comes back, which has none of them.
    return messages.findIndex((message) => print(message) === after) + 1;
  }
  const isThere = restored[0] !== undefined && messages[0] !== undefined && print(messages[0]) === print(restored[0]);
  return isThere ? restored.length : 0;
}

/** The shortened words, in the shape of the message they stand for. */
function plainBlocks(theirs: HostMessage, host: HostMessage): HostMessage["content"] {
  return theirs.role === "toolResult" ? [{ type: "text", text: plainText(host.content) }] : host.content;
}

/** The host still has the words; the model is not shown them. A call stays, for its result needs it, without what it said. */
function blanked({ content }: HostMessage): HostMessage["content"] {
  if (!Array.isArray(content)) return FORGOTTEN;
  const calls = content.filter(({ type }) => type === "toolCall").map((call) => ({ ...call, arguments: {} }));
  return [{ type: "text", text: FORGOTTEN }, ...calls];
}

function shortenedAs(message: HostMessage, window: Window): HostMessage {
  const content = window.shortened[print(message)];
  return content === undefined ? message : { ...message, content };
}

function chars(message: HostMessage | undefined): number {
  return message === undefined ? 0 : measured(message, (text) => text.length, 0);
}

/** The sum over all that a message has to say. */
function measured({ content, summary }: HostMessage, measure: (text: string) => number, perImage: number): number {
  if (typeof content === "string") return measure(content);
  if (!Array.isArray(content)) return typeof summary === "string" ? measure(summary) : 0;
  const of = (block: Block): number => {
    if (typeof block.text === "string") return measure(block.text);
    return block.type === "image" ? perImage : measure(JSON.stringify(block));
  };
  return content.reduce((sum, block) => sum + of(block), 0);
}
