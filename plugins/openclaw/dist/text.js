/** Words out of what others hand over. */
/** A text with something in it; undefined for everything else. */
export function textOf(value) {
    return typeof value === "string" && value.trim() ? value.trim() : undefined;
}
/** The text of a message's content, without what is no text. */
export function plainText(content) {
    if (typeof content === "string")
        return content;
    return (content ?? []).map(({ text }) => (typeof text === "string" ? text : "")).join("\n");
}
