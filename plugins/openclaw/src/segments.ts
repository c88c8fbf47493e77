/** The files of an outbox: numbered segments of JSON lines, and the position up to which all was delivered. */
import { closeSync, openSync, readFileSync, readSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const NEWLINE = 0x0a;
const CHUNK_BYTES = 256 * 1024;

export interface Position {
  readonly segment: number;
  readonly offset: number;
}

export interface Line {
  readonly bytes: Buffer;
  /** Where the next one begins. */
  readonly end: number;
}

export function segmentPath(folder: string, segment: number): string {
  return join(folder, `${String(segment).padStart(10, "0")}.jsonl`);
}

/** Their numbers, the oldest first. */
export function segmentsIn(folder: string): number[] {
  const numbers = readdirSync(folder).map((name) => /^(\d{10})\.jsonl$/.exec(name)?.[1]);
  return numbers.filter((each) => each !== undefined).map(Number).sort((one, other) => one - other);
}

export function removeSegment(folder: string, segment: number): void {
  rmSync(segmentPath(folder, segment), { force: true });
}

/** One that is lost or torn is no harm: what is delivered twice is stored once. */
export function readPosition(folder: string): Position {
  try {
    const found = JSON.parse(readFileSync(join(folder, "position.json"), "utf8")) as Partial<Position>;
    const { segment, offset } = found;
    if (Number.isSafeInteger(segment) && Number.isSafeInteger(offset)) return { segment: segment!, offset: offset! };
  } catch {
    // none yet, or not a whole one
  }
  return { segment: 0, offset: 0 };
}

export function writePosition(folder: string, position: Position): void {
  const path = join(folder, "position.json");
  writeFileSync(`${path}.new`, JSON.stringify(position), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** The whole lines from an offset on; a torn one at the end is none. Reads no further than it is asked to. */
export function* linesOf(folder: string, segment: number, offset: number): Generator<Line> {
  let file: number;
  try {
    file = openSync(segmentPath(folder, segment), "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  try {
    let rest = Buffer.alloc(0);
    let start = offset;
    let reach = CHUNK_BYTES;
    for (;;) {
      const chunk = Buffer.allocUnsafe(reach);
      const count = readSync(file, chunk, 0, reach, start + rest.length);
      if (count === 0) return;
      rest = Buffer.concat([rest, chunk.subarray(0, count)]);
      let from = 0;
      for (let at = rest.indexOf(NEWLINE); at !== -1; at = rest.indexOf(NEWLINE, from)) {
        yield { bytes: rest.subarray(from, at), end: start + at + 1 };
        from = at + 1;
      }
      // A long line is read in ever larger pieces, or joining them would take its square.
      reach = from === 0 ? reach * 2 : CHUNK_BYTES;
      start += from;
      rest = rest.subarray(from);
    }
  } finally {
    closeSync(file);
  }
}
