/** How many tokens a text is, whichever model reads it: the provider's own estimate (`offbook.models.tokens`), with the same
 * weights, so that both sides of a swap speak of the same size. A test holds the two together. */
const CHARACTER = 0.05;
const WORD = 0.74;
const CAPITAL_WITHIN = 0.8;
const SIGNS = 0.79;
const SYMBOLS = 1.5;
const LOWER = 0;
const CAPITAL = 1;
const DIGIT = 2;
const SIGN = 3;
const LINE_END = 4;
const SPACE = 5;
const FIRST_SCRIPT = 6;
const SYMBOL = 10;
/** By class. Small letters and spaces take what every character takes. */
const WEIGHTS = [0, 0.04, 0.59, 0.03, 0.93, 0, 1.8, 0.43, 0.82, 0.93, 0.27, 0.79, 1.03, 1.04, 0.54, 2.75];
/** The first byte in UTF-8 from which on a character is of the class `FIRST_SCRIPT`, of the one after it, and so on. */
const SCRIPTS = [0xc2, 0xce, 0xd5, 0xe0, 0xe2, 0xe3, 0xe4, 0xea, 0xee, 0xf0];
const CLASS_OF_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => classOfByte(byte));
/** East Asian characters, which the host counts as a token each. */
const WIDE = /[\u3000-\u9fff\uac00-\ud7a3\uff01-\uff60]/g;
const CHARS_PER_TOKEN = 4;
/** What the host adds to that, before it reckons how much room is left for the answer. */
export const HOST_MARGIN = 1.25;
/** About as many tokens as any of today's models would count. */
export function estimateTokens(text) {
    if (text === "")
        return 0;
    const counts = new Array(WEIGHTS.length).fill(0);
    let [characters, words, signs, symbols, capitalsWithin] = [0, 0, 0, 0, 0];
    let before = -1;
    for (let at = 0; at < text.length; at += 1) {
        const unit = text.charCodeAt(at);
        let kind = CLASS_OF_BYTE[unit];
        if (unit >= 0x80) {
            const code = text.codePointAt(at);
            if (code > 0xffff)
                at += 1;
            kind = CLASS_OF_BYTE[firstByte(code)];
        }
        characters += 1;
        counts[kind] = counts[kind] + 1;
        if (kind <= CAPITAL) {
            if (before < 0 || before > CAPITAL)
                words += 1;
            else if (kind === CAPITAL && before === LOWER)
                capitalsWithin += 1;
        }
        else if (kind !== before) {
            if (kind === SIGN)
                signs += 1;
            if (kind === SYMBOL)
                symbols += 1;
        }
        before = kind;
    }
    const weighed = counts.reduce((sum, count, kind) => sum + count * WEIGHTS[kind], 0);
    const runs = WORD * words + SIGNS * signs + SYMBOLS * symbols + CAPITAL_WITHIN * capitalsWithin;
    return Math.max(Math.ceil(CHARACTER * characters + runs + weighed), 1);
}
/** The same as the host reckons it where it decides how long an answer may be: cautiously, by characters. */
export function hostTokens(text) {
    const wide = text.match(WIDE)?.length ?? 0;
    return ((text.length + wide * (CHARS_PER_TOKEN - 1)) / CHARS_PER_TOKEN) * HOST_MARGIN;
}
function firstByte(code) {
    if (code < 0x800)
        return 0xc0 | (code >> 6);
    return code < 0x10000 ? 0xe0 | (code >> 12) : 0xf0 | (code >> 18);
}
function classOfByte(byte) {
    if (byte >= 0x80)
        return FIRST_SCRIPT + SCRIPTS.findLastIndex((first) => byte >= first);
    const character = String.fromCharCode(byte);
    if (/[a-z]/.test(character))
        return LOWER;
    if (/[A-Z]/.test(character))
        return CAPITAL;
    if (/[0-9]/.test(character))
        return DIGIT;
    if (/[ \t]/.test(character))
        return SPACE;
    return /[\r\n]/.test(character) ? LINE_END : SIGN;
}
