// What happens, as it happens: server-sent events, read from a stream so that the session goes in a header.
import { useEffect, useRef, useState } from "preact/hooks";
import { headers, Problem, send } from "./api";
import type { AuditEvent } from "./wire";

export interface Happened {
  seq: number;
  events: AuditEvent[];
  backlog: number;
}
export type Connection = "connecting" | "live" | "lost";

const RETRY_MS = [500, 1000, 2000, 4000];

/** Follows one agent until `stop` is called, and comes back by itself when the provider was away. A browser has few
 * connections to a host: a tab that is hidden gives its own back, and goes on from there when it is seen again. */
export function follow(agentId: string, told: (news: Happened) => void, changed: (to: Connection) => void): () => void {
  const stopping = new AbortController();
  let stream = new AbortController();
  let after: number | undefined;
  let failures = 0;
  const isResting = () => document.hidden && after !== undefined;
  const look = () => isResting() && stream.abort();
  document.addEventListener("visibilitychange", look, { signal: stopping.signal });
  void (async () => {
    while (!stopping.signal.aborted) {
      if (isResting()) {
        await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
        continue;
      }
      stream = new AbortController();
      try {
        const body = JSON.stringify({ agentId, after });
        const answer = await send("/ui/events", { method: "POST", headers: headers(), body, signal: stream.signal });
        changed("live");
        failures = 0;
        for await (const data of events(answer)) {
          const news = JSON.parse(data) as Happened;
          after = news.seq;
          told(news);
          look();
        }
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (error instanceof Problem && (error.isSignedOut || error.status === 403)) return changed("lost");
      }
      if (stream.signal.aborted) continue;
      changed("lost");
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]));
    }
  })();
  return () => {
    stopping.abort();
    stream.abort();
  };
}

async function* events(answer: Response): AsyncGenerator<string> {
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const data = block.split("\n").find((line) => line.startsWith("data: "));
      if (data) yield data.slice("data: ".length);
    }
  }
}

type Listener = (news: Happened) => void;
const listeners = new Set<Listener>();

/** One stream for the whole page; whoever wants to hear of it subscribes. */
export function useStream(agentId: string): { connection: Connection; backlog: number | null; returns: number } {
  const [connection, setConnection] = useState<Connection>("connecting");
  const [backlog, setBacklog] = useState<number | null>(null);
  const [returns, setReturns] = useState(0);
  const was = useRef<Connection>("connecting");
  useEffect(() => {
    const tell = (news: Happened) => {
      setBacklog(news.backlog);
      for (const listener of listeners) listener(news);
    };
    return follow(agentId, tell, (to) => {
      if (was.current === "lost" && to === "live") setReturns((count) => count + 1);
      was.current = to;
      setConnection(to);
    });
  }, [agentId]);
  return { connection, backlog, returns };
}

export function useHappened(listener: Listener) {
  const current = useRef(listener);
  current.current = listener;
  useEffect(() => {
    const told: Listener = (news) => current.current(news);
    listeners.add(told);
    return () => void listeners.delete(told);
  }, []);
}
