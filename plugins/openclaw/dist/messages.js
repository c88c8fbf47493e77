const ROLES = { user: "user", assistant: "assistant", toolResult: "tool" };
/** A name longer than the contract allows is left out rather than refused. */
const LONGEST_LABEL = 512;
const EARLIEST_MS = Date.UTC(1901, 0, 1);
const AFTER_LATEST_MS = Date.UTC(9000, 0, 1);
export function wireMessage(entryId, message, hostSessionId) {
    const role = ROLES[message.role];
    const meta = {};
    for (const name of ["provider", "api", "stopReason"]) {
        if (typeof message[name] === "string" && message[name])
            meta[name] = message[name];
    }
    if (message.isError === true)
        meta.isError = true;
    if (message.__openclaw?.contextFreeCommand === true)
        meta.isCommand = true;
    if (!role)
        meta.hostRole = message.role;
    if (hostSessionId)
        meta.hostSessionId = hostSessionId;
    const runId = message.__openclaw?.runId;
    if (typeof runId === "string" && runId)
        meta.runId = runId;
    const wire = { id: entryId, role: role ?? "system", content: contentOf(message) };
    const ts = timeOf(message.timestamp);
    if (ts)
        wire.ts = ts;
    if (message.role === "toolResult" && label(message.toolName))
        wire.name = message.toolName;
    if (message.role === "toolResult" && label(message.toolCallId))
        wire.toolCallId = message.toolCallId;
    if (label(message.model))
        wire.model = message.model;
    if (Object.keys(meta).length > 0)
        wire.meta = meta;
    return wire;
}
function contentOf(message) {
    if (typeof message.content === "string" || Array.isArray(message.content))
        return message.content;
    for (const other of [message.summary, message.text])
        if (typeof other === "string")
            return other;
    return "";
}
function label(value) {
    return typeof value === "string" && value !== "" && value.length <= LONGEST_LABEL && !value.includes("\0");
}
/** Nothing for what is no time, or lies outside the years that the contract takes. */
function timeOf(value) {
    if (typeof value !== "number" || !(value >= EARLIEST_MS && value < AFTER_LATEST_MS))
        return undefined;
    return new Date(value).toISOString();
}
