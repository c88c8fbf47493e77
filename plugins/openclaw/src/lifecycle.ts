/** Where sessions and their contexts begin and end. Each goes through the outbox, behind the messages that came before it. */
import { isPrivate } from "./capture.js";
import type { HostApi, TurnContext } from "./host.js";
import type { Running } from "./runtime.js";
import type { Verb } from "./wire.js";

/** The host writes on in another file, or stops for a while: the conversation is the same. */
const GOES_ON = new Set(["compaction", "shutdown", "restart"]);

const TOLD_TWICE_MS = 5_000;
const SESSIONS_KEPT = 1_000;

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
  const ended = new Map<string, number>();

  function tell(verb: Verb, sessionKey: string | undefined, more: Record<string, unknown> = {}, agentId?: string): void {
    const runtime = running();
    if (!runtime || !sessionKey || isPrivate(sessionKey)) return;
    runtime.outbox.add({ verb, body: { sessionId: sessionKey, ...(agentId ? { agentId } : {}), ...more } });
    runtime.courier.wake();
  }

  /** `/new` and `/reset` are told by two hooks, one right after the other; the host's session id may stay the same. */
  function end(sessionKey: string | undefined, reason: string, agentId?: string): void {
    if (!sessionKey || GOES_ON.has(reason) || Date.now() - (ended.get(sessionKey) ?? 0) < TOLD_TWICE_MS) return;
    if (ended.size >= SESSIONS_KEPT) ended.clear();
    ended.set(sessionKey, Date.now());
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
    end(context.sessionKey, event.reason ?? "reset", context.agentId);
  });
  api.on("session_end", (event: SessionEnd, context: TurnContext): void => {
    end(event.sessionKey ?? context.sessionKey, event.reason ?? "unknown", context.agentId);
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
