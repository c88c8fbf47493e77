// Which session a page is about: the newest where none is said, else any, found in a list that is read page by page.
import { useEffect, useRef, useState } from "preact/hooks";
import { ask } from "../api";
import { ago, count } from "../format";
import { linkTo } from "../router";
import type { SessionPage, SessionView } from "../wire";
import { type Loaded, useAction, useAsk } from "./asking";
import { Empty, Failure, Progress, Shown } from "./states";

const PAGE = 40;
const TYPING_MS = 150;

/** The session meant. `session` is null until it is known, or where there is none of that id. */
export function useSession(agentId: string, of: string) {
  const loaded = useAsk("sessions", of ? { agentId, sessionId: of } : { agentId, limit: 1 });
  const found = loaded.value?.sessions[0] ?? null;
  const session = found && (!of || found.sessionId === of) ? found : null;
  return { loaded, session, sessionId: of || session?.sessionId || "" };
}

/** The sessions whose id contains `matching`, the newest first; `older` reads the next page. */
export function useSessions(agentId: string, matching = "") {
  const first = useAsk("sessions", { agentId, limit: PAGE, matching });
  const [more, setMore] = useState<SessionView[]>([]);
  const [next, setNext] = useState<number | null>(null);
  useEffect(() => setMore([]), [agentId, matching]);
  useEffect(() => setNext((was) => (more.length ? was : (first.value?.next ?? null))), [first.value, more]);
  const older = useAction(async () => {
    const page = await ask("sessions", { agentId, limit: PAGE, matching, after: next! });
    setMore([...more, ...page.sessions]);
    setNext(page.next ?? null);
  });
  // One that was written to meanwhile is on the first page now, and on a later one from before.
  const shown = new Map([...more, ...(first.value?.sessions ?? [])].map((each) => [each.sessionId, each]));
  const order = new Set([...(first.value?.sessions ?? []), ...more].map((each) => each.sessionId));
  return { first, sessions: [...order].map((id) => shown.get(id)!), next, older };
}

/** The rest of a list of sessions. */
export function OlderSessions({ next, older }: Pick<ReturnType<typeof useSessions>, "next" | "older">) {
  if (older.error) return <Failure error={older.error} again={() => void older.run()} />;
  if (older.isRunning) return <Progress label="Reading older sessions" />;
  return next === null ? null : (
    <button type="button" onClick={() => void older.run()}>
      Older sessions
    </button>
  );
}

export function SessionChoice({ page, agentId, sessionId }: { page: string; agentId: string; sessionId: string }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <div class="field">
        <span>Session</span>
        <button type="button" class="choice" aria-haspopup="dialog" aria-label={`Session ${sessionId}, choose another`} onClick={() => setOpen(true)}>
          {sessionId}
        </button>
      </div>
      {isOpen && <SessionDialog agentId={agentId} sessionId={sessionId} link={(id) => linkTo(page, id)} close={() => setOpen(false)} />}
    </>
  );
}

/** `choose` is told of the session, or its `link` is followed. */
export function SessionDialog({ agentId, sessionId, link, choose, close }: { agentId: string; sessionId: string; link?: (id: string) => string; choose?: (id: string) => void; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [matching, setMatching] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    const waiting = setTimeout(() => setMatching(typed.trim()), TYPING_MS);
    return () => clearTimeout(waiting);
  }, [typed]);
  const { first, sessions, next, older } = useSessions(agentId, matching);
  const chosen = (id: string) => {
    choose?.(id);
    close();
  };
  return (
    <dialog ref={dialog} class="choose" onClose={close} aria-label="Choose a session">
      <div class="card-head">
        <h2>Sessions</h2>
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </div>
      <input type="search" aria-label="Find a session" placeholder="a part of its name" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      <Shown of={first} label="Reading sessions">
        {() => (
          <div class="choose-list">
            <ul class="rows">
              {sessions.map((each) => (
                <li key={each.sessionId}>
                  <a data-row class="row" href={link?.(each.sessionId) ?? location.hash} aria-current={each.sessionId === sessionId ? "true" : undefined} onClick={() => chosen(each.sessionId)}>
                    <span class="row-name">{each.sessionId}</span>
                    <span class="muted">{ago(each.lastAt)}</span>
                    <span class="muted">{count(each.lastSeq, "message")}</span>
                  </a>
                </li>
              ))}
            </ul>
            {!sessions.length && <Empty title="No session is called so" />}
            <OlderSessions next={next} older={older} />
          </div>
        )}
      </Shown>
    </dialog>
  );
}

/** What stands in place of a page until its session is known. */
export function SessionWait({ of }: { of: Loaded<SessionPage> }) {
  return of.error ? <Failure error={of.error} again={of.again} /> : <Progress label="Reading the session" />;
}
