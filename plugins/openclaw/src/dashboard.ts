/** How memory stands, as text for a chat: letters of one width, no colours, no line wider than WIDTH. Pure. */
import { numbered } from "./answers.js";
import type { Status } from "./wire.js";

export const WIDTH = 64;
const BAR = 24;
const LABEL = 12;
const MOST_AGENTS = 8;
const MOST_ROWS = 10;
const [FULL, HALF, LIGHT] = ["█", "▒", "░"];

/** Everything of each agent: the largest first, the others counted. */
export function dashboard(statuses: readonly Status[], at: Date): string {
  const first = statuses[0];
  if (!first) return "Offbook has no agents yet: they appear with their first message.";
  const largest = [...statuses].sort((one, other) => messagesOf(other) - messagesOf(one) || order(one, other));
  const shown = largest.slice(0, largest.length <= MOST_ROWS ? MOST_ROWS : MOST_AGENTS);
  const rest = largest.slice(shown.length);
  const messages = counted(total(statuses, messagesOf), "message");
  const cost = dollars(total(statuses, (one) => one.costs.dollars));
  const others = `… and ${counted(rest.length, "more agent")} with ${counted(total(rest, messagesOf), "message")}`;
  return [
    cut(`Offbook ${first.version} · ${first.store} · up ${upFor(first, at)}`),
    cut(`${counted(statuses.length, "agent")} · ${messages} · models ${cost}`),
    `${FULL} hot  ${HALF} warm  ${LIGHT} cold`,
    ...shown.flatMap((status) => ["", ...agentLines(status)]),
    ...(rest.length ? ["", cut(others)] : []),
  ].join("\n");
}

/** The counts of one agent, under the names of the older plugin, and what each means here. */
export function statusLines(status: Status, at: Date): string {
  const { counts, tiers, index, capture } = status;
  const stored = `${numbered(messagesOf(status), "message")} in ${numbered(counts.sessions ?? 0, "session")}`;
  const captured = `${grouped(capture.sent)} sent, ${grouped(capture.received)} received`;
  const byMeaning = `${grouped(index.embedded)} by meaning (${share(index.embedded, index.entries)})`;
  const rows: [string, string][] = [
    ["stores", `${stored}; ${grouped(counts.duplicates ?? 0)} came twice and are kept once`],
    ["retrievals", grouped(status.retrievals)],
    ["tiers", `${grouped(tiers.hot)} hot, ${grouped(tiers.warm)} warm, ${grouped(tiers.cold)} cold`],
    ["prunes", prunes(status)],
    ["archives", numbered(tiers.cold, "cold message")],
    ["syntheses", `${levels(status) || "no summaries yet"}; ${lessonsTold(status)}`],
    ["chunks", `${grouped(index.entries)} found by text, ${byMeaning}`],
    ["pins", grouped(status.pinned)],
    ["backlog", backlog(status)],
    ["models", `${grouped(status.costs.tokens)} tokens, ${dollars(status.costs.dollars)}`],
    ["capture", `${captured}, ${grouped(capture.missing)} missing, ${grouped(capture.waiting)} on the way`],
  ];
  return [
    `Agent ${visible(status.agentId)} · Offbook ${status.version} · up ${upFor(status, at)}`,
    ...rows.map(([name, value]) => `${name.padEnd(LABEL)}${value}`),
    ...troubles(status).map((one) => `! ${one}`),
  ].join("\n");
}

function agentLines(status: Status): string[] {
  const { tiers, index } = status;
  const heading = counted(messagesOf(status), "message");
  const counts = [tiers.hot, tiers.warm, tiers.cold] as const;
  const isEmpty = counts.every((count) => count === 0);
  const rows: [string, string, string][] = [
    ["tiers", tierBar(counts), isEmpty ? "empty" : counts.map(short).join(" / ")],
    ["by meaning", filled(index.embedded, index.entries), share(index.embedded, index.entries)],
  ];
  return [
    fitted(visible(status.agentId), WIDTH - heading.length - 1) + " " + heading,
    ...rows.map(([name, bar, value]) => cut(`  ${name.padEnd(LABEL)}${bar}  ${value}`)),
    cut(`  ${"pins".padEnd(LABEL)}${short(status.pinned)} · summaries ${levels(status) || "none yet"}`),
    cut(`  ${"backlog".padEnd(LABEL)}${backlog(status)} · ${dollars(status.costs.dollars)}`),
    ...troubles(status).map((one) => cut(`  ! ${one}`)),
  ];
}

/** What somebody should look at. */
function troubles(status: Status): string[] {
  const { missing } = status.capture;
  return [
    ...(missing ? [`${counted(missing, "message")} sent, never received: offbook doctor`] : []),
    ...(status.index.trouble ? [`no search by meaning: ${visible(status.index.trouble)}`] : []),
    ...Object.entries(status.summaries.troubles ?? {}).map(([name, why]) => `${visible(name)}: ${visible(why)}`),
  ];
}

function levels(status: Status): string {
  return Object.entries(status.summaries.counts).map(([level, count]) => `${level} ${short(count)}`).join(", ");
}

/** Nothing goes by its age alone. */
function prunes({ forgets = 0 }: Status): string {
  const kept = "what has aged stays findable";
  return forgets ? `forgotten for good ${numbered(forgets, "time")}; ${kept}` : `none: ${kept}, nothing is deleted`;
}

/** Those that hold: without the ones a person rejected. */
export function lessonsHeld(status: Status): number {
  const { rejected = 0, ...held } = status.lessons ?? {};
  return Object.values(held).reduce((sum, count) => sum + count, 0);
}

function lessonsTold(status: Status): string {
  const rejected = status.lessons?.rejected ?? 0;
  return numbered(lessonsHeld(status), "lesson") + (rejected ? `, ${grouped(rejected)} rejected` : "");
}

function backlog(status: Status): string {
  const waiting = [
    ...(status.summaries.waiting ? [`${short(status.summaries.waiting)} to summarise`] : []),
    ...(status.index.waiting ? [`${short(status.index.waiting)} to index`] : []),
    ...(status.capture.waiting ? [`${short(status.capture.waiting)} on the way`] : []),
  ];
  return waiting.join(", ") || (status.backlog ? `${short(status.backlog)} to do` : "all caught up");
}

/** Hot, warm and cold in one bar. Whatever there is shows, however little. */
export function tierBar(counts: readonly [number, number, number]): string {
  const all = counts[0] + counts[1] + counts[2];
  if (all === 0) return " ".repeat(BAR);
  const cells = counts.map((count) => (count ? Math.max(1, Math.round((count / all) * BAR)) : 0));
  // Rounding may be off by a cell or two: the largest gives or takes.
  const largest = cells.indexOf(Math.max(...cells));
  cells[largest]! += BAR - cells.reduce((sum, cell) => sum + cell, 0);
  return [FULL, HALF, LIGHT].map((sign, place) => sign!.repeat(cells[place]!)).join("");
}

/** Full only where all is done, empty only where nothing is. */
function filled(part: number, whole: number): string {
  if (whole <= 0) return " ".repeat(BAR);
  const rounded = Math.round((part / whole) * BAR);
  const cells = part >= whole ? BAR : part <= 0 ? 0 : Math.min(BAR - 1, Math.max(1, rounded));
  return FULL!.repeat(cells) + LIGHT!.repeat(BAR - cells);
}

function share(part: number, whole: number): string {
  if (whole <= 0) return "nothing yet";
  return `${part >= whole ? 100 : Math.min(99, Math.floor((part / whole) * 100))} %`;
}

/** 9,999 · 10.0k · 1.2M · 3.4G */
export function short(count: number): string {
  if (count < 10_000) return grouped(count);
  const [size, unit] = count < 999_950 ? [1e3, "k"] : count < 999_950_000 ? [1e6, "M"] : [1e9, "G"];
  return `${(count / size).toFixed(1)}${unit}`;
}

export function grouped(count: number): string {
  return Math.round(count).toLocaleString("en");
}

function counted(count: number, noun: string): string {
  return `${short(count)} ${noun}${count === 1 ? "" : "s"}`;
}

function dollars(amount: number): string {
  return `$${amount > 0 && amount < 0.01 ? amount.toFixed(4) : amount.toFixed(2)}`;
}

function upFor(status: Status, at: Date): string {
  const seconds = Math.max(0, Math.floor((at.getTime() - Date.parse(status.startedAt)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`;
}

/** How many columns a text takes where letters have one width: those of East Asia and pictures take two. */
export function columns(text: string): number {
  let width = 0;
  for (const { segment } of SEGMENTS.segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

const SEGMENTS = new Intl.Segmenter("en", { granularity: "grapheme" });
const WIDE = new RegExp(
  "^(?:[\\u1100-\\u115f\\u2e80-\\u303e\\u3041-\\ua4cf\\ua960-\\ua97c\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe30-\\ufe6f" +
    "\\uff01-\\uff60\\uffe0-\\uffe6\\u{20000}-\\u{3fffd}]|\\p{Emoji_Presentation}|.\\ufe0f)",
  "u",
);

/** Cut to a width, with a sign where something is gone, and filled up to it. */
export function fitted(text: string, width: number): string {
  const short = cut(text, width);
  return short + " ".repeat(Math.max(0, width - columns(short)));
}

function cut(text: string, width = WIDTH): string {
  if (columns(text) <= width) return text;
  let kept = "";
  let taken = 0;
  for (const { segment } of SEGMENTS.segment(text)) {
    taken += columns(segment);
    if (taken > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

/** A name on one line, without what a terminal or a chat would act on. */
function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}`]+/gu, " ").trim();
}

function messagesOf(status: Status): number {
  return status.counts.messages ?? 0;
}

function order(one: Status, other: Status): number {
  return one.agentId < other.agentId ? -1 : 1;
}

function total(statuses: readonly Status[], of: (status: Status) => number): number {
  return statuses.reduce((sum, status) => sum + of(status), 0);
}
