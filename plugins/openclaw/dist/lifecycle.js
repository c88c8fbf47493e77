/** Where sessions and their contexts begin and end. Each goes through the outbox, behind the messages that came before it. */
import { isPrivate } from "./capture.js";
/** The host writes on in another file, or stops for a while: the conversation is the same. */
const GOES_ON = new Set(["compaction", "shutdown", "restart"]);
const TOLD_TWICE_MS = 5_000;
export function registerLifecycle(api, running) {
    const reset = new Map();
    function tell(verb, sessionKey, more = {}, agentId) {
        const runtime = running();
        if (!runtime || !sessionKey || isPrivate(sessionKey))
            return;
        runtime.outbox.add({ verb, body: { sessionId: sessionKey, ...(agentId ? { agentId } : {}), ...more } });
        runtime.courier.wake();
    }
    function end(sessionKey, reason, agentId) {
        if (!sessionKey || GOES_ON.has(reason))
            return;
        tell("hooks/session-end", sessionKey, { reason }, agentId);
        running()?.sessions.ended(sessionKey);
    }
    api.on("before_compaction", (_event, context) => {
        tell("hooks/pre-compaction", context.sessionKey, {}, context.agentId);
    });
    api.on("after_compaction", (_event, context) => {
        tell("hooks/post-compaction", context.sessionKey, {}, context.agentId);
    });
    // `/new` and `/reset` are told by both hooks, one right after the other.
    api.on("before_reset", (event, context) => {
        if (context.sessionKey)
            reset.set(context.sessionKey, Date.now());
        end(context.sessionKey, event.reason ?? "reset", context.agentId);
    });
    api.on("session_end", (event, context) => {
        const sessionKey = event.sessionKey ?? context.sessionKey ?? "";
        const isTold = Date.now() - (reset.get(sessionKey) ?? 0) < TOLD_TWICE_MS;
        reset.delete(sessionKey);
        if (!isTold)
            end(sessionKey, event.reason ?? "unknown", context.agentId);
    });
    api.on("subagent_spawned", (event, context) => {
        const parentSessionId = context.requesterSessionKey;
        const child = event.childSessionKey ?? context.childSessionKey;
        tell("hooks/session-start", child, parentSessionId ? { parentSessionId } : {}, event.agentId);
    });
    api.on("subagent_ended", (event) => {
        tell("hooks/session-end", event.targetSessionKey, { reason: `subagent ${event.outcome ?? event.reason ?? "ended"}` });
    });
}
