/** The context engine of the level `hot-swap`. It owns compaction: at the threshold the context that Offbook keeps standing by
 * takes the place of the one in use, with no model call. It never throws, for the host puts an engine that does aside. */
import { fitted, withPoint } from "./calibration.js";
import { isPrivate } from "./capture.js";
import { VERSION } from "./report.js";
import { dueAt, isDue, isJustDone, isWorthwhile, talkWindow, targetTokens, targetWithinTurn } from "./sizes.js";
import { estimateTokens, HOST_MARGIN, hostTokens } from "./tokens.js";
import { assembled, estimatedTokens, hostEstimatedTokens, reportedUsage, windowOf } from "./window.js";
const DEFAULT_WINDOW_TOKENS = 200_000;
/** After a swap that came to nothing the next turns are not held up by asking again. */
const REST_MS = 30_000;
/** What a cold start may fill of the window: as the provider's `targetSize`. */
const COLD_START = 0.4;
const CHARS_PER_TOKEN = 4;
/** Of the window: a turn that has brought so much is one of tools, or of a long text. */
const WITHIN_TURN = 0.05;
const RECOVERIES = new Set(["overflow", "timeout", "timeout_recovery"]);
/** Reported at once, by a turn with many calls or a session that was not followed: the newest. */
const MOST_NEW_POINTS = 8;
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
    const sessionKey = request.sessionKey ?? request.sessionId;
    if (!runtime || isPrivate(sessionKey))
        return untouched(request);
    try {
        const state = runtime.sessions.of(sessionKey, request.sessionId);
        noteWindow(state, request);
        await coldStart(runtime, state, request.messages);
        lay(runtime, state, request.messages);
        let messages = assembled(request.messages, state.window, state.memory);
        notePoints(state, messages);
        const load = loadOf(runtime, state, messages, request);
        state.used = usedOf(load);
        state.pending = load.pending;
        state.nextSwap = nextSwap(state, load);
        const isWindowKnown = state.isWindowTold || state.looks > 1;
        const isWanted = state.isSwapOwed || (isWindowKnown && !state.hasAsked && isDue(load, ratioOf(state) * state.talkAfterSwap));
        const force = state.isSwapOwed || !isWorthwhile(load); // there has to be room for the answer, however little is freed
        const isResting = Date.now() < state.restUntil;
        if (isWanted && !isResting && typeof (await swapped(runtime, state, load, force)) === "object") {
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
        return untouched(request);
    }
}
function untouched({ messages }) {
    return { messages, estimatedTokens: estimatedTokens(messages) };
}
async function compact(runtime, request) {
    if (!runtime || isPrivate(request.sessionKey))
        return hostsOwn(runtime, request);
    const state = runtime.sessions.of(request.sessionKey, request.sessionId);
    if (!state.isWindowTold)
        state.contextWindow = Math.max(state.contextWindow, request.tokenBudget ?? 0);
    const trigger = request.runtimeContext?.trigger ?? "manual";
    // Within a turn whose tools brought more than the window holds, the host goes on with all of it as history, or gives up the turn.
    const isWithinTurn = trigger === "budget" && state.pending >= windowTokens(state) * WITHIN_TURN && isOverBudget(state, request);
    const isRefused = isWithinTurn || RECOVERIES.has(trigger);
    const used = isWithinTurn ? state.used : request.currentTokenCount ?? state.used;
    // Where the model's provider has refused the prompt, no estimate of ours says otherwise; where nobody knows, it may be full.
    const load = loadBefore(runtime, state, isRefused ? Math.max(used, windowTokens(state)) : used || windowTokens(state));
    // In words that the host knows: where it is told of another reason it gives up the turn.
    if (!isRefused) {
        if (load.talk <= targetTokens(load))
            return nothingDone(`nothing to compact: ${shares(load)}`);
        const left = ratioOf(state) * state.talkAfterSwap;
        const isEarly = trigger === "manual" ? isJustDone(load, left) : state.hasAsked || !isDue(load, left);
        if (isEarly)
            return nothingDone(`already compacted: ${shares(load)}`);
    }
    const force = isRefused || trigger === "manual" || !isWorthwhile(load);
    const answer = await swapped(runtime, state, load, force, isRefused ? targetWithinTurn(load) : targetTokens(load));
    if (typeof answer === "object")
        state.isContinued = isRefused;
    if (typeof answer === "string" && !isRefused)
        return nothingDone(`already compacted: ${answer}`);
    if (typeof answer !== "object")
        return hostsOwn(runtime, request);
    const { summary, tokensBefore, tokensAfter, firstKeptEntryId } = answer;
    return { ok: true, compacted: true, result: { summary, tokensBefore, tokensAfter, ...(firstKeptEntryId ? { firstKeptEntryId } : {}) } };
}
/** Before a request that it has found too long, the host asks for what is left of the window without its reserve. */
function isOverBudget(state, { tokenBudget }) {
    return tokenBudget !== undefined && tokenBudget < windowTokens(state);
}
/** What takes the window, for people. */
function shares(load) {
    const [used, overhead, talk, window] = [usedOf(load), load.overhead, load.talk, load.window]
        .map((tokens) => Math.round(tokens).toLocaleString("en"));
    return `of ${window} tokens about ${used} are in use, ${overhead} by instructions and tools and ${talk} by the conversation`;
}
function nothingDone(reason) {
    return { ok: true, compacted: false, reason };
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
        state.hasAsked = false;
        state.pending = 0;
        state.isContinued = false;
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
    const maxChars = Math.floor(windowTokens(state) * COLD_START * CHARS_PER_TOKEN);
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
    state.talkAfterSwap = estimatedTokens(assembled(messages, state.window, state.memory));
    runtime.sessions.save(state);
}
/** The first call of a turn is given about half of the window, so the first that is ever seen tells too little. What the model's
 * answer tells holds, also over a restart, until there is another model. */
function noteWindow(state, request) {
    if (request.model && state.model && request.model !== state.model) {
        [state.contextWindow, state.isWindowTold, state.looks, state.points] = [0, false, 0, []];
    }
    state.model = request.model ?? state.model;
    state.looks += 1;
    if (state.isWindowTold)
        return;
    const budget = request.runtimeSettings?.limits?.promptTokenBudget ?? request.tokenBudget ?? 0;
    state.contextWindow = Math.max(state.contextWindow, budget);
}
/** Every usage that is reported corrects how we count: of the first turn, each call of a tool. */
function notePoints(state, messages) {
    const news = reportedUsage(messages, Math.max(state.window?.swappedAt ?? 0, state.pointAt)).slice(0, MOST_NEW_POINTS);
    for (const { message, tokens } of news.toReversed()) {
        const read = messages.slice(0, messages.indexOf(message) + 1);
        state.points = withPoint(state.points, { estimate: estimatedTokens(read) + state.recalledThen, reported: tokens });
        state.pointAt = message.timestamp ?? 0;
    }
}
function fitOf(state) {
    return fitted(state.points, state.instructions);
}
function ratioOf(state) {
    return fitOf(state).ratio;
}
function usedOf({ overhead, talk, pending }) {
    return overhead + talk + pending;
}
function loadOf(runtime, state, messages, request) {
    const { overhead, ratio } = fitOf(state);
    const prompt = request.prompt ?? "";
    const pending = Math.max(pendingTokens(request), estimateTokens(prompt) + state.recalled);
    const reported = reportedUsage(messages, state.window?.swappedAt ?? 0)[0]?.tokens ?? 0;
    return {
        window: windowTokens(state),
        overhead,
        talk: Math.max(ratio * estimatedTokens(messages), reported - overhead - ratio * state.recalledThen),
        pending: ratio * pending,
        hostOverhead: HOST_MARGIN * overhead,
        hostTalk: hostEstimatedTokens(messages),
        hostPending: Math.max(HOST_MARGIN * pendingTokens(request), hostTokens(prompt) + HOST_MARGIN * state.recalled),
        answerRoom: runtime.settings.answerTokens,
    };
}
/** Where the host shows no messages: by what it says is in use. */
function loadBefore(runtime, state, used) {
    const { overhead, ratio } = fitOf(state);
    const pending = Math.min(ratio * state.recalled, Math.max(0, used - overhead));
    const talk = Math.max(0, used - overhead - pending);
    const [hostOverhead, hostTalk, hostPending] = [HOST_MARGIN * overhead, HOST_MARGIN * talk, HOST_MARGIN * pending];
    return { window: windowTokens(state), overhead, talk, pending, hostOverhead, hostTalk, hostPending, answerRoom: runtime.settings.answerTokens };
}
/** What the turn that runs has said and seen so far: the host takes it off the budget, and adds it behind our messages. */
function pendingTokens({ tokenBudget, runtimeSettings }) {
    const whole = runtimeSettings?.limits?.promptTokenBudget;
    return whole && tokenBudget ? Math.max(0, whole - tokenBudget) : 0;
}
/** Take the context that stands by. Why not, where the provider would not swap; undefined where it could not be asked in time. */
async function swapped(runtime, state, load, force, target = targetTokens(load)) {
    const { settings, report, provider } = runtime;
    const { ratio } = fitOf(state);
    const isOwed = state.isSwapOwed;
    const stable = stableTokens(state);
    const contextWindow = Math.max(1, Math.round(talkWindow(load) - stable));
    state.hasAsked = true;
    try {
        await runtime.capture.settled(state.sessionKey, CATCHING_UP_MS);
        await runtime.courier.idle(CATCHING_UP_MS); // what is said last belongs into it; what is late follows it anyway
        const times = runtime.sessions.timesForgotten;
        const answer = await provider.call("swap", {
            sessionId: state.sessionKey,
            // What holds something that was forgotten has to go, whatever its size.
            usedTokens: isOwed ? contextWindow : Math.max(0, Math.round(load.talk - stable)),
            contextWindow,
            targetTokens: besideMemory(stable, target),
            tokenRatio: rounded(ratio),
            ...(force ? { force } : {}),
            // One that was handed over, and whose answer came too late, is taken now.
            ...(isOwed ? {} : { generation: state.window?.generation ?? 0 }),
        }, settings.callDeadlineMs);
        // Made before something was forgotten: it may still have it.
        if (times !== runtime.sessions.timesForgotten)
            return await swapped(runtime, state, load, true, target);
        if (!answer.swapped) {
            state.isSwapOwed = false; // there is nothing to stand for the host's own messages
            state.restUntil = Date.now() + REST_MS;
            report.problem("nothing was swapped", `${state.sessionKey}: ${answer.reason}`);
            return answer.reason;
        }
        state.handed = { generation: answer.generation, messages: answer.messages, at: Date.now() };
        state.memory = ""; // the next turn brings that of the new generation
        state.isSwapOwed = false;
        state.restUntil = 0;
        runtime.sessions.save(state);
        const others = load.overhead + load.pending + stable;
        state.used = answer.tokensAfter + others;
        report.swapped(state.sessionKey, answer.generation, `${Math.round(usedOf(load))} of ${load.window} tokens were in use`);
        const firstKeptEntryId = answer.messages.find((message) => message.id)?.id ?? undefined;
        const summary = answer.messages.find((message) => !message.id)?.content;
        return {
            summary: typeof summary === "string" ? summary : "",
            tokensBefore: Math.round(usedOf(load)),
            tokensAfter: Math.round(answer.tokensAfter + others),
            ...(firstKeptEntryId ? { firstKeptEntryId } : {}),
        };
    }
    catch (error) {
        // By its fields: a plugin's module may be loaded twice. A late answer is asked for again in the next turn.
        const { kind, detail } = error;
        if (kind !== "late")
            state.restUntil = Date.now() + REST_MS;
        report.problem("a swap failed", `${state.sessionKey}: ${typeof detail === "string" ? detail : String(error)}`);
        return undefined;
    }
}
/** The section of memory that stays between swaps; the next generation's is about as long. */
function stableTokens(state) {
    return Math.ceil(ratioOf(state) * estimateTokens(state.memory));
}
/** What is left of the target beside that section. */
function besideMemory(stable, target) {
    return Math.max(1, Math.floor(Math.max(target - stable, target / 2)));
}
function rounded(ratio) {
    return Math.round(ratio * 100) / 100;
}
/** As far as the running turn tells: what its tools bring is not there the next time. */
function nextSwap(state, load) {
    const betweenTurns = { ...load, pending: 0, hostPending: 0 };
    const stable = stableTokens(state);
    return {
        swapAtTokens: Math.max(1, dueAt(betweenTurns) - stable),
        swapToTokens: besideMemory(stable, targetTokens(betweenTurns)),
        tokenRatio: rounded(ratioOf(state)),
    };
}
function windowTokens(state) {
    return state.contextWindow || DEFAULT_WINDOW_TOKENS;
}
