/** Before each turn: what comes to mind goes to the end of the user's message, the section that stays the same to the start of
 * the context. The system prompt is not rewritten from turn to turn. */
import { callerOf } from "./answers.js";
import { isPrivate } from "./capture.js";
import { isProviderError } from "./client.js";
import { begin } from "./runs.js";
import { estimateTokens } from "./tokens.js";
import { estimatedTokens, reportedUsage } from "./window.js";
const LONGEST_PROMPT_CHARS = 16_000;
/** The provider answers with what it has by then; the rest is for the way. */
const ON_THE_WAY_MS = 100;
const LEAST_MS = 20;
export function registerTurns(api, running) {
    api.on("before_prompt_build", async (event, context) => {
        const runtime = running();
        if (!runtime)
            return undefined;
        if (context.runId)
            begin(runtime.runs, context.runId, Date.now());
        if (!context.sessionKey || isPrivate(context.sessionKey))
            return undefined;
        const turn = await prepared(runtime, event, { ...context, sessionKey: context.sessionKey });
        const memory = remembered(runtime, context.sessionKey, context.sessionId, turn);
        const state = runtime.sessions.of(context.sessionKey, context.sessionId);
        const recalled = isHostsOwnPrompt(state, event.prompt ?? "") ? "" : turn?.recall ?? "";
        state.recalled = estimateTokens(recalled);
        const recall = recalled.trim() ? { appendContext: recalled } : {};
        // The engine puts the memory before the conversation; without it the end of the system prompt is the only place that the
        // host has for what does not change.
        return runtime.settings.level === "hot-swap" || !memory.trim() ? recall : { ...recall, appendSystemContext: memory };
    });
    api.on("agent_end", (_event, context) => {
        const runtime = running();
        if (!runtime)
            return;
        if (context.runId)
            runtime.runs.delete(context.runId);
        if (!context.sessionKey)
            return;
        const state = runtime.sessions.of(context.sessionKey);
        [state.hasAsked, state.isContinued] = [false, false]; // also where the turn failed, and nothing is committed
    });
    api.on("llm_input", (event, context) => {
        const runtime = running();
        if (!runtime || !context.sessionKey || runtime.settings.level !== "hot-swap")
            return;
        // Without the tools: those that are told here are more than the model is shown.
        runtime.sessions.of(context.sessionKey).instructions = estimateTokens(event.systemPrompt ?? "");
    });
    api.on("llm_output", (event, context) => {
        const runtime = running();
        if (!runtime || !context.sessionKey || !event.contextTokenBudget)
            return;
        const state = runtime.sessions.of(context.sessionKey);
        if (event.lastAssistant)
            state.used = reportedUsage([event.lastAssistant], 0)[0]?.tokens ?? state.used;
        state.recalledThen = state.recalled;
        state.contextWindow = event.contextTokenBudget;
        state.isWindowTold = true;
    });
}
/** The host goes on with a turn in words of its own, which bring nothing to mind. */
function isHostsOwnPrompt(state, prompt) {
    if (!state.isContinued)
        state.prompt = prompt;
    return prompt !== state.prompt;
}
/** Undefined where there is nothing to prepare, or the provider had trouble: the turn goes on without. What came with the
 * word that something was forgotten may still have it: only what is asked for after that is taken. */
async function prepared(runtime, event, context) {
    const prompt = (event.prompt ?? "").slice(0, LONGEST_PROMPT_CHARS);
    if (!prompt.trim() || context.trigger === "heartbeat")
        return undefined;
    const { settings, report, provider, forgetting } = runtime;
    const { agentId } = callerOf(context, []);
    const started = performance.now();
    const { contextWindow, nextSwap, used } = runtime.sessions.of(context.sessionKey);
    const tookMs = () => Math.round(performance.now() - started);
    const about = { sessionKey: context.sessionKey, runId: context.runId ?? null };
    const asked = {
        sessionId: context.sessionKey,
        ...(context.agentId ? { agentId: context.agentId } : {}),
        prompt,
        currentTokens: Math.round(used) || estimatedTokens(event.messages ?? []),
        ...(contextWindow ? { contextWindow } : {}),
        ...(nextSwap ?? {}),
    };
    const ask = () => {
        const leftMs = Math.max(LEAST_MS, settings.turnDeadlineMs - tookMs());
        return provider.call("prepareTurn", { ...asked, deadlineMs: Math.max(LEAST_MS, leftMs - ON_THE_WAY_MS) }, leftMs);
    };
    try {
        let turn = await ask();
        if (forgetting.told(agentId, turn.forgets)) {
            turn = await ask();
            if (forgetting.told(agentId, turn.forgets))
                throw new Error("something was forgotten meanwhile; the next turn has memory");
        }
        report.turn({ ...about, recallChars: turn.recall.length, memoryChars: turn.memory.length, tookMs: tookMs(), error: null });
        return turn;
    }
    catch (error) {
        const why = isProviderError(error) ? `${error.kind}: ${error.detail}` : String(error);
        report.turn({ ...about, recallChars: 0, memoryChars: 0, tookMs: tookMs(), error: why });
        return undefined;
    }
}
/** The section of this turn; where it came without, that of the turn before: a prompt that lacks it is read anew. */
function remembered(runtime, sessionKey, hostSessionId, turn) {
    const state = runtime.sessions.of(sessionKey, hostSessionId);
    if (turn?.memory.trim() && turn.memory !== state.memory) {
        state.memory = turn.memory;
        runtime.sessions.save(state);
    }
    return state.memory;
}
