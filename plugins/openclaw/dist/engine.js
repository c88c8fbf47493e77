/** The context engine of the level `hot-swap`. It owns compaction: at the threshold the context that Offbook keeps standing by
 * takes the place of the one in use, with no model call. It never throws, for the host puts an engine that does aside. */
import { isPrivate } from "./capture.js";
import { ProviderError } from "./client.js";
import { VERSION } from "./report.js";
import { assembled, estimatedTokens, reportedTokens, windowOf } from "./window.js";
const THRESHOLD = 0.85;
/** The host compacts by itself where less than this is left: a quarter of the window, at most 20,000 tokens. Ours comes before. */
const HOST_RESERVE = { share: 0.25, most: 20_000 };
const BEFORE_THE_HOST = 0.97;
const DEFAULT_WINDOW_TOKENS = 200_000;
/** After a swap that came to nothing the next turns are not held up by asking again. */
const REST_MS = 30_000;
/** What a swap, or a cold start, may fill of what is left for the conversation: as the provider's `targetSize`. */
const TARGET = 0.4;
const MOST_OVERHEAD = 0.7;
const LEAST_STEP = 0.1;
const CHARS_PER_TOKEN = 4;
const RECOVERIES = new Set(["overflow", "timeout", "timeout_recovery"]);
const COMMIT_DEADLINE_MS = 400;
const CATCHING_UP_MS = 250;
export function engine(running) {
    return {
        info: {
            id: "offbook",
            name: "Offbook",
            version: VERSION,
            ownsCompaction: true,
            transcriptSemantics: {
                currentTurnFence: "before-current-turn-entry-v1",
                turnAdvancementIdempotency: "atomic-idempotent-v1",
            },
        },
        bootstrap: async () => ({ bootstrapped: true }),
        ingest: async () => ({ ingested: false }), // the transcript is followed instead: it has the ids
        assemble: (request) => assemble(running(), request),
        compact: (request) => compact(running(), request),
        commitTurn: (request) => commitTurn(running(), request),
    };
}
async function assemble(runtime, request) {
    const untouched = { messages: request.messages, estimatedTokens: estimatedTokens(request.messages) };
    const sessionKey = request.sessionKey ?? request.sessionId;
    if (!runtime || isPrivate(sessionKey))
        return untouched;
    try {
        const state = runtime.sessions.of(sessionKey, request.sessionId);
        noteWindow(state, request);
        await coldStart(runtime, state, request.messages);
        lay(runtime, state, request.messages);
        let messages = assembled(request.messages, state.window, state.memory);
        const reported = reportedTokens(request.messages, state.window?.swappedAt ?? 0);
        if (reported > 0)
            state.overhead = Math.max(0, reported - estimatedTokens(messages));
        const used = Math.max(reported, estimatedTokens(messages) + state.overhead) + pendingTokens(request);
        state.used = used;
        const isWindowKnown = state.isWindowTold || state.looks > 1;
        const isWanted = state.isSwapOwed || (isWindowKnown && isDue(used, windowTokens(state), state.leftAfterSwap));
        if (isWanted && (await swapped(runtime, state, used))) {
            lay(runtime, state, request.messages);
            messages = assembled(request.messages, state.window, state.memory);
        }
        runtime.report.assembled({
            sessionKey,
            messagesIn: request.messages.length,
            messagesOut: messages.length,
            generation: state.window?.generation ?? 0,
        });
        return { messages, estimatedTokens: estimatedTokens(messages) };
    }
    catch (error) {
        runtime.report.problem("a context could not be put together", `${sessionKey}: ${String(error)}`);
        return untouched;
    }
}
async function compact(runtime, request) {
    if (!runtime)
        return hostsOwn(undefined, request);
    const state = runtime.sessions.of(request.sessionKey, request.sessionId);
    if (!state.isWindowTold)
        state.contextWindow = Math.max(state.contextWindow, request.tokenBudget ?? 0);
    const before = request.currentTokenCount ?? state.used;
    const conversation = Math.round(before - state.overhead);
    const isSmall = before > 0 && conversation <= (windowTokens(state) - state.overhead) * TARGET;
    const isJustDone = state.leftAfterSwap > 0 && before < state.leftAfterSwap + windowTokens(state) * LEAST_STEP;
    // Where the model's provider has refused the prompt, no estimate of ours says otherwise.
    const isRefused = RECOVERIES.has(request.runtimeContext?.trigger ?? "");
    if (!isRefused && (isSmall || (isJustDone && before < windowTokens(state) * THRESHOLD))) {
        // In words that the host knows: it asks again and again otherwise, and each swap costs the provider's cache.
        const reason = isSmall ? "nothing to compact" : "already compacted";
        return { ok: true, compacted: false, reason: `${reason}: the conversation takes about ${conversation} tokens` };
    }
    const answer = isPrivate(request.sessionKey) ? undefined : await swapped(runtime, state, before, true);
    if (!answer)
        return hostsOwn(runtime, request);
    const { summary, tokensBefore, tokensAfter, firstKeptEntryId } = answer;
    return { ok: true, compacted: true, result: { summary, tokensBefore, tokensAfter, ...(firstKeptEntryId ? { firstKeptEntryId } : {}) } };
}
/** Where Offbook cannot, the host summarises by itself: slower, and never not at all. */
async function hostsOwn(runtime, request) {
    if (!isPrivate(request.sessionKey))
        runtime?.report.fellBack(request.sessionKey);
    try {
        const core = "openclaw/plugin-sdk/core"; // resolved by the host for its plugins
        const { delegateCompactionToRuntime } = (await import(core));
        return await delegateCompactionToRuntime(request);
    }
    catch (error) {
        runtime?.report.problem("neither Offbook nor the host could compact", `${request.sessionKey}: ${String(error)}`);
        return { ok: false, compacted: false, reason: `Offbook did not answer, and the host's own compaction failed: ${String(error)}` };
    }
}
/** The turn is on disk when this answers: at the provider where it is there, in the outbox where it is not. What could not be
 * taken in time is in the host's transcript, which is read on from where it was read last. */
async function commitTurn(runtime, request) {
    const sessionKey = request.sessionKey ?? request.sessionId;
    if (!runtime || isPrivate(sessionKey))
        return { status: "committed" };
    try {
        const state = runtime.sessions.of(sessionKey, request.sessionId);
        if (state.committed.includes(request.advancementKey))
            return { status: "duplicate" };
        const agentId = request.terminal?.agentId ?? request.sessionTarget?.agentId;
        if (agentId)
            void runtime.capture.read({ agentId, sessionKey, sessionId: request.sessionId });
        await runtime.capture.settled(sessionKey, COMMIT_DEADLINE_MS);
        if (!(await runtime.courier.idle(COMMIT_DEADLINE_MS)))
            await runtime.outbox.flush();
        state.committed.push(request.advancementKey);
        state.begunAnew = false;
        runtime.sessions.save(state);
        runtime.report.committed(sessionKey);
    }
    catch (error) {
        runtime.report.problem("a turn could not be committed", `${sessionKey}: ${String(error)}`);
    }
    return { status: "committed" };
}
/** A host that lost its transcript, or another machine: the session goes on with what the log has of it. */
async function coldStart(runtime, state, messages) {
    if (state.isColdStartDone)
        return;
    state.isColdStartDone = true;
    if (messages.length > 0 || state.window || state.handed || state.begunAnew)
        return;
    const maxChars = Math.floor(windowTokens(state) * TARGET * CHARS_PER_TOKEN);
    const times = runtime.sessions.timesForgotten;
    try {
        const context = await runtime.provider.call("hooks/session-start", { sessionId: state.sessionKey, maxChars });
        if (times !== runtime.sessions.timesForgotten) {
            state.isColdStartDone = false; // it may still have what was forgotten meanwhile
            return await coldStart(runtime, state, messages);
        }
        if (!context || context.messages.length === 0)
            return;
        state.handed = { generation: context.generation, messages: context.messages, at: Date.now() };
        runtime.log.info(`offbook: ${state.sessionKey} goes on with ${context.messages.length} messages that the host no longer has`);
    }
    catch (error) {
        runtime.report.problem("a session could not be picked up", `${state.sessionKey}: ${String(error)}`);
    }
}
/** Lay what was handed over on the host's messages, the first time they are seen after it. */
function lay(runtime, state, messages) {
    if (!state.handed)
        return;
    state.window = windowOf(state.handed, messages, state.handed.at);
    delete state.handed;
    state.leftAfterSwap = estimatedTokens(assembled(messages, state.window, state.memory)) + state.overhead;
    runtime.sessions.save(state);
}
/** The first call of a turn is given about half of the window, so the first that is ever seen tells too little. What the model's
 * answer tells holds, also over a restart, until there is another model. */
function noteWindow(state, request) {
    if (request.model && state.model && request.model !== state.model) {
        [state.contextWindow, state.isWindowTold, state.looks] = [0, false, 0];
    }
    state.model = request.model ?? state.model;
    state.looks += 1;
    if (state.isWindowTold)
        return;
    const budget = request.runtimeSettings?.limits?.promptTokenBudget ?? request.tokenBudget ?? 0;
    state.contextWindow = Math.max(state.contextWindow, budget);
}
/** What the turn that runs has said and seen so far: the host takes it off the budget, and adds it behind our messages. */
function pendingTokens({ tokenBudget, runtimeSettings }) {
    const whole = runtimeSettings?.limits?.promptTokenBudget;
    return whole && tokenBudget ? Math.max(0, whole - tokenBudget) : 0;
}
/** Take the context that stands by; undefined where it could not be had in time. */
async function swapped(runtime, state, used, force = false) {
    if (!force && Date.now() < state.restUntil)
        return undefined;
    const { settings, report, provider } = runtime;
    // The conversation has what instructions, tools and memory leave of the window; else a swap would hardly make room.
    const stable = Math.ceil(state.memory.length / CHARS_PER_TOKEN); // the next generation's is about as long
    const overhead = Math.min(state.overhead + stable, windowTokens(state) * MOST_OVERHEAD);
    try {
        await runtime.capture.settled(state.sessionKey, CATCHING_UP_MS);
        await runtime.courier.idle(CATCHING_UP_MS); // what is said last belongs into it; what is late follows it anyway
        const times = runtime.sessions.timesForgotten;
        const answer = await provider.call("swap", {
            sessionId: state.sessionKey,
            usedTokens: Math.max(0, Math.round(used - overhead)),
            contextWindow: Math.round(windowTokens(state) - overhead),
            force: true,
        }, settings.callDeadlineMs);
        // Made before something was forgotten: it may still have it.
        if (times !== runtime.sessions.timesForgotten)
            return await swapped(runtime, state, used, true);
        if (!answer.swapped) {
            state.isSwapOwed = false; // there is nothing to stand for the host's own messages
            state.restUntil = Date.now() + REST_MS;
            report.problem("nothing was swapped", `${state.sessionKey}: ${answer.reason}`);
            return undefined;
        }
        state.handed = { generation: answer.generation, messages: answer.messages, at: Date.now() };
        state.memory = ""; // the next turn brings that of the new generation
        state.isSwapOwed = false;
        state.restUntil = 0;
        runtime.sessions.save(state);
        const reason = `${Math.round(used)} of ${windowTokens(state)} tokens were in use`;
        report.swapped(state.sessionKey, answer.generation, reason);
        const firstKeptEntryId = answer.messages.find((message) => message.id)?.id ?? undefined;
        const summary = answer.messages.find((message) => !message.id)?.content;
        return {
            summary: typeof summary === "string" ? summary : "",
            tokensBefore: Math.round(answer.tokensBefore + overhead),
            tokensAfter: Math.round(answer.tokensAfter + overhead),
            ...(firstKeptEntryId ? { firstKeptEntryId } : {}),
        };
    }
    catch (error) {
        state.restUntil = Date.now() + REST_MS;
        const why = error instanceof ProviderError ? error.detail : String(error);
        report.problem("a swap failed", `${state.sessionKey}: ${why}`);
        return undefined;
    }
}
function windowTokens(state) {
    return state.contextWindow || DEFAULT_WINDOW_TOKENS;
}
/** Each swap costs the provider's cache: where the last one left little room, the next waits until it is worth something. */
export function isDue(used, window, leftAfterSwap) {
    if (used < dueAt(window))
        return false;
    return leftAfterSwap === 0 || used >= Math.min(leftAfterSwap + window * LEAST_STEP, window * THRESHOLD);
}
export function dueAt(window) {
    const reserve = Math.min(window * HOST_RESERVE.share, HOST_RESERVE.most);
    return Math.floor(Math.min(window * THRESHOLD, (window - reserve) * BEFORE_THE_HOST));
}
