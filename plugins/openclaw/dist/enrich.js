/** The host's own `memory_search`, enriched where it finds little.
 *
 * `before_tool_call` fails closed, so nothing is waited for there: the question is sent off, and the search runs
 * beside it. What came back is added to the result before the model reads it, by the host's tool result middleware; the
 * transcript keeps the same. By default the model reaches the search through the host's Tool Search, so the result to
 * change is that of the tool around it, whose id stands in the id of the search. */
import { isPrivate } from "./capture.js";
import { within } from "./within.js";
const SEARCH = "memory_search";
/** The search itself, and the tools of Tool Search that call others. */
const WITH_RESULT = [SEARCH, "tool_call", "tool_search_code"];
/** Those that the manifest's `contracts.agentToolResultMiddleware` names. */
const RUNTIMES = ["openclaw", "codex"];
/** The longest that a result is kept waiting for us once the search is done. */
export const WAIT_MS = 400;
/** The question runs beside the search, which may take seconds and leave nothing else a turn. */
export const QUESTION_MS = 5_000;
const KEPT_MS = 60_000;
const MOST_KEPT = 64;
const DEEPEST = 6;
/** Of the process, never of a module: the host may take the hook of one registration and the middleware of another. */
const NAME = Symbol.for("offbook.openclaw.enrichments");
const shared = globalThis;
const asked = (shared[NAME] ??= new Map());
/** False where there is nothing to enrich: below level `recall`, and where the host's own search does not run. */
export function registerEnrichment(api, memory, settings, report) {
    const problem = (error) => report()?.problem("enriching the host's memory search", error instanceof Error ? error.message : String(error));
    const slot = api.config.plugins?.slots?.memory ?? "memory-core";
    const isLevel = settings.level === "recall" || settings.level === "hot-swap";
    if (!isLevel || slot === "none" || slot === "offbook-memory")
        return false;
    if (!api.registerAgentToolResultMiddleware) {
        problem("this host has no tool result middleware, so its memory_search stays as it is");
        return false;
    }
    const ask = (event, context) => {
        try {
            askAhead(memory(), event, context, problem);
        }
        catch (error) {
            problem(error); // a throw here would forbid the search
        }
    };
    const change = async (event) => {
        try {
            const found = taken(event.toolCallId);
            if (!found || !couldBeSparse(event.result))
                return undefined;
            const enrichment = await within(found.answer, WAIT_MS);
            if (!enrichment?.text || !isSparse(event.result, enrichment.sparse))
                return undefined;
            return { result: enriched(event.result, enrichment.text) };
        }
        catch (error) {
            problem(error); // a throw here would take the result away
            return undefined;
        }
    };
    api.on("before_tool_call", ask, { matcher: [SEARCH] });
    api.registerAgentToolResultMiddleware(change, { matcher: WITH_RESULT, runtimes: RUNTIMES });
    return true;
}
function askAhead(memory, event, context, problem) {
    const query = typeof event.params?.query === "string" ? event.params.query.trim() : "";
    const id = event.toolCallId ?? context.toolCallId;
    if (!query || !id || !context.sessionKey || isPrivate(context.sessionKey))
        return;
    const body = { sessionId: context.sessionKey, agentId: context.agentId ?? null, query };
    const answer = memory.call("enrich", body, QUESTION_MS).catch((error) => {
        problem(error);
        return undefined;
    });
    const now = Date.now();
    for (const [key, kept] of asked) {
        if (now - kept.at > KEPT_MS || asked.size >= MOST_KEPT)
            asked.delete(key); // the oldest come first
    }
    asked.set(resultId(id), { at: now, answer });
}
function taken(toolCallId) {
    const key = resultId(toolCallId);
    const found = asked.get(key);
    asked.delete(key);
    return found && Date.now() - found.at <= KEPT_MS ? found : undefined;
}
/** Under which id the result comes back: of the call around the search if there is one, written as the host writes it
 * into the id of the inner call. */
export function resultId(toolCallId) {
    const around = /^tool_search_code:(.+):memory_search:\d+$/.exec(toolCallId)?.[1];
    return around ?? toolCallId.trim().replace(/[^A-Za-z0-9_.:-]+/g, "_").slice(0, 120);
}
/** Whether the search found little. A result of an unknown shape counts by its length. */
export function isSparse(result, sparse) {
    const hits = hitsIn(result, DEEPEST);
    const texts = hits ? hits.map(said) : (result.content ?? []).map((block) => block.text ?? "");
    const chars = texts.reduce((sum, text) => sum + text.length, 0);
    return (hits !== undefined && hits.length <= sparse.results) || chars <= sparse.chars;
}
/** Nothing of what was there changes: our words are one block more. */
export function enriched(result, text) {
    return { ...result, content: [...(result.content ?? []), { type: "text", text }] };
}
/** A picture can be no result of a search, and a result that is no list of blocks is not ours to change. */
function couldBeSparse(result) {
    return Array.isArray(result?.content) && result.content.every((block) => block.type === "text");
}
/** The list `results` of the search, wherever the tool around it has put it. */
function hitsIn(value, depth) {
    if (typeof value !== "object" || value === null || depth === 0)
        return undefined;
    const held = value;
    if (Array.isArray(held.results))
        return held.results;
    for (const inner of [held.details, held.result, held.value]) {
        const found = hitsIn(inner, depth - 1);
        if (found)
            return found;
    }
    return undefined;
}
function said(hit) {
    const { snippet, text } = (hit ?? {});
    return String(snippet ?? text ?? "");
}
