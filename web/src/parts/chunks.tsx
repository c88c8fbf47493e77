// A list of any length, of which only what is seen is in the page: items come in chunks, from the server, as they are
// scrolled to. Heights are measured where they are known and guessed where they are not.
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Problem } from "../api";

const KEPT_CHUNKS = 60;
const GUESSED_ITEM = 92;

export interface Chunked<T> {
  /** How many items there are. */
  total: number;
  size: number;
  /** Items `first` to `first + size - 1`, counted from 0. */
  load: (first: number, signal: AbortSignal) => Promise<T[]>;
  item: (value: T, at: number) => ComponentChildren;
  /** Another name, another list. */
  name: string;
  /** The item to begin at; the last one where it is -1. */
  start?: number;
  onPlace?: (firstSeen: number, lastSeen: number) => void;
  empty?: ComponentChildren;
}

export function ChunkedList<T>({ total, size, load, item, name, start = 0, onPlace, empty }: Chunked<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<number, number>());
  /** With how many items there were in all when it was asked for. */
  const loaded = useRef(new Map<number, { items: T[]; total: number }>());
  const waiting = useRef(new Map<number, AbortController>());
  const loading = useRef(load);
  loading.current = load;
  const [view, setView] = useState({ top: 0, height: 800 });
  const [round, setRound] = useState(0);
  const [error, setError] = useState<Problem | null>(null);
  const chunks = Math.ceil(total / size);

  const offsets = useMemo(() => {
    const found = new Float64Array(chunks + 1);
    const known = [...heights.current.values()];
    const guess = known.length ? known.reduce((sum, each) => sum + each, 0) / known.length : GUESSED_ITEM * size;
    for (let at = 0; at < chunks; at++) {
      const items = Math.min(size, total - at * size);
      found[at + 1] = found[at]! + (heights.current.get(at) ?? (guess * items) / size);
    }
    return found;
  }, [chunks, total, size, round]);

  const chunkAt = useCallback(
    (top: number) => {
      let low = 0;
      let high = Math.max(0, chunks - 1);
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (offsets[middle]! <= top) low = middle;
        else high = middle - 1;
      }
      return low;
    },
    [offsets, chunks],
  );
  const first = Math.max(0, chunkAt(view.top) - 1);
  const last = Math.min(chunks - 1, chunkAt(view.top + view.height) + 1);

  // Another list begins where it is asked to.
  const wanted = useRef<number | null>(null);
  useLayoutEffect(() => {
    for (const each of waiting.current.values()) each.abort();
    waiting.current.clear();
    heights.current.clear();
    loaded.current.clear();
    wanted.current = start < 0 ? Math.max(0, total - 1) : Math.min(start, Math.max(0, total - 1));
    setRound((was) => was + 1);
  }, [name, start]);

  useEffect(() => {
    for (let at = first; at <= last; at++) {
      const have = loaded.current.get(at);
      const due = Math.min(size, total - at * size);
      if (have && (have.items.length >= due || have.total === total)) continue;
      if (waiting.current.has(at)) continue;
      const stopping = new AbortController();
      waiting.current.set(at, stopping);
      loading
        .current(at * size, stopping.signal)
        .then((items) => {
          if (stopping.signal.aborted) return;
          loaded.current.set(at, { items, total });
          setError(null);
          for (const old of loaded.current.keys()) {
            if (loaded.current.size <= KEPT_CHUNKS) break;
            if (Math.abs(old - at) > 5) loaded.current.delete(old);
          }
          setRound((was) => was + 1);
        })
        .catch((problem: Problem) => !stopping.signal.aborted && setError(problem))
        .finally(() => waiting.current.delete(at));
    }
    for (const [at, stopping] of waiting.current) {
      if (at < first - 2 || at > last + 2) {
        stopping.abort();
        waiting.current.delete(at);
      }
    }
  }, [first, last, total, name, round]);

  // What was measured above the place that is looked at must not move it.
  const anchor = useRef<{ chunk: number; within: number } | null>(null);
  const look = (box: HTMLElement) => {
    const [top, height] = [box.scrollTop, box.clientHeight];
    setView((was) => (was.top === top && was.height === height ? was : { top, height }));
  };
  useLayoutEffect(() => {
    const box = scroller.current;
    if (!box || !chunks) return;
    const topChunk = chunkAt(box.scrollTop);
    const within = box.scrollTop - offsets[topChunk]!;
    let changed = false;
    for (const node of box.querySelectorAll<HTMLElement>("[data-chunk]")) {
      const at = Number(node.dataset.chunk);
      if (!loaded.current.has(at)) continue;
      const height = node.offsetHeight;
      if (Math.abs((heights.current.get(at) ?? -9) - height) > 1) {
        heights.current.set(at, height);
        changed = true;
      }
    }
    const target = wanted.current;
    if (target !== null) {
      const row = box.querySelector<HTMLElement>(`[data-item="${target}"]`);
      const top = row ? row.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop - 80 : offsets[Math.floor(target / size)]!;
      if (Math.abs(box.scrollTop - top) > 1) box.scrollTop = top;
      if (row && !changed) {
        row.classList.add("arrived");
        wanted.current = null;
      }
      look(box);
    } else if (changed) {
      anchor.current = { chunk: topChunk, within };
    }
    if (changed) setRound((was) => was + 1);
  });
  useLayoutEffect(() => {
    const box = scroller.current;
    const held = anchor.current;
    anchor.current = null;
    if (box && held && wanted.current === null) {
      const top = offsets[held.chunk]! + held.within;
      if (Math.abs(box.scrollTop - top) > 1) box.scrollTop = top;
    }
  }, [offsets]);

  const seen = useRef("");
  const scrolled = () => {
    const box = scroller.current;
    if (!box) return;
    look(box);
    if (onPlace && chunks) {
      const place = (top: number) => {
        const chunk = chunkAt(top);
        const share = (top - offsets[chunk]!) / Math.max(1, offsets[chunk + 1]! - offsets[chunk]!);
        return Math.min(total - 1, Math.max(0, Math.floor((chunk + Math.min(1, share)) * size)));
      };
      const [from, to] = [place(box.scrollTop), place(box.scrollTop + box.clientHeight)];
      if (seen.current !== `${from}-${to}`) {
        seen.current = `${from}-${to}`;
        onPlace(from, to);
      }
    }
  };
  useEffect(() => {
    const box = scroller.current;
    if (!box) return;
    const watching = new ResizeObserver(() => look(box));
    watching.observe(box);
    return () => watching.disconnect();
  }, []);

  const shown = [];
  for (let at = first; at <= last && chunks; at++) {
    const items = loaded.current.get(at)?.items;
    shown.push(
      <div key={at} data-chunk={at} class="chunk" style={{ top: `${offsets[at]}px` }}>
        {items
          ? items.map((value, index) => (
              <div key={index} data-item={at * size + index} class="chunk-item">
                {item(value, at * size + index)}
              </div>
            ))
          : <div class="chunk-wait" style={{ height: `${offsets[at + 1]! - offsets[at]!}px` }} />}
      </div>,
    );
  }
  return (
    <div class="chunks" ref={scroller} onScroll={scrolled} tabIndex={0} role="region" aria-label="Messages">
      {error && <p class="failure" role="alert">{error.message}</p>}
      {total === 0 ? empty : <div class="chunks-all" style={{ height: `${offsets[chunks]}px` }}>{shown}</div>}
    </div>
  );
}
