// Which session a page is about: chosen from a list, or the newest where none is said.
import { useAsk } from "./asking";
import { ago, count } from "../format";
import { goTo } from "../router";
import type { SessionView } from "../wire";

const MOST_OFFERED = 200;

/** The session meant, and all that can be chosen. `session` is null until it is known, or where there is none. */
export function useSessionChoice(agentId: string, of: string) {
  const sessions = useAsk("sessions", { agentId, limit: MOST_OFFERED });
  const offered = sessions.value?.sessions ?? [];
  const sessionId = of || offered[0]?.sessionId || "";
  const session: SessionView | null = offered.find((each) => each.sessionId === sessionId) ?? null;
  return { sessions, offered, sessionId, session };
}

export function SessionChoice({ page, sessionId, offered }: { page: string; sessionId: string; offered: SessionView[] }) {
  const isOffered = offered.some((each) => each.sessionId === sessionId);
  return (
    <label class="field">
      <span>Session</span>
      <select value={sessionId} onChange={(event) => goTo(page, event.currentTarget.value)}>
        {!isOffered && sessionId && <option value={sessionId}>{sessionId}</option>}
        {offered.map((each) => (
          <option key={each.sessionId} value={each.sessionId}>
            {`${each.sessionId} · ${count(each.lastSeq, "message")} · ${ago(each.lastAt)}`}
          </option>
        ))}
      </select>
    </label>
  );
}
