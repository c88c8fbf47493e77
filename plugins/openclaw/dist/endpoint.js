/** Where a provider listens, and the token it wants to see. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
/** Undefined where it cannot be read. */
export function placeOf(endpoint) {
    const path = endpoint.startsWith("/") ? endpoint : /^unix:(?:\/\/)?(\/[^/].*)$/.exec(endpoint)?.[1];
    if (path !== undefined) {
        const options = { socketPath: unescaped(path), host: "localhost" };
        return { told: `unix:${options.socketPath}`, options, isSecure: false, prefix: "", takesOwnToken: false };
    }
    if (!URL.canParse(endpoint))
        return undefined;
    const url = new URL(endpoint);
    if (url.protocol !== "http:" && url.protocol !== "https:")
        return undefined;
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const isSecure = url.protocol === "https:";
    return {
        told: url.origin,
        options: { host, port: url.port ? Number(url.port) : isSecure ? 443 : 80 },
        isSecure,
        prefix: url.pathname.replace(/\/+$/, ""),
        takesOwnToken: host === "localhost" || host === "::1" || /^127\./.test(host),
    };
}
function unescaped(path) {
    try {
        return decodeURIComponent(path);
    }
    catch {
        return path;
    }
}
/** The file may be written after us, and again when the token is changed. */
export function tokenReader(settings, place) {
    const isOwn = settings.tokenFile === join(settings.home, "token");
    if (isOwn && !place?.takesOwnToken)
        return { now: () => undefined, again: () => false };
    let known = tokenIn(settings.tokenFile);
    return {
        now: () => (known ??= tokenIn(settings.tokenFile)),
        again: () => {
            const before = known;
            known = tokenIn(settings.tokenFile);
            return known !== undefined && known !== before;
        },
    };
}
function tokenIn(file) {
    try {
        const text = readFileSync(file, "utf8").trim();
        return /^[\x21-\x7e]+$/.test(text) ? text : undefined;
    }
    catch {
        return undefined;
    }
}
