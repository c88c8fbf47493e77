/** Asks the provider. Every call has a deadline, and fails with a `ProviderError` that says what to do next. */
import { Agent } from "node:http";
import { Agent as TlsAgent } from "node:https";
import { homedir } from "node:os";
import { join } from "node:path";
import { placeOf, tokenReader } from "./endpoint.js";
import { exchange } from "./exchange.js";
/** A few, so that a turn never waits behind a delivery or a question that waits itself. */
const CONNECTIONS = 8;
const LONGEST_DETAIL = 500;
const LOOK_AT_ENDPOINT = "is it Offbook that listens there? Look at `endpoint` in the plugin's config";
/** How a provider says that it does not know a field of a request: it is older than this plugin. */
const UNKNOWN_FIELD = /unknown field `(\w+)`(?! - at)/;
/** A lone half of a surrogate pair as `JSON.stringify` writes it; the provider takes it for broken text. */
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f][0-9a-f]{2}/;
export class ProviderError extends Error {
    name = "ProviderError";
    kind;
    status;
    /** Whether the same request may succeed later. */
    retryable;
    detail;
    /** What to do. */
    next;
    constructor(given) {
        super(given.next ? `${given.detail}: ${given.next}` : given.detail);
        this.kind = given.kind;
        this.status = given.status;
        this.retryable = given.retryable;
        this.detail = given.detail;
        this.next = given.next;
    }
}
/** By its name: after a reload, an error may come from another copy of this module. */
export function isProviderError(error) {
    return error instanceof Error && error.name === "ProviderError";
}
export function provider(settings) {
    const place = placeOf(settings.endpoint);
    const agent = new (place?.isSecure ? TlsAgent : Agent)({
        keepAlive: true,
        maxSockets: CONNECTIONS,
        scheduling: "lifo",
    });
    const token = tokenReader(settings, place);
    const unknown = new Map();
    return {
        endpoint: place?.told ?? settings.endpoint,
        async call(verb, body, deadlineMs = settings.callDeadlineMs) {
            if (!place)
                throw wrongEndpoint(settings.endpoint);
            const leftOut = new Set(unknown.get(verb));
            let sent = encoded(verb, without(body, leftOut));
            const ends = performance.now() + deadlineMs;
            const ask = async () => {
                const question = () => ({
                    place,
                    path: `/v1/${verb}`,
                    body: sent,
                    token: token.now(),
                    withinMs: ends - performance.now(),
                });
                let outcome = await exchange(question(), agent);
                // Kept from before the provider was started again: one more try, on a new connection. Every verb may be asked
                // twice; what was stored is known by its id.
                if ("how" in outcome && outcome.wasStale)
                    outcome = await exchange(question(), undefined);
                if ("how" in outcome)
                    throw failureOf(outcome, place, deadlineMs, settings);
                return outcome;
            };
            let answer = await ask();
            if (answer.status === 401 && token.again())
                answer = await ask();
            for (let field = unknownField(answer, body); field && !leftOut.has(field); field = unknownField(answer, body)) {
                unknown.set(verb, new Set(leftOut.add(field)));
                sent = encoded(verb, without(body, leftOut));
                answer = await ask();
            }
            return valueOf(answer, place);
        },
    };
}
/** What the provider knows no field for: it does without, as it did before there was one. */
function unknownField(answer, body) {
    if (answer.status !== 422)
        return undefined;
    const field = UNKNOWN_FIELD.exec(answer.body.toString("utf8"))?.[1];
    return field !== undefined && Object.hasOwn(body, field) ? field : undefined;
}
function without(body, fields) {
    return fields.size === 0 ? body : Object.fromEntries(Object.entries(body).filter(([name]) => !fields.has(name)));
}
// ── what went wrong, and what to do ──
function failureOf(broken, place, deadlineMs, settings) {
    if (broken.how === "late") {
        return new ProviderError({
            kind: "late",
            retryable: true,
            detail: `no answer from ${place.told} within ${Math.round(deadlineMs)} ms`,
            next: "`offbook doctor` says whether the provider is well",
        });
    }
    const detail = isNobody(broken.code)
        ? `no provider answers on ${place.told}`
        : `the connection to ${place.told} broke off (${broken.code ?? broken.text})`;
    return new ProviderError({ kind: "unreachable", retryable: true, detail, next: nextOf(broken, place, settings) });
}
function isNobody(code) {
    return code === "ENOENT" || code === "ECONNREFUSED";
}
function nextOf(broken, place, settings) {
    if (broken.code === "EACCES" || broken.code === "EPERM") {
        return "only the user who started the provider may use its socket: run both as the same user";
    }
    if (broken.how === "foreign")
        return LOOK_AT_ENDPOINT;
    const isElsewhere = settings.home !== join(homedir(), ".offbook") && place.options.socketPath !== undefined;
    const start = `start it with \`offbook serve${isElsewhere ? ` --home ${settings.home}` : ""}\``;
    return isNobody(broken.code) ? start : `if it has ended, ${start}`;
}
function valueOf(answer, place) {
    const value = parsed(answer.body);
    if (answer.status === 200 && value !== undefined)
        return value;
    const problem = (typeof value === "object" && value !== null ? value : {});
    const said = [problem.detail, problem.title].find((each) => typeof each === "string" && each !== "");
    const isOurs = typeof said === "string" && typeof problem.retryable === "boolean";
    // What a stranger says holds for nothing we have to send: it waits until somebody put the endpoint right.
    const retryable = isOurs ? problem.retryable === true : true;
    throw new ProviderError({
        kind: "refused",
        status: answer.status,
        retryable,
        detail: isOurs ? String(said).slice(0, LONGEST_DETAIL) : `${place.told} answers ${answer.status} without a reason`,
        next: isOurs ? afterRefusal(answer.status) : LOOK_AT_ENDPOINT,
    });
}
/** Our problems say themselves what to do; only what concerns this plugin's config is added. */
function afterRefusal(status) {
    return status === 401 || status === 403 ? "look at `tokenFile` in the plugin's config" : "";
}
function wrongEndpoint(endpoint) {
    return new ProviderError({
        kind: "unreachable",
        retryable: false,
        detail: `the endpoint ${JSON.stringify(endpoint)} is neither unix:///path/to/socket nor http(s)://host:port`,
        next: "put `endpoint` in the plugin's config right, or leave it out",
    });
}
function parsed(body) {
    try {
        return JSON.parse(body.toString("utf8"));
    }
    catch {
        return undefined;
    }
}
// ── bodies ──
function encoded(verb, body) {
    try {
        const text = JSON.stringify(body) ?? "{}";
        return Buffer.from(LONE_SURROGATE.test(text) ? JSON.stringify(body, wellFormed) : text);
    }
    catch (error) {
        const detail = `the body of ${verb} is not JSON (${error instanceof Error ? error.message : String(error)})`;
        throw new ProviderError({ kind: "refused", retryable: false, detail, next: "report it as a bug of the plugin" });
    }
}
function wellFormed(_key, value) {
    return typeof value === "string" ? value.replace(/\p{Surrogate}/gu, "\ufffd") : value;
}
