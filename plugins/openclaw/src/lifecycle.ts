/** Where sessions and their contexts begin and end. Each goes through the outbox, behind the messages that came before it. */
import { isPrivate } from "./capture.js";
import type { HostApi, TurnContext } from "./host.js";
import type { Running } from "./runtime.js";
import type { Verb } from "./wire.js";
import { within } from "./within.js";

/** The host writes on in another file, or stops for a while: the conversation is the same. */
const GOES_ON = new Set(["compaction", "shutdown", "restart"]);

const TOLD_TWICE_MS = 5_000;
const SESSIONS_KEPT = 1_000;
/** A transcript that cannot be read so long keeps nothing from being told. */
const READ_MS = 5_000;

interface SessionEnd {
  sessionKey?: string;
  reason?: string;
}

interface Subagent {
  childSessionKey?: string;
  targetSessionKey?: string;
  agentId?: string;
  outcome?: string;
  reason?: string;
}

interface SubagentContext {
  childSessionKey?: string;
  requesterSessionKey?: string;
}

export function registerLifecycle(api: HostApi, running: () => Running | undefined): void {
  const ended = new Map<string, { hook: string; at: number }>();
  /** The last word on each session that is still to be said. */
  const telling = new Map<string, Promise<void>>();

  /** Behind what was said until now, results of tools included, and behind what was told of the session before. */
  function tell(verb: Verb, sessionKey: string | undefined, more: Record<string, unknown> = {}, agentId?: string): void {
    const runtime = running();
    if (!runtime || !sessionKey || isPrivate(sessionKey)) return;
    const item = { verb, body: { sessionId: sessionKey, ...(agentId ? { agentId } : {}), ...more } };
    const isRead = within(runtime.capture.readAgain(sessionKey), READ_MS);
    const told = Promise.all([isRead, telling.get(sessionKey)]).then(() => {
      if (telling.get(sessionKey) === told) telling.delete(sessionKey);
      const current = running() ?? runtime; // it may have been started anew meanwhile
      if (!current.outbox.add(item)) current.report.problem("the outbox is full", `${verb} of ${sessionKey} is not told`);
      current.courier.wake();
    });
    telling.set(sessionKey, told);
  }

  /** `/new` and `/reset` are told by two hooks, shortly after each other, in either order. */
  function end(hook: string, sessionKey: string | undefined, reason: string, agentId?: string): void {
    if (!sessionKey || isPrivate(sessionKey) || GOES_ON.has(reason)) return;
    const last = ended.get(sessionKey);
    ended.delete(sessionKey);
    if (last && last.hook !== hook && Date.now() - last.at < TOLD_TWICE_MS) return;
    if (ended.size >= SESSIONS_KEPT) ended.clear();
    ended.set(sessionKey, { hook, at: Date.now() });
    tell("hooks/session-end", sessionKey, { reason }, agentId);
    running()?.sessions.ended(sessionKey);
  }

  api.on("before_compaction", (_event: unknown, context: TurnContext): void => {
    tell("hooks/pre-compaction", context.sessionKey, {}, context.agentId);
  });
  api.on("after_compaction", (_event: unknown, context: TurnContext): void => {
    tell("hooks/post-compaction", context.sessionKey, {}, context.agentId);
  });
  api.on("before_reset", (event: { reason?: string }, context: TurnContext): void => {
    end("before_reset", context.sessionKey, event.reason ?? "reset", context.agentId);
  });
  api.on("session_end", (event: SessionEnd, context: TurnContext): void => {
    end("session_end", event.sessionKey ?? context.sessionKey, event.reason ?? "unknown", context.agentId);
  });
  api.on("subagent_spawned", (event: Subagent, context: SubagentContext): void => {
    const parentSessionId = context.requesterSessionKey;
    const child = event.childSessionKey ?? context.childSessionKey;
    tell("hooks/session-start", child, parentSessionId ? { parentSessionId } : {}, event.agentId);
  });
  api.on("subagent_ended", (event: Subagent): void => {
    tell("hooks/session-end", event.targetSessionKey, { reason: `subagent ${event.outcome ?? event.reason ?? "ended"}` });
  });
}
