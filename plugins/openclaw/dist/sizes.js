/** When a swap is due, and how much it may leave. All tokens are those that the model's provider counts, but for what the host
 * reckons by itself. Pure. */
const THRESHOLD = 0.85;
const TARGET = 0.4;
/** Where instructions and tools take much of the window, the conversation and the running turn are still left this much of it. */
const LEAST_TARGET = 0.2;
/** Of the window: what is said between two swaps, where instructions leave room for it. */
const GROWTH = THRESHOLD - TARGET;
/** What a swap has to free of the window that the conversation has; the provider refuses one that frees less. */
const LEAST_FREED = 0.25;
/** The host compacts by itself where less than this is left: a quarter of the window, at most 20,000 tokens. Ours comes before. */
const HOST_RESERVE = { share: 0.25, most: 20_000 };
const BEFORE_THE_HOST = 0.97;
/** For the answer, where the user has set nothing. */
const ANSWER_ROOM = { share: 0.15, most: 4_096 };
/** Of the window: by so much our count of what the host reckons may be wrong. */
const RECKONED_WRONG = 0.015;
const MOST_OVERHEAD = 0.7;
/** Of the window: no context is asked for that is smaller, however much a tool has just brought. */
const SMALLEST = 0.05;
/** Of what the conversation may take: so much must have come since a swap before another is asked for. */
const LEAST_GROWTH = 0.25;
/** Of the window. */
const LEAST_STEP = 0.1;
/** What the conversation has of the window. */
export function talkWindow({ window, overhead }) {
    return window - Math.min(overhead, window * MOST_OVERHEAD);
}
/** As much as the conversation may take: then a swap is due. The host's own threshold is for what the provider has counted, the
 * room for the answer is what the host reckons to be left. */
export function dueAt(load) {
    const { window, overhead, talk, pending, hostOverhead, hostTalk, hostPending } = load;
    const room = Math.min(load.answerRoom || Math.min(ANSWER_ROOM.most, window * ANSWER_ROOM.share), window / 2);
    const reserve = Math.min(window * HOST_RESERVE.share, HOST_RESERVE.most);
    const counted = Math.min(window * THRESHOLD, window - room, (window - reserve) * BEFORE_THE_HOST) - overhead - pending;
    const reckoned = hostTalk > 0 ? (window * (1 - RECKONED_WRONG) - room - hostOverhead - hostPending) * (talk / hostTalk) : counted;
    return Math.max(0, Math.floor(Math.min(counted, reckoned)));
}
/** Each swap costs the provider's cache: the next one waits until something was said since the last. */
export function isDue(load, talkAfterSwap) {
    const limit = dueAt(load);
    return load.talk >= limit && (talkAfterSwap === 0 || load.talk >= talkAfterSwap + limit * LEAST_GROWTH);
}
/** So little was said since the last swap that another would change nothing to speak of, whoever asks for it. */
export function isJustDone(load, talkAfterSwap) {
    return talkAfterSwap > 0 && load.talk < talkAfterSwap + load.window * LEAST_STEP;
}
/** What a swap may leave of the conversation: so much that it frees a quarter, or half of it where there is less to free. */
export function targetTokens(load) {
    const { window, overhead, pending } = load;
    const limit = dueAt(load);
    const least = window * LEAST_TARGET - pending;
    const wanted = Math.max(Math.min(window * TARGET, overhead + limit - window * GROWTH) - overhead, least);
    const worthwhile = Math.max(limit - talkWindow(load) * LEAST_FREED, limit / 2);
    return Math.max(1, Math.floor(Math.max(Math.min(wanted, worthwhile), window * SMALLEST)));
}
/** The same within a turn that filled the window: the host goes on only where, by its own count, its reserve is left. */
export function targetWithinTurn(load) {
    const { window, overhead, hostOverhead } = load;
    const reserve = Math.min(window * HOST_RESERVE.share, HOST_RESERVE.most);
    const room = ((window - reserve) * BEFORE_THE_HOST - hostOverhead) * (overhead > 0 ? overhead / hostOverhead : 1);
    return Math.max(1, Math.floor(Math.max(Math.min(targetTokens(load), room), window * SMALLEST)));
}
/** Whether a swap down to the target frees what the provider asks for. Where instructions leave too little, it cannot. */
export function isWorthwhile(load) {
    return load.talk - targetTokens(load) >= talkWindow(load) * LEAST_FREED;
}
