/** Takes what waits in the outbox to the provider: in order, in batches, each message once.
 *
 * Where the provider cannot be reached everything waits, and nothing overtakes. A message it will never take is set
 * aside, so that those behind it arrive.
 */
import { isProviderError } from "./client.js";
import { within } from "./within.js";
const BATCH_MESSAGES = 100;
const BATCH_BYTES = 1024 * 1024;
/** Nobody waits for a delivery; a provider that is busy with an import may take this long. */
const DELIVERY_MS = 30_000;
const PING_MS = 2_000;
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 15_000;
/** For somebody who waits, there is a try at once, unless one failed just now. */
const HASTE_MS = 1_000;
const STOP_MS = 2_000;
/** A server may hang up on a body over its limit without a word, and nothing behind it would ever arrive. */
const LOSSES_OF_A_LARGE_ITEM = 5;
const OF_THE_MESSAGE = new Set([400, 409, 413, 415, 422]);
/** A hook that an older provider does not know is not worth holding up the messages behind it. */
const OF_THE_VERB = new Set([404, 405, 501]);
/** The first items that go together: neighbours of one session. A hook goes alone, in its place. */
export function batchOf(waiting, most) {
    const first = waiting[0];
    if (!first)
        return undefined;
    if (first.verb !== "onMessage" || first.body.message === undefined) {
        return { items: [first], call: { verb: first.verb, body: first.body } };
    }
    const items = [];
    let bytes = 0;
    for (const item of waiting.slice(0, most)) {
        bytes += item.bytes;
        if (!isNeighbour(first, item) || (items.length > 0 && bytes > BATCH_BYTES))
            break;
        items.push(item);
    }
    const { message: _, ...place } = first.body;
    const body = { ...place, messages: items.map((item) => item.body.message) };
    return { items, call: { verb: "onMessage", body } };
}
function isNeighbour(first, item) {
    return (item.verb === "onMessage" &&
        item.body.message !== undefined &&
        item.body.sessionId === first.body.sessionId &&
        item.body.agentId === first.body.agentId);
}
/** Whether another message might pass where this one did not. If not, all of them wait: a wrong token, a wrong provider
 * and a fault over there pass once somebody put that right. */
export function isOfTheItem(error, verb) {
    if (error.kind !== "refused" || error.retryable || error.status === undefined)
        return false;
    return OF_THE_MESSAGE.has(error.status) || (verb !== "onMessage" && OF_THE_VERB.has(error.status));
}
export function pauseMs(failures) {
    return Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(20, Math.max(0, failures - 1)));
}
export function courier(outbox, provider, report) {
    let isStopped = false;
    let failures = 0;
    let most = BATCH_MESSAGES;
    /** So many go one by one: the batch they were in was refused. */
    let singly = 0;
    let losses = 0;
    let triedAt = 0;
    let running;
    let endPause;
    const waiters = new Set();
    function wake() {
        if (running || isStopped || outbox.length === 0)
            return;
        running = deliver().finally(() => {
            running = undefined;
            if (outbox.length > 0)
                wake(); // added after the last look
        });
    }
    async function deliver() {
        await Promise.resolve(); // what is added in the same turn of the event loop goes together
        while (!isStopped && outbox.length > 0) {
            triedAt = performance.now();
            const goesOn = await deliverSome();
            if (isStopped)
                return;
            report.outbox(outbox);
            failures = goesOn ? 0 : failures + 1;
            if (goesOn)
                continue;
            tellWaiters(); // who waits for an empty outbox has something better to do
            await pause(pauseMs(failures));
        }
        tellWaiters();
    }
    function tellWaiters() {
        for (const tell of waiters)
            tell();
    }
    /** Whether to go on at once. */
    async function deliverSome() {
        let batch;
        try {
            batch = batchOf(outbox.peek(BATCH_MESSAGES), singly > 0 ? 1 : most);
            if (!batch)
                return true;
            const answer = await provider.call(batch.call.verb, batch.call.body, DELIVERY_MS);
            if (isStopped)
                return false; // the outbox may be closed by now; this is delivered again, and stored once
            arrived(batch, answer);
            return true;
        }
        catch (error) {
            return !isStopped && (await failed(error, batch));
        }
    }
    function arrived({ items, call }, answer) {
        outbox.done(items.length);
        singly = Math.max(0, singly - items.length);
        most = Math.min(BATCH_MESSAGES, most * 2);
        losses = 0;
        report.answered(provider.endpoint, null);
        if (call.verb !== "onMessage")
            return;
        report.delivered(items.length);
        const conflicts = answer.conflicts?.length ?? 0;
        if (conflicts > 0) {
            const where = String(call.body.sessionId);
            report.problem("a message came again with another text", `${conflicts} of ${where}; the first one stays`);
        }
    }
    async function failed(error, batch) {
        if (!isProviderError(error) || !batch) {
            report.problem("the outbox cannot be read", String(error));
            return false;
        }
        if (isOfTheItem(error, batch.call.verb)) {
            report.answered(provider.endpoint, null);
            if (batch.items.length > 1)
                singly = batch.items.length;
            else
                setAside(batch, error.message);
            return true;
        }
        report.answered(provider.endpoint, error.message);
        if (failures === 0)
            report.problem("the provider does not take messages", error.message);
        // Fewer at once may be done in time.
        if (error.kind === "late")
            most = Math.max(1, Math.floor(batch.items.length / 2));
        return isLostForGood(error, batch);
    }
    function setAside(batch, reason) {
        outbox.refuse(reason);
        singly = Math.max(0, singly - 1);
        losses = 0;
        report.refused();
        report.problem("the provider refused a record for good", `${batch.call.verb}, kept in refused.jsonl: ${reason}`);
    }
    /** A large item that never arrives while the provider answers to everything else. */
    async function isLostForGood(error, batch) {
        const isLarge = batch.items.length === 1 && (batch.items[0]?.bytes ?? 0) > BATCH_BYTES;
        if (!isLarge || error.kind === "refused")
            return false;
        try {
            await provider.call("ping", {}, PING_MS);
        }
        catch {
            return false;
        }
        losses += 1;
        if (losses < LOSSES_OF_A_LARGE_ITEM || isStopped)
            return false;
        setAside(batch, `sent ${losses} times: ${error.message}`);
        return true;
    }
    function pause(forMs) {
        return new Promise((resolve) => {
            endPause = () => {
                clearTimeout(timer);
                endPause = undefined;
                resolve();
            };
            const timer = setTimeout(endPause, forMs);
            timer.unref(); // what waits is on disk: a process that wants to end does not wait for it
        });
    }
    async function idle(deadlineMs) {
        if (outbox.length === 0)
            return true;
        if (isStopped || (endPause && performance.now() - triedAt < HASTE_MS))
            return false;
        endPause?.();
        wake();
        return new Promise((resolve) => {
            const end = () => {
                clearTimeout(timer);
                waiters.delete(end);
                resolve(outbox.length === 0);
            };
            const timer = setTimeout(end, deadlineMs);
            waiters.add(end);
        });
    }
    async function stop() {
        isStopped = true;
        endPause?.();
        tellWaiters();
        if (running)
            await within(running, STOP_MS);
        report.outbox(outbox);
    }
    return { wake, idle, stop };
}
