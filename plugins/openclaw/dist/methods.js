/** Methods of the host's gateway, for its other clients: the names that users of the older plugin know. */
import { ASK_DEADLINE_MS, callerOf, trouble } from "./answers.js";
import { lessonsHeld } from "./dashboard.js";
/** What is asked for in a way that cannot be answered. */
class Misasked extends Error {
}
const ANSWERS = {
    "continuity.getState": (memory, { agentId, sessionKey }, given) => memory.call("state", { agentId, ...(given.sessionKey ? { sessionId: sessionKey } : {}) }, ASK_DEADLINE_MS),
    "continuity.getConfig": (memory, { agentId }) => memory.call("config", { agentId }, ASK_DEADLINE_MS),
    "continuity.search": (memory, { agentId, sessionKey }, given) => {
        const query = optionalText(given, "query");
        if (!query)
            throw new Misasked("query is missing: say what to search for, as in {\"query\": \"the gateway port\"}");
        const body = { sessionId: sessionKey, agentId, query, limit: limitOf(given), scope: "agent" };
        return memory.call("recall", body, ASK_DEADLINE_MS);
    },
    "continuity.getArchiveStats": async (memory, { agentId }) => archiveStats(await memory.call("status", { agentId }, ASK_DEADLINE_MS)),
    "continuity.getTopics": (memory, { agentId, sessionKey }, given) => memory.call("topics", { agentId, ...(given.sessionKey ? { sessionId: sessionKey } : {}) }, ASK_DEADLINE_MS),
};
export function registerMethods(api, memory, agents) {
    for (const [name, answer] of Object.entries(ANSWERS)) {
        api.registerGatewayMethod(name, (request) => answered(request, memory, agents, answer), { scope: "operator.read" });
    }
}
async function answered({ params, respond }, memory, agents, answer) {
    const given = params ?? {};
    let payload;
    try {
        const context = { agentId: optionalText(given, "agentId"), sessionKey: optionalText(given, "sessionKey") };
        payload = await answer(memory(), callerOf(context, agents()), given);
    }
    catch (error) {
        respond(false, undefined, problem(error));
        return;
    }
    respond(true, payload);
}
/** The host's shape of an error: a code it knows, and words that say what to do. */
function problem(error) {
    if (error instanceof Misasked)
        return { code: "INVALID_REQUEST", message: error.message };
    const { kind, status, retryable } = (error ?? {});
    const isOurs = kind === "refused" && (status ?? 500) < 500 && retryable !== true;
    return { code: isOurs ? "INVALID_REQUEST" : "UNAVAILABLE", message: trouble(error), retryable: !isOurs };
}
/** What is kept of an agent. Its archives are what went cold, and what was learnt, by what became of it. */
function archiveStats(status) {
    const { agentId, counts, tiers, pinned, retrievals, index, summaries, sessions, lessons = {}, forgets = 0 } = status;
    const newest = sessions.map((one) => one.lastAt).sort((one, other) => Date.parse(other) - Date.parse(one))[0];
    return {
        agentId,
        messages: counts.messages ?? 0,
        chars: counts.chars ?? 0,
        sessions: counts.sessions ?? 0,
        tiers,
        pinned,
        retrievals,
        indexed: index.entries,
        embedded: index.embedded,
        summaries: summaries.counts,
        lastAt: newest ?? null,
        archives: { cold: tiers.cold, lessons: lessonsHeld(status) },
        lessons,
        forgets,
    };
}
function limitOf(given) {
    const { limit } = given;
    if (limit === undefined || limit === null)
        return 5;
    if (typeof limit === "number" && Number.isInteger(limit) && limit >= 1 && limit <= 100)
        return limit;
    throw new Misasked("limit is a whole number from 1 to 100");
}
function optionalText(given, name) {
    const value = given[name];
    if (value === undefined || value === null || value === "")
        return undefined;
    if (typeof value !== "string")
        throw new Misasked(`${name} is a text`);
    return value;
}
