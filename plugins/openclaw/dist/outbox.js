/** What the host said, on disk until the provider has it.
 *
 * `add` is one write to the end of a file and does not wait for the disk: a process that is killed loses nothing, a
 * machine that loses its power loses what no `flush` came after. Lines that were torn are left out; what was delivered
 * but not yet noted is delivered again, and the provider knows it by its id.
 */
import { appendFileSync, closeSync, fsync, ftruncateSync, mkdirSync, openSync } from "node:fs";
import { renameSync, statSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { lockFolder } from "./lock.js";
import { linesOf, readPosition, removeSegment, segmentPath, segmentsIn, writePosition } from "./segments.js";
const SEGMENT_BYTES = 4 * 1024 * 1024;
/** Read ahead at most this much, and one item in any case. */
const AHEAD_BYTES = 1024 * 1024;
const REFUSED_BYTES = 16 * 1024 * 1024;
const synced = promisify(fsync);
/** Throws where the folder cannot be used, or another process uses it. */
export function openOutbox(folder, maxBytes, warn) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const unlock = lockFolder(folder);
    try {
        return outboxIn(folder, maxBytes, warn, unlock);
    }
    catch (error) {
        unlock();
        throw error;
    }
}
function outboxIn(folder, maxBytes, warn, unlock) {
    const segmentBytes = Math.min(SEGMENT_BYTES, Math.ceil(maxBytes / 4));
    let delivered = readPosition(folder);
    let readTo = delivered;
    const found = segmentsIn(folder);
    for (const segment of found.filter((each) => each < delivered.segment))
        removeSegment(folder, segment);
    /** Those with something to deliver, the oldest first. What an earlier process left is never written to again. */
    let segments = found.filter((each) => each >= delivered.segment);
    let tail;
    let lastSegment = Math.max(delivered.segment, found.at(-1) ?? 0);
    let ahead = [];
    let length = 0;
    let bytes = 0;
    let turnedAway = 0;
    let isFailing = false;
    let isClosed = false;
    const closing = new Set();
    for (const segment of segments) {
        let from = segment === delivered.segment ? delivered.offset : 0;
        for (const line of linesOf(folder, segment, from)) {
            length += 1;
            bytes += line.end - from;
            from = line.end;
        }
    }
    // ── in ──
    function add(item) {
        let line;
        try {
            line = Buffer.from(`${JSON.stringify({ verb: item.verb, body: item.body })}\n`);
        }
        catch (error) {
            return refusedEntry(`a record for ${item.verb} is not JSON (${told(error)})`);
        }
        if (isClosed || bytes + line.length > maxBytes) {
            turnedAway += 1;
            return false;
        }
        try {
            append(line);
        }
        catch (error) {
            return refusedEntry(`${folder} cannot be written (${told(error)}); free some room, and check who owns it`);
        }
        isFailing = false;
        length += 1;
        bytes += line.length;
        return true;
    }
    function append(line) {
        if (tail && tail.size >= segmentBytes)
            leaveTail();
        if (!tail) {
            tail = { file: openSync(segmentPath(folder, lastSegment + 1), "ax", 0o600), size: 0 };
            lastSegment += 1;
            segments.push(lastSegment);
        }
        const written = tail.size;
        try {
            for (let at = 0; at < line.length;)
                at += writeSync(tail.file, line, at);
            tail.size += line.length;
        }
        catch (error) {
            try {
                ftruncateSync(tail.file, written); // half a line must not become the beginning of the next
            }
            catch {
                leaveTail(); // it ends its segment, where a line without an end is none
            }
            throw error;
        }
    }
    function refusedEntry(text) {
        turnedAway += 1;
        if (!isFailing)
            warn(text);
        isFailing = true;
        return false;
    }
    /** The next line begins another segment. This one is brought to the disk meanwhile. */
    function leaveTail() {
        if (!tail)
            return;
        const { file } = tail;
        tail = undefined;
        const finished = synced(file)
            .catch((error) => warn(`${folder} could not be brought to the disk (${told(error)})`))
            .then(() => closeSync(file))
            .finally(() => closing.delete(finished));
        closing.add(finished);
    }
    /** All of it was delivered: its words do not stay here, where nobody who forgets them would look. */
    function dropTail() {
        if (!tail)
            return;
        closeSync(tail.file);
        tail = undefined;
    }
    // ── out ──
    function peek(most) {
        if (ahead.length < most && ahead.length < length)
            readOn(most);
        return ahead.slice(0, most).map((each) => each.item);
    }
    function readOn(most) {
        let size = ahead.reduce((sum, each) => sum + each.item.bytes, 0);
        if (size >= AHEAD_BYTES)
            return;
        for (const segment of segments.filter((each) => each >= readTo.segment)) {
            let from = segment === readTo.segment ? readTo.offset : 0;
            for (const line of linesOf(folder, segment, from)) {
                const item = itemIn(line.bytes, line.end - from);
                readTo = { segment, offset: line.end };
                if (item) {
                    ahead.push({ item, after: readTo });
                    size += item.bytes;
                }
                else {
                    length -= 1;
                    bytes -= line.end - from;
                    warn(`a line of ${segmentPath(folder, segment)} cannot be read and is left out; the transcript still has it`);
                }
                from = line.end;
                if (ahead.length >= most || size >= AHEAD_BYTES)
                    return;
            }
        }
    }
    function done(count) {
        const gone = ahead.slice(0, count);
        const last = gone.at(-1);
        if (!last)
            return;
        ahead = ahead.slice(count);
        length -= gone.length;
        bytes -= gone.reduce((sum, each) => sum + each.item.bytes, 0);
        delivered = last.after;
        if (length === 0) {
            dropTail();
            delivered = readTo = { segment: lastSegment + 1, offset: 0 };
        }
        try {
            writePosition(folder, delivered);
            for (const segment of segments.filter((each) => each < delivered.segment))
                removeSegment(folder, segment);
        }
        catch (error) {
            warn(`${folder} cannot be tidied up (${told(error)}); what it holds is sent again, and stored once`);
        }
        segments = segments.filter((each) => each >= delivered.segment);
    }
    function refuse(reason) {
        const item = peek(1)[0];
        if (!item)
            return;
        const path = join(folder, "refused.jsonl");
        try {
            if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > REFUSED_BYTES)
                renameSync(path, `${path}.old`);
            const record = { at: new Date().toISOString(), reason, verb: item.verb, body: item.body };
            appendFileSync(path, `${JSON.stringify(record)}\n`, { mode: 0o600 });
        }
        catch (error) {
            warn(`what the provider refused could not be kept in ${path} (${told(error)})`);
        }
        done(1);
    }
    async function flush() {
        const file = tail?.file;
        await Promise.all([...closing, file === undefined ? undefined : synced(file).catch(ignoreClosed)]);
        const directory = await open(folder, "r");
        await directory.sync().finally(() => directory.close());
    }
    /** Left and closed while we waited: it was brought to the disk on the way. */
    function ignoreClosed(error) {
        if (error.code !== "EBADF")
            throw error;
    }
    function close() {
        if (isClosed)
            return;
        isClosed = true;
        leaveTail();
        unlock();
    }
    return {
        add,
        peek,
        done,
        refuse,
        flush,
        get length() {
            return length;
        },
        get bytes() {
            return bytes;
        },
        get turnedAway() {
            return turnedAway;
        },
        close,
    };
}
function itemIn(line, bytes) {
    try {
        const { verb, body } = JSON.parse(line.toString("utf8"));
        return typeof verb === "string" && typeof body === "object" && body !== null ? { verb, body, bytes } : undefined;
    }
    catch {
        return undefined;
    }
}
function told(error) {
    return error instanceof Error ? error.message : String(error);
}
