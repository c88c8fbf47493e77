// Asking the provider: the verbs of its contract, with the session that the link of `offbook ui` gave this page.
import type { Answers, Requests, Verb } from "./wire";

const KEPT = "offbook.session";

export interface Session {
  token: string;
  agents: string[] | null;
  defaultAgent: string;
  /** When it ends, in milliseconds since 1970. */
  ends: number;
}

/** What went wrong, in the provider's own words where it gave some. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    detail: string,
  ) {
    super(detail);
  }
  get isSignedOut() {
    return this.status === 401;
  }
  get isOffline() {
    return this.status === 0;
  }
}

let session: Session | null = null;
const listeners = new Set<() => void>();

export function onSessionChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function currentSession(): Session | null {
  return session;
}

function keep(next: Session | null) {
  session = next;
  if (next) localStorage.setItem(KEPT, JSON.stringify(next));
  else localStorage.removeItem(KEPT);
  for (const listener of listeners) listener();
}

export function signOut() {
  keep(null);
}

/** With the one-time code of the link, or with what an earlier visit kept. */
export async function signIn(code: string | null): Promise<void> {
  if (code) return open({ code });
  const kept = localStorage.getItem(KEPT);
  if (!kept) return;
  session = JSON.parse(kept) as Session;
  if (session.ends < Date.now()) return keep(null);
  if (session.ends - Date.now() < 18 * 3600_000) await open({}).catch(() => undefined);
}

async function open(body: { code?: string }): Promise<void> {
  const answer = (await post("/ui/session", body)) as Omit<Session, "ends"> & { seconds: number };
  const { token, agents, defaultAgent, seconds } = answer;
  keep({ token, agents, defaultAgent, ends: Date.now() + seconds * 1000 });
}

export function headers(): Record<string, string> {
  const known: Record<string, string> = { "content-type": "application/json" };
  if (session) known.authorization = `Bearer ${session.token}`;
  return known;
}

async function post(path: string, body: unknown, signal?: AbortSignal): Promise<unknown> {
  const asked: RequestInit = { method: "POST", headers: headers(), body: JSON.stringify(body) };
  if (signal) asked.signal = signal;
  return (await send(path, asked)).json();
}

export async function send(path: string, asked: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, asked);
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new Problem(0, "No answer", "The provider does not answer. Is `offbook serve` running?");
  }
  if (answer.ok) return answer;
  const problem = (await answer.json().catch(() => ({}))) as { title?: string; detail?: string };
  // A code that is refused says nothing of the session that an earlier visit kept.
  if (answer.status === 401 && new Headers(asked.headers).has("authorization")) signOut();
  throw new Problem(answer.status, problem.title ?? `Status ${answer.status}`, problem.detail ?? answer.statusText);
}

/** Ask a verb. Fields that are undefined are left out. */
export async function ask<V extends Verb>(verb: V, request: Requests[V], signal?: AbortSignal): Promise<Answers[V]> {
  return (await post(`/v1/${verb}`, request, signal)) as Answers[V];
}

/** The provider's own counters, which only the owner may read. */
export async function metrics(): Promise<string> {
  return (await send("/metrics", { headers: headers() })).text();
}
