/** One summary, written by the host's own model: the request, its deadline, and what is made of the answer. */
import type { CompletionResult } from "./host.js";
import { plainText } from "./text.js";
import type { HostUsage, Job } from "./wire.js";

export interface CompletionRequest {
  messages: { role: string; content: string }[];
  maxTokens: number;
  purpose: string;
  agentId?: string;
  signal: AbortSignal;
}
export type Complete = (request: CompletionRequest) => Promise<CompletionResult & { agentId?: string }>;

type Used = NonNullable<CompletionResult["usage"]> & { cacheWriteTokens?: number };
export type Outcome = { text: string; usage?: HostUsage } | { reason: string; isForGood: boolean };

/** What the host's model made of a job. The reason of a failure is in our words: its own may quote the conversation. */
export async function written(
  complete: Complete,
  job: Job,
  isOnlyAgent: boolean,
  withinMs: number,
  stopping: AbortSignal,
): Promise<Outcome> {
  const late = AbortSignal.timeout(Math.max(1, Math.floor(withinMs)));
  const signal = AbortSignal.any([stopping, late]);
  const failed = (reason: string, isForGood = false): Outcome => ({ reason, isForGood });
  const tooLate = `the host's model was not done in ${Math.round(withinMs / 1_000)} seconds`;
  const brokenOff = (): Outcome => failed(stopping.aborted ? "the host is stopping" : tooLate);
  let result: Awaited<ReturnType<Complete>> | undefined;
  try {
    result = await until(complete(requestFor(job, isOnlyAgent, signal)), signal);
  } catch (error) {
    if (signal.aborted) return brokenOff();
    const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
    if (code === "LLM_COMPLETION_NOT_AUTHORIZED") return failed(notAllowed(job.agentId, isOnlyAgent), true);
    return failed(`the host's model could not be asked (${String(code ?? name ?? "error")}); the host's log says more`);
  }
  // The host does not throw where its model fails or is broken off: it answers with nothing.
  if (!result || signal.aborted || result.stopReason === "aborted") return brokenOff();
  if (result.stopReason === "error") return failed("the host's model gave an error; the host's log says more");
  if (result.agentId && result.agentId !== job.agentId) {
    return failed(`the host asked the model of agent ${result.agentId}, not that of ${job.agentId}`, true);
  }
  const text = result.stopReason === "length" ? withoutLooseEnd(result.text) : result.text;
  if (!text.trim()) return failed("the host's model said nothing");
  return { text, usage: usageOf(result.usage) };
}

/** The job's messages in their roles, without a system prompt. */
function requestFor(job: Job, isOnlyAgent: boolean, signal: AbortSignal): CompletionRequest {
  return {
    messages: job.messages.map(({ role, content }) => ({ role, content: plainText(content) })),
    maxTokens: job.maxOutputTokens,
    purpose: "offbook.summary",
    signal,
    // The host lets no plugin name an agent without permission, not even its only one.
    ...(isOnlyAgent ? {} : { agentId: job.agentId }),
  };
}

function notAllowed(agentId: string, isOnlyAgent: boolean): string {
  const setting = isOnlyAgent ? "llm.allowedCompletionModels" : "llm.allowAgentIdOverride";
  const next = isOnlyAgent
    ? "let it name that model, or leave it out"
    : "set it to true in openclaw.json, so that each agent's memories are written by its own model";
  const what = `the host does not let Offbook use the model of agent ${agentId}`;
  return `${what}: see plugins.entries.offbook.${setting}, and ${next}`;
}

/** The host counts what was read from the cache beside the input; Offbook counts it as part of it. */
export function usageOf(given: Used | undefined): HostUsage | undefined {
  if (given?.inputTokens === undefined || given.outputTokens === undefined) return undefined;
  const { cacheReadTokens = 0, cacheWriteTokens = 0, costUsd = 0 } = given;
  return {
    inputTokens: given.inputTokens + cacheReadTokens + cacheWriteTokens,
    cachedTokens: cacheReadTokens,
    outputTokens: given.outputTokens,
    dollars: costUsd,
  };
}

/** An answer cut at its longest, without the sentence that has no end. */
export function withoutLooseEnd(text: string): string {
  const ends = [...text.matchAll(/[.!?…](?=\s)|\n/g)].map((match) => match.index + 1);
  const last = ends.at(-1) ?? 0;
  return last > text.length / 2 ? text.slice(0, last) : text;
}

/** What is promised, or undefined once the signal says stop. */
export function until<T>(promised: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const end = (): void => resolve(undefined);
    if (signal.aborted) end();
    signal.addEventListener("abort", end, { once: true });
    promised.then(resolve, reject).finally(() => signal.removeEventListener("abort", end));
  });
}
